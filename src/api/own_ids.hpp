// Ids that clients gave to their prompts themselves, as ComfyUI lets them. Any thread. What was
// before the process started is read from the ledger when a tenant first asks for an id that is not
// known. Of the latest kIdsMax of a tenant; older ones are forgotten.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/task.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

struct Call;
struct Services;

class OwnIds {
public:
    static constexpr std::size_t kIdsMax = 10'000;

    void add(const std::string& tenant, const std::string& own_id, const JobId& job);
    // Oldest first: a client may use an id again.
    std::vector<JobId> find(const std::string& tenant, const std::string& own_id) const;
    bool is_loaded(const std::string& tenant) const;
    void set_loaded(const std::string& tenant);

private:
    struct Tenant {
        bool loaded = false;
        std::unordered_map<std::string, std::vector<JobId>> jobs;
        std::map<JobId, std::string> ids;  // the other way round, oldest first
    };
    mutable Mutex mutex_;
    std::unordered_map<std::string, Tenant> tenants_ COMFYD_GUARDED_BY(mutex_);
};

// Those of the tenant's newest native jobs; once.
Task<Result<>> load_own_ids(const Services& services, std::string tenant);

// The job that a request means: by its own id, or by the one that its client gave it, then the
// newest. Code::not_found where no job can have the id; whether one has is not looked up.
Task<Result<JobId>> find_job_id(const Call& call, const Services& services, std::string text);

}  // namespace comfyd::api
