// Jobs that a tenant took out of its native history. They stay in the ledger and in every other
// view. Any thread; durable: one line per id is appended to a file of the tenant. The latest
// kJobsMax of a tenant are remembered; by the time that older ones are forgotten they are far back
// in its history, if they are kept at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/mutex.hpp"
#include "base/shared_lines.hpp"

namespace comfyd::api::native {

class Hidden {
public:
    static constexpr std::size_t kJobsMax = 10'000;

    explicit Hidden(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Both touch the disk: for the pool. Code::storage_*.
    Result<> add(const std::string& tenant, const std::vector<JobId>& jobs);
    // All that are hidden now.
    struct View {
        std::set<JobId> jobs;  // oldest first
        bool contains(const JobId& job) const { return jobs.contains(job); }
    };
    Result<View> view(const std::string& tenant);

private:
    struct Tenant {
        explicit Tenant(std::filesystem::path file) : lines(std::move(file)) {}
        SharedLines lines;
        View view;
    };

    Result<View*> load(const std::string& tenant) COMFYD_REQUIRES(mutex_);
    // Forgets the oldest half when there are too many.
    Result<> shorten(const std::string& tenant, const View& view);

    std::filesystem::path folder_;
    Mutex mutex_;
    std::unordered_map<std::string, Tenant> tenants_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::api::native
