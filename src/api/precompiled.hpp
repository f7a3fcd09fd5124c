// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "api/router.hpp"
#include "api/services.hpp"
#include "base/precompiled.hpp"
