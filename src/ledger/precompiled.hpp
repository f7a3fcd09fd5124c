// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "base/precompiled.hpp"
#include "jobs/ledger.hpp"
#include "ledger/sqlite/session.hpp"
