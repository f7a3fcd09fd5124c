#include "api/own_ids.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {
namespace {

constexpr int kPage = 1'000;

// Ids that comfyd makes are of version 7; clients' own are hardly ever.
bool may_be_ours(const JobId& id) {
    return id.uuid.bytes[6] >> 4 == 7;
}

}  // namespace

void OwnIds::add(const std::string& tenant, const std::string& own_id, const JobId& job) {
    const Lock lock(mutex_);
    Tenant& of = tenants_[tenant];
    if (!of.ids.emplace(job, own_id).second) {
        return;
    }
    auto& jobs = of.jobs[own_id];
    jobs.insert(std::lower_bound(jobs.begin(), jobs.end(), job), job);
    if (of.ids.size() > kIdsMax) {
        const auto oldest = of.ids.begin();
        const auto entry = of.jobs.find(oldest->second);
        std::erase(entry->second, oldest->first);
        if (entry->second.empty()) {
            of.jobs.erase(entry);
        }
        of.ids.erase(oldest);
    }
}

std::vector<JobId> OwnIds::find(const std::string& tenant, const std::string& own_id) const {
    const Lock lock(mutex_);
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end()) {
        return {};
    }
    const auto jobs = known->second.jobs.find(own_id);
    return jobs == known->second.jobs.end() ? std::vector<JobId>() : jobs->second;
}

bool OwnIds::is_loaded(const std::string& tenant) const {
    const Lock lock(mutex_);
    const auto known = tenants_.find(tenant);
    return known != tenants_.end() && known->second.loaded;
}

void OwnIds::set_loaded(const std::string& tenant) {
    const Lock lock(mutex_);
    tenants_[tenant].loaded = true;
}

Task<Result<>> load_own_ids(const Services& services, std::string tenant) {
    if (services.own_ids->is_loaded(tenant)) {
        co_return Result<>();
    }
    jobs::ListQuery query;
    query.tenant = tenant;
    query.dialect = native::kDialect;
    query.limit = kPage;
    std::vector<jobs::Job> found;
    while (found.size() < OwnIds::kIdsMax) {
        auto page = co_await services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(found));
        if (!page->next_cursor) {
            break;
        }
        query.cursor = page->next_cursor;
    }
    for (const jobs::Job& job : found) {
        if (const std::string id = native::prompt_id_of(job); id != job.id.to_string()) {
            services.own_ids->add(tenant, id, job.id);
        }
    }
    services.own_ids->set_loaded(tenant);
    co_return Result<>();
}

Task<Result<JobId>> find_job_id(const Call& call, const Services& services, std::string text) {
    const auto id = JobId::parse(text);
    if (!id) {
        // The text is not shown: bytes of a path need not be UTF-8.
        co_return fail(Code::not_found, "there is no job with this id: an id is a UUID");
    }
    const std::string tenant = call.caller.tenant;
    if (!may_be_ours(*id)) {
        auto loaded = co_await load_own_ids(services, tenant);
        if (!loaded) {
            co_return fail(std::move(loaded.error()));
        }
    }
    const auto known = services.own_ids->find(tenant, id->to_string());
    co_return known.empty() ? *id : known.back();
}

}  // namespace comfyd::api
