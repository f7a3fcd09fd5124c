#include "admission/tenant_files.hpp"

#include <algorithm>
#include <utility>

#include "admission/job_folders.hpp"

namespace comfyd::admission {
namespace {

constexpr int kRecentJobs = 200;

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
    const Desk& desk, std::string tenant, AssetId id, std::string name
) {
    auto asset = co_await desk.assets.get(std::move(tenant), id);
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
    const Desk& desk, std::string tenant, FileQuery query, InnerFolder inner
) {
    auto view = co_await desk.jobs.get(tenant, inner.job);
    if (!view && view.error().code == Code::not_found) {
        co_return std::nullopt;
    }
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    if (const jobs::Output* output = find_output(view->job, query, inner.subfolder)) {
        auto found = co_await load(desk, std::move(tenant), output->asset, query.name);
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
    const Desk& desk, std::string tenant, FileQuery query
) {
    jobs::ListQuery recent;
    recent.tenant = tenant;
    recent.states = {jobs::State::completed};
    recent.limit = kRecentJobs;
    auto page = co_await desk.jobs.list(recent);
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    for (const jobs::Job& job : page->jobs) {
        if (const jobs::Output* output = find_output(job, query, query.subfolder)) {
            auto found = co_await load(desk, std::move(tenant), output->asset, query.name);
            co_return found;
        }
    }
    co_return std::nullopt;
}

}  // namespace

Task<Result<std::optional<FoundFile>>> find_file(
    const Desk& desk, std::string tenant, FileQuery query
) {
    if (const auto inner = inner_folder(query.subfolder)) {
        auto found = co_await find_of_job(desk, tenant, query, *inner);
        if (!found || *found) {
            co_return found;
        }
    }
    std::optional<NamedFile> named;
    if (desk.files) {
        named = co_await desk.files->find(tenant, joined(query));
    }
    if (named) {
        auto found = co_await load(desk, std::move(tenant), named->asset, query.name);
        co_return found;
    }
    if (query.folder == "input") {
        co_return std::nullopt;
    }
    auto found = co_await find_recent(desk, std::move(tenant), std::move(query));
    co_return found;
}

}  // namespace comfyd::admission
