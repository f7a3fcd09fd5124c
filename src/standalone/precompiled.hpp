// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "comfy/replies.hpp"
#include "engine/engine.hpp"
#include "net/server.hpp"
