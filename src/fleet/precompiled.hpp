// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "comfy/client.hpp"
#include "comfy/members.hpp"
#include "jobs/fleet.hpp"
#include "workflow/catalogue/catalogue.hpp"
