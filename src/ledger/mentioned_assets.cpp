#include "ledger/mentioned_assets.hpp"

#include <algorithm>
#include <cctype>

#include "base/find_mark.hpp"

namespace comfyd::ledger {
namespace {

constexpr std::string_view kHash = "blake3:";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kIdBytes = 36;
constexpr std::size_t kFirstDash = 8;

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isxdigit(c) != 0;
    });
}

void find_hashes(std::string_view text, std::set<std::string>& into) {
    for (auto at = text.find(kHash); at != text.npos; at = text.find(kHash, at + 1)) {
        const std::string_view name = text.substr(at, kHash.size() + kHashDigits);
        if (name.size() == kHash.size() + kHashDigits && is_hex(name.substr(kHash.size()))) {
            into.emplace(name);
        }
    }
}

void find_ids(std::string_view text, std::set<AssetId>& into) {
    for (auto dash = text.find('-', kFirstDash); dash != text.npos;
         dash = text.find('-', dash + 1)) {
        if (const auto id = AssetId::parse(text.substr(dash - kFirstDash, kIdBytes))) {
            into.insert(*id);
        }
    }
}

}  // namespace

MentionedAssets mentioned_assets(std::string_view workflow) {
    // A slash may be escaped in JSON, so the name alone is looked for.
    const bool has_references = workflow.find("ASSET") != workflow.npos;
    MentionedAssets found;
    if (has_references || holds_mark(workflow, "asset:")) {
        find_ids(workflow, found.ids);
    }
    if (has_references || holds_mark(workflow, kHash)) {
        find_hashes(workflow, found.hashes);
    }
    return found;
}

}  // namespace comfyd::ledger
