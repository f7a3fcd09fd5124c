#include "admission/asset_check.hpp"

#include <map>
#include <optional>
#include <utility>

#include "assets/blake3.hpp"
#include "workflow/files/asset_ref.hpp"

namespace comfyd::admission {
namespace {

struct Use {
    std::string node_id;
    std::string input;
    std::optional<workflow::AssetRef> asset;  // nullopt: it says nothing
};

std::vector<Use> uses_in(const json::object& graph) {
    std::vector<Use> found;
    workflow::each_asset_ref(
        graph,
        [&found](std::string_view node_id, std::string_view input, const json::value& value) {
            found.push_back(
                {std::string(node_id), std::string(input), workflow::AssetRef::read(value)}
            );
        }
    );
    return found;
}

workflow::Issue missing(const Use& use, const std::string& why) {
    workflow::Issue issue;
    issue.stage = workflow::Stage::semantic;
    issue.code = kMissingAsset;
    issue.node_id = use.node_id;
    issue.input = use.input;
    issue.message = "node " + use.node_id + ", input '" + use.input + "': " + why +
                    "; upload the file first and refer to the id you get";
    return issue;
}

// Why it cannot be had; empty: it can. The id is authoritative; the hash counts only where there is
// no id.
Task<Result<std::string>> why_missing(
    const Desk& desk, std::string tenant, std::optional<workflow::AssetRef> asset
) {
    if (!asset) {
        co_return "the asset reference has no 'info'";
    }
    if (!asset->id.empty()) {
        const auto id = AssetId::parse(asset->id);
        if (!id) {
            co_return "'" + asset->id + "' is not the id of an asset";
        }
        auto found = co_await desk.assets.get(std::move(tenant), *id);
        if (!found && found.error().code == Code::not_found) {
            co_return "there is no asset " + asset->id;
        }
        co_return found ? Result<std::string>("") : fail(std::move(found.error()));
    }
    if (!assets::is_blake3_name(asset->hash)) {
        co_return "the asset reference has neither an id nor a hash";
    }
    auto known = co_await desk.assets.has_hash(std::move(tenant), asset->hash);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    co_return *known ? "" : "there is no asset with hash " + asset->hash;
}

}  // namespace

Task<Result<std::vector<workflow::Issue>>> find_missing_assets(
    const Desk& desk, std::string tenant, const json::object& graph
) {
    std::vector<workflow::Issue> issues;
    // By id and hash: a picture is often used twice.
    std::map<std::pair<std::string, std::string>, std::string> told;
    for (const Use& use : uses_in(graph)) {
        const auto named = use.asset.value_or(workflow::AssetRef());
        auto known = told.find({named.id, named.hash});
        if (known == told.end()) {
            auto why = co_await why_missing(desk, tenant, use.asset);
            if (!why) {
                co_return fail(std::move(why.error()));
            }
            known = told.emplace(std::pair(named.id, named.hash), std::move(*why)).first;
        }
        if (!known->second.empty() && issues.size() < workflow::kIssuesMax) {
            issues.push_back(missing(use, known->second));
        }
    }
    co_return issues;
}

}  // namespace comfyd::admission
