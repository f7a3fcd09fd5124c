// Which assets the text of a workflow mentions. They are found wherever they stand in it: what
// looks like a mention and is none costs a row and nothing else.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/id.hpp"

namespace comfyd::ledger {

struct MentionedAssets {
    std::set<AssetId> ids;
    std::set<std::string> hashes;
};
// None in a workflow without references to assets.
MentionedAssets mentioned_assets(std::string_view workflow);

}  // namespace comfyd::ledger
