// The folders of the embedded engine: what jobs made there is in the store, so that after their
// time nobody needs it there. Blocks: for the pool.
#pragma once

#include <filesystem>

#include "base/time.hpp"

namespace comfyd::app {

// Of `folder`/output, /temp and the tenants' own folders in /input, the files that were last used
// before `before`. What people put into /input themselves stays. How many went.
int remove_old_engine_files(const std::filesystem::path& folder, Time before);

}  // namespace comfyd::app
