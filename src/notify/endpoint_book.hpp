// Tenants' endpoints in memory, as all nodes have them: read again whenever one was changed, by
// whichever node. What is known here is what changes of jobs are routed by.
//
// Any thread, but for start() and stop().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/task.hpp"
#include "notify/endpoint_store.hpp"
#include "notify/routing.hpp"

namespace comfyd::notify {

inline constexpr std::size_t kEndpointsPerTenantMax = 100;

using EndpointPtr = std::shared_ptr<const Endpoint>;

class EndpointBook {
public:
    // The last three outlive it.
    EndpointBook(Executor executor, Clock& clock, EndpointStore& store, Routing& routing);
    ~EndpointBook();

    // Reads what was changed. Whoever answers a request about endpoints does so first.
    Task<Result<>> refresh();
    // On the executor: refresh() every second.
    void start();
    Task<> stop();

    EndpointPtr find(EndpointId id) const;                                // nullptr: there is none
    std::vector<EndpointPtr> of_tenant(const std::string& tenant) const;  // oldest first
    std::vector<EndpointPtr> of_all() const;                              // likewise

    // Stores it as a change of what is known here, which knows it afterwards. Code::conflict when
    // another was faster, and for a new one above kEndpointsPerTenantMax.
    Task<Result<EndpointPtr>> save(Endpoint endpoint);
    Task<Result<bool>> remove(EndpointId id);
    // Nothing is sent to it any more, until somebody enables it. One that is not there is no
    // failure.
    Task<Result<>> disable(EndpointId id, std::string why);

private:
    struct Known {
        std::uint64_t changes = 0;
        std::map<EndpointId, EndpointPtr> endpoints;
    };

    Task<> keep_up();
    Task<Result<>> read_all();
    std::shared_ptr<const Known> known() const;

    Executor executor_;
    Clock& clock_;
    EndpointStore& store_;
    Routing& routing_;
    std::optional<TaskGroup> group_;  // from start() to stop()
    mutable Mutex mutex_;
    std::shared_ptr<const Known> known_ COMFYD_GUARDED_BY(mutex_) = std::make_shared<Known>();
    bool has_read_ COMFYD_GUARDED_BY(mutex_) = false;
};

}  // namespace comfyd::notify
