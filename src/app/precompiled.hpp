// What most files of this room include, parsed once (base/precompiled.hpp says more).
#pragma once

#include "api/services.hpp"
#include "assets/store.hpp"
#include "base/precompiled.hpp"
#include "ledger/storage.hpp"
#include "net/server.hpp"
