#include "api/dialects/native/hidden.hpp"

#include <iterator>
#include <utility>

#include "api/dialects/native/context.hpp"
#include "base/disk.hpp"

namespace comfyd::api::native {
namespace {

constexpr const char* kFile = "hidden";

}  // namespace

// Reads what came since the last time, also from other processes.
Result<Hidden::View*> Hidden::load(const std::string& tenant) {
    const auto known =
        tenants_.try_emplace(tenant, admission::tenant_folder(folder_, tenant) / kFile).first;
    Tenant& hidden = known->second;
    auto read = hidden.lines.read(
        [&hidden] { hidden.view.jobs.clear(); },
        [&hidden](std::string_view line) {
            if (const auto id = JobId::parse(line)) {
                hidden.view.jobs.insert(*id);
            }
        }
    );
    if (!read) {
        return fail(std::move(read.error()));
    }
    return &hidden.view;
}

Result<> Hidden::shorten(const std::string& tenant, const View& view) {
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
    return write_file(admission::tenant_folder(folder_, tenant) / kFile, lines);
}

Result<> Hidden::add(const std::string& tenant, const std::vector<JobId>& jobs) {
    const Lock lock(mutex_);
    const SharedLines shared(admission::tenant_folder(folder_, tenant) / kFile);
    const auto turn = shared.take_turn();
    if (!turn) {
        return fail(turn.error());
    }
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
    if (auto stored = shared.append(lines); !stored) {
        return stored;
    }
    view = load(tenant);
    return view ? shorten(tenant, **view) : fail(std::move(view.error()));
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
