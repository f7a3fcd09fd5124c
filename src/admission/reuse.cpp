#include "admission/reuse.hpp"

#include <map>
#include <utility>
#include <vector>

#include "jobs/output_wishes.hpp"
#include "workflow/files/asset_ref.hpp"

namespace comfyd::admission {
namespace {

// The references that say something.
std::vector<json::value*> references_in(json::object& workflow) {
    std::vector<json::value*> found;
    workflow::each_asset_ref(workflow, [&found](auto, auto, json::value& value) {
        if (workflow::AssetRef::read(value)) {
            found.push_back(&value);
        }
    });
    return found;
}

bool has_references(const json::object& workflow) {
    bool found = false;
    workflow::each_asset_ref(workflow, [&found](auto, auto, const json::value&) { found = true; });
    return found;
}

// Each reference names its content alone: the hash that a client gives beside an id is not looked
// at by anybody else.
Task<Result<>> name_contents(const Desk& desk, std::string tenant, json::object& workflow) {
    std::map<std::string, std::string> hashes;  // by id
    for (json::value* place : references_in(workflow)) {
        workflow::AssetRef named = *workflow::AssetRef::read(*place);
        if (!named.id.empty() && !hashes.contains(named.id)) {
            const auto id = AssetId::parse(named.id);
            if (!id) {
                co_return fail(Code::missing_asset, "'" + named.id + "' is not the id of an asset");
            }
            auto asset = co_await desk.assets.get(tenant, *id);
            if (!asset) {
                co_return fail(std::move(asset.error()));
            }
            hashes[named.id] = std::move(asset->hash);
        }
        const std::string& hash = named.id.empty() ? named.hash : hashes.at(named.id);
        *place = workflow::AssetRef{.hash = hash}.to_json();
    }
    co_return Result<>();
}

// Another kind of GPU computes other pictures, and what was asked for in one region is not to come
// from another. How much memory there was shows in no picture.
std::string place_of(const Requirement& requirement) {
    const MachineWish machine = requirement.machine();
    return machine.gpu.empty() && machine.region.empty()
               ? machine.pool
               : Requirement()
                     .on({.pool = machine.pool, .gpu = machine.gpu, .region = machine.region})
                     .encoded();
}

}  // namespace

bool wants_reuse(const Rules& rules, const jobs::Spec& spec) {
    if (spec.reuse) {
        return *spec.reuse;
    }
    const auto own = rules.tenants->find(spec.tenant);
    return own && own->reuse;
}

Task<Result<ReuseKey>> find_reuse_key(
    const Desk& desk,
    const workflow::Catalogue& catalogue,
    const json::object& workflow,
    const jobs::Spec& spec
) {
    workflow::ReuseOptions options;
    options.targets = spec.targets;
    options.extra_data = spec.extra_data;
    options.never_nodes = desk.rules.reuse_never_nodes;
    options.generation = desk.rules.reuse_generation;
    // What was made of the outputs for one is not what another asks for.
    const json::object wishes = jobs::OutputWishes::of(spec.dialect_data).to_json();
    if (!wishes.empty()) {
        options.generation += '\n' + json::serialize_canonical(wishes);
    }
    options.pool = place_of(spec.requirement);
    json::object named;
    const bool has_files = has_references(workflow);
    if (has_files) {
        named = workflow;
        auto done = co_await name_contents(desk, spec.tenant, named);
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

}  // namespace comfyd::admission
