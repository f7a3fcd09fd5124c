// One commit of a git repository, as plain files. Blocks: for a pool. Any thread.
#pragma once

#include <filesystem>
#include <string>

#include "agent/packs.hpp"
#include "base/error.hpp"

namespace comfyd::agent {

// Into a folder that is not there yet. Failures as of lay_out_packs(); what came of it stays.
Result<> fetch_commit(
    const NodePack& pack, const PackRules& rules, const std::filesystem::path& into
);

}  // namespace comfyd::agent
