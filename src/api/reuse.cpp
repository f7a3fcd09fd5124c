#include "api/reuse.hpp"

#include <map>
#include <utility>
#include <vector>

#include "comfy/members.hpp"

namespace comfyd::api {
namespace {

// The references in it, each an object with "info".
std::vector<json::object*> references_in(json::object& workflow) {
    std::vector<json::object*> found;
    for (auto& node : workflow) {
        json::object* members = node.value().if_object();
        json::value* inputs = members == nullptr ? nullptr : members->if_contains("inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (auto& input : inputs->get_object()) {
            json::object* reference = input.value().if_object();
            if (reference != nullptr && comfy::text_of(*reference, "__type") == "core/ASSET" &&
                comfy::object_of(*reference, "info") != nullptr) {
                found.push_back(reference);
            }
        }
    }
    return found;
}

bool has_references(const json::object& workflow) {
    for (const auto& node : workflow) {
        const json::object* members = node.value().if_object();
        const json::object* inputs =
            members == nullptr ? nullptr : comfy::object_of(*members, "inputs");
        for (std::size_t i = 0; inputs != nullptr && i < inputs->size(); ++i) {
            const json::object* reference = (inputs->begin() + i)->value().if_object();
            if (reference != nullptr && reference->contains("__type")) {
                return true;
            }
        }
    }
    return false;
}

// Each reference names its content alone: the hash that a client gives beside an id is not looked
// at by anybody else.
Task<Result<>> name_contents(const Services& services, std::string tenant, json::object& workflow) {
    std::map<std::string, std::string> hashes;  // by id
    for (json::object* reference : references_in(workflow)) {
        const json::object& info = reference->at("info").get_object();
        const std::string id = comfy::text_of(info, "id");
        std::string hash = comfy::text_of(info, "hash");
        if (!id.empty() && !hashes.contains(id)) {
            const auto parsed = AssetId::parse(id);
            if (!parsed) {
                co_return fail(Code::missing_asset, "'" + id + "' is not the id of an asset");
            }
            auto asset = co_await services.assets.get(tenant, *parsed);
            if (!asset) {
                co_return fail(std::move(asset.error()));
            }
            hashes[id] = std::move(asset->hash);
        }
        if (!id.empty()) {
            hash = hashes.at(id);
        }
        (*reference)["info"] = json::object{{"hash", hash}};
    }
    co_return Result<>();
}

}  // namespace

Result<> decode_reuse(const json::object& from, jobs::Spec& spec) {
    const auto reuse = json::find_bool(from, "reuse");
    if (!reuse) {
        return fail(reuse.error());
    }
    spec.reuse = *reuse;
    return {};
}

bool wants_reuse(const ApiOptions& options, const jobs::Spec& spec) {
    return spec.reuse.value_or(options.reuse_tenants.contains(spec.tenant));
}

Task<Result<ReuseKey>> find_reuse_key(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& workflow,
    const jobs::Spec& spec
) {
    workflow::ReuseOptions options;
    options.targets = spec.targets;
    options.extra_data = spec.extra_data;
    options.never_nodes = services.options.reuse_never_nodes;
    options.generation = services.options.reuse_generation;
    options.pool = workflow::split_pool(spec.requirement).pool;
    json::object named;
    const bool has_files = has_references(workflow);
    if (has_files) {
        named = workflow;
        auto done = co_await name_contents(services, spec.tenant, named);
        if (!done) {
            co_return fail(std::move(done.error()));
        }
    }
    auto key = workflow::make_reuse_key(has_files ? named : workflow, catalogue, options);
    ReuseKey found;
    if (key) {
        found.key = std::move(*key);
    } else {
        found.why_not = std::move(key.error());
    }
    co_return found;
}

}  // namespace comfyd::api
