// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "events/hub.hpp"
#include "jobs/attempt.hpp"
#include "jobs/job.hpp"
#include "jobs/ledger.hpp"
#include "scheduler/scheduler.hpp"
