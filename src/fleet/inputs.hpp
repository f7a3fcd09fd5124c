// Asset references in a workflow: objects {"__type":"core/ASSET","info":{"id","hash","file_path"}}
// in the place of an input value, to be replaced by the name under which a worker has the file.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assets/store.hpp"
#include "base/json.hpp"
#include "base/task.hpp"

namespace comfyd::fleet {

struct AssetUse {
    json::value* place = nullptr;  // in the prompt it was found in
    std::string node_id;
    std::string id;         // may be empty when there is a hash
    std::string hash;       // may be empty when there is an id
    std::string file_path;  // may be empty
};

// Quick and rough: false means that find_asset_uses() would find none.
bool may_use_assets(std::string_view workflow);
std::vector<AssetUse> find_asset_uses(json::object& prompt);

// A name that no two different files share: <the digits of the hash><extension>.
std::string input_name(const assets::Asset& asset);

// The asset that the tenant means. Code::missing_asset naming the node.
Task<Result<assets::Asset>> find_asset(assets::Store& store, std::string tenant, AssetUse use);

}  // namespace comfyd::fleet
