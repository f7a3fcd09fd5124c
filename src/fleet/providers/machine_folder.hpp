// How the folder of a machine is made and removed (process_record.hpp says what is in it). Links in
// it are removed and not followed. Blocks: for a pool. Any thread.
#pragma once

#include <filesystem>

#include "base/error.hpp"

namespace comfyd::fleet {

// For us alone. Code::storage_full, Code::storage_unavailable; likewise the others.
Result<> make_private_folder(const std::filesystem::path& folder);

// All of it, the record last: as long as anything is there, somebody sees it and can try again.
Result<> remove_machine_folder(const std::filesystem::path& folder);
// The record alone: from then on there is no such machine.
Result<> remove_record(const std::filesystem::path& folder);
// One that nobody has seen yet; what cannot be removed stays.
void drop_folder(const std::filesystem::path& folder);

}  // namespace comfyd::fleet
