#include "api/dialects/native/lookup.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

constexpr int kRecentJobs = 200;
constexpr std::size_t kFilesMax = 256;  // of one prompt

std::string joined(const FileQuery& query) {
    std::string path = query.folder + "/";
    if (!query.subfolder.empty()) {
        path += query.subfolder + "/";
    }
    return path + query.name;
}

const jobs::Output* find_output(
    const jobs::Job& job, const FileQuery& query, std::string_view subfolder
) {
    const auto found = std::find_if(job.outputs.begin(), job.outputs.end(), [&](const auto& one) {
        return one.name == query.name && one.subfolder == subfolder && one.folder == query.folder;
    });
    return found == job.outputs.end() ? nullptr : &*found;
}

Task<Result<std::optional<FoundFile>>> load(
    Context& context, std::string tenant, AssetId id, std::string name
) {
    auto asset = co_await context.services.assets.get(std::move(tenant), id);
    if (!asset && asset.error().code == Code::not_found) {
        co_return std::nullopt;
    }
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    asset->file_path = std::move(name);
    co_return FoundFile{std::move(*asset)};
}

Task<Result<std::optional<FoundFile>>> find_of_job(
    Context& context, std::string tenant, FileQuery query, InnerFolder inner
) {
    auto view = co_await context.services.jobs.get(tenant, inner.job);
    if (!view && view.error().code == Code::not_found) {
        co_return std::nullopt;
    }
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    if (const jobs::Output* output = find_output(view->job, query, inner.subfolder)) {
        auto found = co_await load(context, std::move(tenant), output->asset, query.name);
        co_return found;
    }
    if (view->job.state == jobs::State::running) {
        FoundFile found;
        found.job = inner.job;
        found.live = {query.name, inner.subfolder, query.folder};
        co_return found;
    }
    co_return std::nullopt;
}

Task<Result<std::optional<FoundFile>>> find_recent(
    Context& context, std::string tenant, FileQuery query
) {
    jobs::ListQuery recent;
    recent.tenant = tenant;
    recent.states = {jobs::State::completed};
    recent.limit = kRecentJobs;
    auto page = co_await context.services.jobs.list(recent);
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    for (const jobs::Job& job : page->jobs) {
        if (const jobs::Output* output = find_output(job, query, query.subfolder)) {
            auto found = co_await load(context, std::move(tenant), output->asset, query.name);
            co_return found;
        }
    }
    co_return std::nullopt;
}

bool is_loader(std::string_view class_type) {
    return class_type.find("Load") != std::string_view::npos;
}

struct Use {
    FileReference reference;
    FileQuery query;
};

std::vector<Use> find_uses(const json::object& prompt) {
    std::vector<Use> uses;
    for (const auto& [id, node] : prompt) {
        const json::object* members = node.if_object();
        const std::string type = members == nullptr ? "" : comfy::text_of(*members, "class_type");
        const json::object* inputs =
            is_loader(type) ? comfy::object_of(*members, "inputs") : nullptr;
        if (inputs == nullptr) {
            continue;
        }
        for (const auto& [name, value] : *inputs) {
            const auto* text = value.if_string();
            if (text == nullptr || text->empty() || text->size() > 1'024 ||
                uses.size() >= kFilesMax) {
                continue;
            }
            Use use{{std::string(id), std::string(name), std::string(*text), {}}, {}};
            use.query.folder = type.find("Output") == std::string::npos ? "input" : "output";
            std::string path = use.reference.value;
            split_annotation(path, use.query.folder);
            const auto slash = path.rfind('/');
            use.query.name = path.substr(slash == std::string::npos ? 0 : slash + 1);
            use.query.subfolder = slash == std::string::npos ? "" : path.substr(0, slash);
            // A name without an extension is a choice of another kind, for example a channel.
            if (use.query.name.find('.') != std::string::npos) {
                uses.push_back(std::move(use));
            }
        }
    }
    return uses;
}

}  // namespace

void split_annotation(std::string& name, std::string& folder) {
    for (const std::string_view known : {"input", "output", "temp"}) {
        const std::string ending = " [" + std::string(known) + "]";
        if (name.ends_with(ending)) {
            name.resize(name.size() - ending.size());
            folder = known;
            return;
        }
    }
}

Task<Result<std::optional<FoundFile>>> find_file(
    Context& context, std::string tenant, FileQuery query
) {
    if (const auto inner = inner_folder(query.subfolder)) {
        auto found = co_await find_of_job(context, tenant, query, *inner);
        if (!found || *found) {
            co_return found;
        }
    }
    auto named = co_await context.parts.pool.run([&context, tenant, path = joined(query)] {
        return context.files.find(tenant, path);
    });
    if (!named) {
        co_return fail(std::move(named.error()));
    }
    if (*named) {
        auto found = co_await load(context, std::move(tenant), (*named)->asset, query.name);
        co_return found;
    }
    if (query.folder == "input") {
        co_return std::nullopt;
    }
    auto found = co_await find_recent(context, std::move(tenant), std::move(query));
    co_return found;
}

Task<Result<std::vector<FileReference>>> find_references(
    Context& context, std::string tenant, const json::object& prompt
) {
    auto uses = find_uses(prompt);
    std::vector<FileReference> references;
    for (Use& use : uses) {
        auto found = co_await find_file(context, tenant, use.query);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (!*found || !(*found)->asset) {
            continue;  // perhaps a file of the worker's own
        }
        const assets::Asset& asset = *(*found)->asset;
        use.reference.reference = {
            {"__type", "core/ASSET"},
            {"info",
             {{"id", asset.id.to_string()},
              {"hash", asset.hash},
              {"file_path", use.query.name},
              {"name", use.reference.value}}},
        };
        references.push_back(std::move(use.reference));
    }
    co_return references;
}

void apply_references(json::object& prompt, const std::vector<FileReference>& references) {
    for (const FileReference& one : references) {
        json::value* node = prompt.if_contains(one.node);
        json::value* inputs = node != nullptr && node->is_object()
                                  ? node->get_object().if_contains("inputs")
                                  : nullptr;
        if (inputs != nullptr && inputs->is_object()) {
            inputs->get_object()[one.input] = one.reference;
        }
    }
}

}  // namespace comfyd::api::native
