// Packs of custom nodes, laid out for a ComfyUI before it starts: a git repository at one commit,
// or a folder of this computer; each must be in the operator's allow-list, because its code runs
// with the rights of ComfyUI. What is fetched is kept, so that the next ComfyUI has it at once. Of
// one that is in the image already it is only looked whether it is.
//
// Nothing of a repository is run here: no hooks, no filters, no submodules, no prompts, no
// redirects to places that nobody allowed. Python packages that a pack needs are not installed.
// Blocks: for a pool. Any thread; two that fetch the same do it twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::agent {

struct NodePack {
    std::string url{};               // https://… of a git repository,
    std::string commit{};            // and all digits of a commit in it; or
    std::filesystem::path folder{};  // a folder, whole
    bool is_in_image = false;        // of ComfyUI, where it was put before
};

inline constexpr std::size_t kPacksMax = 64;
inline constexpr std::size_t kPacksBytesMax = 16 * 1024;  // as one text

// "https://…@COMMIT" or a folder; after "image:" one that is there already. Whether it may be is
// for check_packs(). Code::invalid_argument.
Result<NodePack> read_pack(std::string_view text);
// Several, with spaces between. Code::invalid_argument.
Result<std::vector<NodePack>> read_packs(std::string_view words);
std::string join_packs(const std::vector<std::string>& packs);

struct PackRules {
    // URLs and folders; one that ends with '/' allows what lies below it.
    std::vector<std::string> allowed{};
    bool allows_all = false;          // whoever named them has looked
    bool allows_paths = false;        // in place of URLs: repositories on this computer
    std::filesystem::path comfyui{};  // the image's, where it has packs
    std::stop_token stop{};           // Code::cancelled
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

}  // namespace comfyd::agent
