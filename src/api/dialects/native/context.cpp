#include "api/dialects/native/context.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/names.hpp"

namespace comfyd::api::native {
namespace {

// A tenant's share of the disk.
constexpr comfy::UserLimits kUserLimits{
    .settings_bytes_max = 4 * 1024 * 1024,
    .files_max = 20'000,
    .bytes_max = 2ULL * 1024 * 1024 * 1024,
};

}  // namespace

std::int64_t Context::next_number(const std::string& tenant) {
    const Lock lock(mutex_);
    return numbers_[tenant]++;
}

comfy::UserStore& Context::user_of(const std::string& tenant) {
    const Lock lock(mutex_);
    const auto folder = admission::tenant_folder(parts.folder, tenant) / "user";
    return users_.try_emplace(tenant, folder, kUserLimits).first->second;
}

Task<Result<std::vector<jobs::Job>>> find_jobs(
    Context& context, std::string tenant, std::string prompt_id
) {
    const OwnIds& own_ids = *context.services.own_ids;
    auto ids = own_ids.find(tenant, prompt_id);
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
        if (!found.empty() || own_ids.is_loaded(tenant)) {
            break;
        }
        auto loaded = co_await load_own_ids(context.services, tenant);
        if (!loaded) {
            co_return fail(std::move(loaded.error()));
        }
        ids = own_ids.find(tenant, prompt_id);
    }
    co_return found;
}

}  // namespace comfyd::api::native
