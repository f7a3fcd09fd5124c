// Tenants' endpoints in memory, as all nodes have them: read again whenever one was changed, by
// whichever node. What is known here is what changes of jobs are routed by.
//
// Any thread, but for start() and stop().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mirror.hpp"
#include "base/task.hpp"
#include "notify/endpoint_store.hpp"
#include "notify/routing.hpp"

namespace comfyd::notify {

inline constexpr std::size_t kEndpointsPerTenantMax = 100;

using EndpointPtr = std::shared_ptr<const Endpoint>;
using Endpoints = std::map<EndpointId, EndpointPtr>;

class EndpointBook {
public:
    // The last three outlive it.
    EndpointBook(Executor executor, Clock& clock, EndpointStore& store, Routing& routing);
    ~EndpointBook();

    // Reads what was changed. Whoever answers a request about endpoints does so first.
    Task<Result<>> refresh() { return known_.refresh(); }
    // On the executor: refresh() every second.
    void start() { known_.start(); }
    Task<> stop() { return known_.stop(); }

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
    using Known = Mirror<Endpoints>;

    Task<Result<Known::Reading>> read_all();

    Clock& clock_;
    EndpointStore& store_;
    Known known_;
};

}  // namespace comfyd::notify
