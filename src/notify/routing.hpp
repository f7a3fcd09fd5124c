// Who is told of which event beside the webhook that came with a job: the endpoints of its tenant
// and whom the operator's rules name. The ledger asks it inside the call that stores a change, so
// it is a value that never changes and answers without I/O.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "notify/target.hpp"

namespace comfyd::notify {

// Which events go to a receiver.
struct Route {
    Recipient to;                         // the name is no other route's, and not kOwnWebhook
    std::optional<std::string> tenant{};  // nullopt: of all
    std::string workflow_id{};            // empty: of any
    std::vector<std::string> events{};    // as those of a webhook
    Millis ran_at_least{0};               // above 0: only of jobs that have ended after such a run
};

// Immutable; any thread.
class Routes {
public:
    Routes() = default;
    explicit Routes(const std::vector<Route>& routes);

    // `job` as it is after the event. At most one entry of a name.
    std::vector<Recipient> of(const jobs::Job& job, const jobs::Event& event) const;
    // Whether of() may ever name somebody for progress of the job.
    bool want_progress(const jobs::Job& job) const;

private:
    std::vector<Route> of_all_;
    std::map<std::string, std::vector<Route>> by_tenant_;
};

// The routes that hold now. Any thread.
class Routing {
public:
    // `rules` are the operator's.
    explicit Routing(std::vector<Route> rules = {});

    std::shared_ptr<const Routes> now() const;
    // Of all tenants' endpoints.
    void set_endpoints(std::vector<Route> endpoints);

private:
    const std::vector<Route> rules_;
    mutable Mutex mutex_;
    std::shared_ptr<const Routes> now_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::notify
