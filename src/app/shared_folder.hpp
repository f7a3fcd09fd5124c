// Whether nodes that share a ledger also share the folder with files: one that writes outputs where
// the others do not see them must not begin. The first node that ever started has left the same
// mark in both.
#pragma once

#include <filesystem>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "jobs/notebook.hpp"

namespace comfyd::app {

// Code::config_invalid: the mark in the folder is another than the ledger's. Code::storage_*.
Task<Result<>> check_shared_folder(
    jobs::Notebook& notebook, std::filesystem::path folder, Pool& pool
);

}  // namespace comfyd::app
