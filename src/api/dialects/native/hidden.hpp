// Jobs that a tenant took out of its native history. They stay in the ledger and in every other
// view. Any thread; durable: one line per id is appended to a file of the tenant.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"

namespace comfyd::api::native {

class Hidden {
public:
    explicit Hidden(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Both touch the disk: for the pool. Code::storage_*.
    Result<> add(const std::string& tenant, const std::vector<JobId>& jobs);
    // All that are hidden now.
    struct View {
        std::unordered_set<JobId> jobs;
        bool contains(const JobId& job) const { return jobs.contains(job); }
    };
    Result<View> view(const std::string& tenant);

private:
    Result<View*> load(const std::string& tenant);
    Result<> append(const std::string& tenant, const std::string& lines);

    std::filesystem::path folder_;
    std::mutex mutex_;
    std::unordered_map<std::string, View> tenants_;
};

}  // namespace comfyd::api::native
