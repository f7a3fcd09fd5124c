// Packs of custom nodes, laid out for a ComfyUI before it starts: a git repository at one commit,
// or a folder of this computer; each must be in the operator's allow-list, because its code runs
// with the rights of ComfyUI. What is fetched is kept, so that the next ComfyUI has it at once.
//
// Nothing of a repository is run here: no hooks, no filters, no submodules, no prompts, no
// redirects to places that nobody allowed. Python packages that a pack needs are not installed.
// Blocks: for a pool. Any thread; two that fetch the same do it twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::fleet {

struct NodePack {
    std::string url{};               // https://… of a git repository,
    std::string commit{};            // and all digits of a commit in it; or
    std::filesystem::path folder{};  // a folder, whole
};

struct PackRules {
    // URLs and folders; one that ends with '/' allows what lies below it.
    std::vector<std::string> allowed{};
    bool allows_paths = false;  // in place of URLs: repositories on this computer
    std::string git = "git";
    Millis time_max{300'000};                 // for each pack
    std::uint64_t bytes_max = 2'000'000'000;  // of each pack
    std::size_t files_max = 50'000;           // likewise
};

// The folder that it gets: "ComfyUI-Impact-Pack".
std::string pack_name(const NodePack& pack);

// Code::invalid_argument: it is none, or two have the same name. Code::forbidden: it is not
// allowed.
Result<> check_packs(const std::vector<NodePack>& packs, const PackRules& rules);

// Lays the packs out below `into`, each in a folder of its own; `kept`: where those that were
// fetched stay. As check_packs(), and Code::not_found, Code::hash_mismatch (another commit came),
// Code::payload_too_large, Code::execution_timeout, Code::upstream_error in git's words, and those
// of the disk. Nothing half is left below `kept`.
Result<> lay_out_packs(
    const std::vector<NodePack>& packs,
    const PackRules& rules,
    const std::filesystem::path& kept,
    const std::filesystem::path& into
);

}  // namespace comfyd::fleet
