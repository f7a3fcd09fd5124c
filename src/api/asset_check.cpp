#include "api/asset_check.hpp"

#include <map>
#include <utility>

#include "assets/blake3.hpp"

namespace comfyd::api {
namespace {

Error missing_asset(const workflow::AssetReference& reference, const std::string& why) {
    return Error(
        Code::missing_asset,
        "node " + reference.node_id + ", input '" + reference.input + "': " + why +
            "; upload the file first and refer to the id you get",
        {{"node_errors",
          json::object{
              {reference.node_id,
               json::array{json::object{{"field", reference.input}, {"reason", "missing_asset"}}}}
          }}}
    );
}

// The id is authoritative; the hash counts only where there is no id.
Task<Result<>> check_asset(
    const std::string& tenant, const Services& services, const workflow::AssetReference& reference
) {
    if (!reference.id.empty()) {
        const auto id = AssetId::parse(reference.id);
        if (!id) {
            co_return fail(
                missing_asset(reference, "'" + reference.id + "' is not the id of an asset")
            );
        }
        auto asset = co_await services.assets.get(tenant, *id);
        if (!asset && asset.error().code == Code::not_found) {
            co_return fail(missing_asset(reference, "there is no asset " + reference.id));
        }
        if (!asset) {
            co_return fail(std::move(asset.error()));
        }
        co_return Result<>();
    }
    if (!assets::is_blake3_name(reference.hash)) {
        co_return fail(missing_asset(reference, "the asset reference has neither an id nor a hash")
        );
    }
    auto known = co_await services.assets.has_hash(tenant, reference.hash);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    if (!*known) {
        co_return fail(missing_asset(reference, "there is no asset with hash " + reference.hash));
    }
    co_return Result<>();
}

}  // namespace

// The contract's word for a reference that says nothing usable is the same as for one that leads
// nowhere; the check of the workflow would take it for an ordinary value.
Result<> check_references(const json::object& graph) {
    for (const auto& node : graph) {
        const json::object* members = node.value().if_object();
        const json::value* inputs = members == nullptr ? nullptr : json::find(*members, "inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (const auto& input : inputs->get_object()) {
            const json::object* reference = input.value().if_object();
            const json::value* type =
                reference == nullptr ? nullptr : json::find(*reference, "__type");
            if (type == nullptr || *type != "core/ASSET") {
                continue;
            }
            const json::value* about = json::find(*reference, "info");
            if (about == nullptr || !about->is_object()) {
                workflow::AssetReference named;
                named.node_id = node.key();
                named.input = input.key();
                return fail(missing_asset(named, "the asset reference has no 'info'"));
            }
        }
    }
    return {};
}

Task<Result<>> check_assets(
    std::string tenant, const Services& services, std::vector<workflow::AssetReference> references
) {
    std::map<std::pair<std::string, std::string>, bool> seen;  // a picture is often used twice
    for (const workflow::AssetReference& reference : references) {
        if (!seen.emplace(std::pair(reference.id, reference.hash), true).second) {
            continue;
        }
        auto found = co_await check_asset(tenant, services, reference);
        if (!found) {
            co_return found;
        }
    }
    co_return Result<>();
}

}  // namespace comfyd::api
