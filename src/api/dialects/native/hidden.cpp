#include "api/dialects/native/hidden.hpp"

#include <fstream>
#include <iterator>
#include <utility>

#include "api/dialects/native/context.hpp"
#include "base/disk.hpp"

namespace comfyd::api::native {
namespace {

constexpr const char* kFile = "hidden";

}  // namespace

Result<Hidden::View*> Hidden::load(const std::string& tenant) {
    const auto known = tenants_.find(tenant);
    if (known != tenants_.end()) {
        return &known->second;
    }
    View view;
    std::ifstream in(admission::tenant_folder(folder_, tenant) / kFile);
    for (std::string line; std::getline(in, line);) {
        // A line that was cut off by a crash is none.
        if (const auto id = JobId::parse(line)) {
            view.jobs.insert(*id);
        }
    }
    return &tenants_.emplace(tenant, std::move(view)).first->second;
}

Result<> Hidden::shorten(const std::string& tenant, View& view) {
    if (view.jobs.size() <= 2 * kJobsMax) {
        return {};
    }
    std::set<JobId> latest(
        std::prev(view.jobs.end(), static_cast<std::ptrdiff_t>(kJobsMax)), view.jobs.end()
    );
    std::string lines;
    for (const JobId& job : latest) {
        lines += job.to_string() + "\n";
    }
    auto written = write_file(admission::tenant_folder(folder_, tenant) / kFile, lines);
    if (written) {
        view.jobs = std::move(latest);
    }
    return written;
}

Result<> Hidden::add(const std::string& tenant, const std::vector<JobId>& jobs) {
    const Lock lock(mutex_);
    auto view = load(tenant);
    if (!view) {
        return fail(std::move(view.error()));
    }
    std::string lines;
    for (const JobId& job : jobs) {
        if (!(*view)->contains(job)) {
            lines += job.to_string() + "\n";
        }
    }
    if (lines.empty()) {
        return {};
    }
    if (auto stored = append_file(admission::tenant_folder(folder_, tenant) / kFile, lines);
        !stored) {
        return stored;
    }
    (*view)->jobs.insert(jobs.begin(), jobs.end());
    return shorten(tenant, **view);
}

Result<Hidden::View> Hidden::view(const std::string& tenant) {
    const Lock lock(mutex_);
    auto view = load(tenant);
    if (!view) {
        return fail(std::move(view.error()));
    }
    return **view;
}

}  // namespace comfyd::api::native
