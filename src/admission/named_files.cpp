#include "admission/named_files.hpp"

#include <map>
#include <optional>
#include <utility>

#include "admission/tenant_files.hpp"
#include "workflow/files/private_names.hpp"

namespace comfyd::admission {
namespace {

using workflow::FileUse;

constexpr std::size_t kLookupsMax = 256;  // for one workflow

FileQuery query_of(const FileUse& use) {
    const auto slash = use.path.rfind('/');
    FileQuery query;
    query.name = use.path.substr(slash == std::string::npos ? 0 : slash + 1);
    query.subfolder = slash == std::string::npos ? "" : use.path.substr(0, slash);
    query.folder = use.folder;
    return query;
}

workflow::AssetRef reference_to(const assets::Asset& asset, const FileUse& use) {
    return {asset.id.to_string(), asset.hash, asset.file_path, use.value};
}

// It stays inside of the folder, whatever the worker's system takes for a separator.
bool is_plain_path(const std::string& path) {
    return !path.empty() && path.front() != '/' && path.find("..") == std::string::npos &&
           path.find_first_of(std::string_view("\\:\0", 3)) == std::string::npos;
}

bool is_offered(const FileUse& use, const workflow::Catalogue& catalogue) {
    const workflow::NodeDefinition* definition = catalogue.find(use.class_type);
    if (definition == nullptr || use.folder != "input") {
        return false;
    }
    for (const workflow::InputDefinition* input : definition->all_inputs()) {
        if (input->name == use.input && input->choices != nullptr &&
            (input->offers(json::value(use.path)) || input->offers(json::value(use.value)))) {
            return true;
        }
    }
    return false;
}

workflow::Issue foreign_file(const FileUse& use) {
    workflow::Issue issue;
    issue.stage = workflow::Stage::semantic;
    issue.code = "CUSTOM_VALIDATION_FAILED";
    issue.reason = "custom_validation_failed";
    issue.node_id = use.node_id;
    issue.class_type = use.class_type;
    issue.input = use.input;
    issue.message = "node " + use.node_id + " (" + use.class_type + "), input '" + use.input +
                    "': Invalid file: " + use.value;
    issue.got = workflow::shortened(json::value(use.value));
    return issue;
}

// Looks one workflow's names up, each once.
class Search {
public:
    Search(const Desk& desk, std::string tenant) : desk_(desk), tenant_(tenant) {}

    // The tenant's own file; nullopt: it has none of the name.
    Task<Result<std::optional<assets::Asset>>> find_own(FileUse use) {
        const auto key = std::pair(use.folder, use.path);
        if (const auto known = known_.find(key); known != known_.end()) {
            co_return known->second;
        }
        if (known_.size() >= kLookupsMax) {
            co_return std::nullopt;
        }
        std::optional<assets::Asset> asset;
        if (workflow::holds_private_name(use.path)) {
            auto found = co_await find_by_hash(use);
            if (!found) {
                co_return found;
            }
            asset = std::move(*found);
        } else {
            auto found = co_await find_file(desk_, tenant_, query_of(use));
            if (!found) {
                co_return fail(std::move(found.error()));
            }
            asset = *found ? std::move((*found)->asset) : std::nullopt;
        }
        known_[key] = asset;
        co_return asset;
    }

    // The operator's, on some worker.
    Task<bool> is_on_worker(FileUse use) {
        if (use.folder != "input" || !is_plain_path(use.path) ||
            workflow::holds_private_name(use.path) || !desk_.has_input ||
            asked_.size() >= kLookupsMax) {
            co_return false;
        }
        if (const auto known = asked_.find(use.path); known != asked_.end()) {
            co_return known->second;
        }
        const bool has = co_await desk_.has_input(tenant_, use.path);
        asked_[use.path] = has;
        co_return has;
    }

private:
    // A name that the tenant's own pictures tell.
    Task<Result<std::optional<assets::Asset>>> find_by_hash(FileUse use) {
        const auto hash = workflow::hash_in_private_name(use.path);
        if (!hash || use.folder != "input") {
            co_return std::nullopt;
        }
        auto found = co_await desk_.assets.find_hash(tenant_, *hash);
        if (found && *found) {
            (*found)->file_path = query_of(use).name;
        }
        co_return found;
    }

    const Desk& desk_;
    const std::string tenant_;
    std::map<std::pair<std::string, std::string>, std::optional<assets::Asset>> known_;
    std::map<std::string, bool> asked_;
};

}  // namespace

Task<Result<NamedFiles>> find_named_files(
    const Desk& desk,
    std::string tenant,
    const json::object& workflow,
    std::shared_ptr<const workflow::Catalogue> catalogue
) {
    NamedFiles files;
    if (catalogue->knows_workers()) {
        files.missing = workflow::find_nameless(workflow, *catalogue, !desk.rules.several_tenants);
    }
    Search search(desk, std::move(tenant));
    auto uses = workflow::find_file_uses(workflow, *catalogue);
    files.uses = uses.size();
    for (FileUse& use : uses) {
        auto own = co_await search.find_own(use);
        if (!own) {
            co_return fail(std::move(own.error()));
        }
        if (*own) {
            workflow::AssetRef asset = reference_to(**own, use);
            files.own.push_back({std::move(use), std::move(asset)});
            continue;
        }
        const bool must_exist = use.is_choice && catalogue->knows_workers();
        const bool is_private = workflow::holds_private_name(use.value);
        const bool is_made = use.is_certain && use.folder != "input";
        if (!must_exist && !is_private && !is_made) {
            continue;  // perhaps no name of a file at all
        }
        bool exists = !is_private && is_offered(use, *catalogue);
        if (!exists) {
            exists = co_await search.is_on_worker(use);
        }
        if (exists) {
            continue;
        }
        if (must_exist && !use.is_nested) {
            files.missing.push_back(
                {use.node_id, use.class_type, use.input, json::value(use.value), false}
            );
        } else {
            files.foreign.push_back(foreign_file(use));
        }
    }
    co_return files;
}

void place_own_files(json::object& workflow, const std::vector<OwnFile>& files) {
    for (const OwnFile& file : files) {
        workflow::replace_file(workflow, file.use, file.asset.to_json());
    }
}

}  // namespace comfyd::admission
