#include "api/dialects/native/context.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "comfy/messages.hpp"

namespace comfyd::api::native {
namespace {

constexpr int kPage = 1'000;
constexpr int kIdsLoadedMax = 10'000;

// The ids of the tenant's newest native jobs.
Task<Result<>> load_ids(Context& context, std::string tenant) {
    jobs::ListQuery query;
    query.tenant = tenant;
    query.dialect = kDialect;
    query.limit = kPage;
    std::vector<jobs::Job> found;
    while (found.size() < kIdsLoadedMax) {
        auto page = co_await context.services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(found));
        if (!page->next_cursor) {
            break;
        }
        query.cursor = page->next_cursor;
    }
    for (auto job = found.rbegin(); job != found.rend(); ++job) {
        if (const std::string id = prompt_id_of(*job); id != job->id.to_string()) {
            context.prompt_ids.add(tenant, id, job->id);
        }
    }
    context.prompt_ids.set_loaded(tenant);
    co_return Result<>();
}

}  // namespace

void PromptIds::add(const std::string& tenant, const std::string& prompt_id, const JobId& job) {
    const std::lock_guard lock(mutex_);
    auto& jobs = tenants_[tenant].jobs[prompt_id];
    const auto at = std::lower_bound(jobs.begin(), jobs.end(), job);
    if (at == jobs.end() || *at != job) {
        jobs.insert(at, job);
    }
}

std::vector<JobId> PromptIds::find(const std::string& tenant, const std::string& prompt_id) const {
    const std::lock_guard lock(mutex_);
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end()) {
        return {};
    }
    const auto jobs = known->second.jobs.find(prompt_id);
    return jobs == known->second.jobs.end() ? std::vector<JobId>() : jobs->second;
}

bool PromptIds::is_loaded(const std::string& tenant) const {
    const std::lock_guard lock(mutex_);
    const auto known = tenants_.find(tenant);
    return known != tenants_.end() && known->second.loaded;
}

void PromptIds::set_loaded(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    tenants_[tenant].loaded = true;
}

std::int64_t Context::next_number(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    return numbers_[tenant]++;
}

net::Response trouble() {
    return text_reply(500, "500 Internal Server Error\n\nServer got itself in trouble");
}

net::Response encode_native_error(const Error& error) {
    const int status = info(error.code).http_status;
    if (error.code == Code::method_not_allowed || error.code == Code::payload_too_large) {
        return text_reply(
            status,
            error.code == Code::method_not_allowed ? "405: Method Not Allowed" : error.message
        );
    }
    const json::object body{
        {"error",
         {{"type", to_string(error.code)},
          {"message", error.message},
          {"details", ""},
          {"extra_info", error.details}}},
        {"node_errors", json::object()},
    };
    return json_reply(status, body);
}

Task<Result<json::value>> read_json(Call& call, const Services& services) {
    auto body = co_await call.exchange.read_body(services.options.json_body_bytes_max);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto parsed = comfy::parse_python(*body);
    co_return parsed ? std::move(*parsed) : json::value();
}

Task<Result<std::vector<jobs::Job>>> find_jobs(
    Context& context, std::string tenant, std::string prompt_id
) {
    auto ids = context.prompt_ids.find(tenant, prompt_id);
    if (const auto own = JobId::parse(prompt_id)) {
        ids.push_back(*own);
    }
    std::vector<jobs::Job> found;
    for (int round = 0; round < 2; ++round) {
        for (const JobId& id : ids) {
            auto view = co_await context.services.jobs.get(tenant, id);
            if (view) {
                found.push_back(std::move(view->job));
            } else if (view.error().code != Code::not_found) {
                co_return fail(std::move(view.error()));
            }
        }
        if (!found.empty() || context.prompt_ids.is_loaded(tenant)) {
            break;
        }
        auto loaded = co_await load_ids(context, tenant);
        if (!loaded) {
            co_return fail(std::move(loaded.error()));
        }
        ids = context.prompt_ids.find(tenant, prompt_id);
    }
    co_return found;
}

}  // namespace comfyd::api::native
