// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "engine/call.hpp"
#include "engine/kernel.hpp"
#include "engine/node.hpp"
