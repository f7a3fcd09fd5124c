// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/nodes/node.hpp"
