#include "api/dialects/native/hidden.hpp"

#include <fstream>

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
    std::ifstream in(tenant_folder(folder_, tenant) / kFile);
    for (std::string line; std::getline(in, line);) {
        // A line that was cut off by a crash is none.
        if (const auto id = JobId::parse(line)) {
            view.jobs.insert(*id);
        }
    }
    return &tenants_.emplace(tenant, std::move(view)).first->second;
}

Result<> Hidden::append(const std::string& tenant, const std::string& lines) {
    return append_file(tenant_folder(folder_, tenant) / kFile, lines);
}

Result<> Hidden::add(const std::string& tenant, const std::vector<JobId>& jobs) {
    const std::lock_guard lock(mutex_);
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
    if (auto stored = append(tenant, lines); !stored) {
        return stored;
    }
    (*view)->jobs.insert(jobs.begin(), jobs.end());
    return {};
}

Result<Hidden::View> Hidden::view(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    auto view = load(tenant);
    if (!view) {
        return fail(std::move(view.error()));
    }
    return **view;
}

}  // namespace comfyd::api::native
