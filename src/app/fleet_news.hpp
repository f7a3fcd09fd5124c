// Tells operators' endpoints what happens to the fleet. The log of events is what is to be told: it
// is written with the changes themselves; of each endpoint a note in the ledger says how far it has
// heard. So an event is told at least once, in its order, whoever is stopped when. Of nodes that
// share a ledger one does it. Lives on one executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "bulk/telling.hpp"
#include "fleet/instances/store.hpp"
#include "jobs/notebook.hpp"
#include "notify/endpoint_book.hpp"

namespace comfyd::app {

class FleetNews {
public:
    // All references outlive it.
    struct Parts {
        Executor executor;
        const Clock& clock;
        fleet::InstanceStore& store;
        jobs::Notebook& notebook;
        std::string fleet;
        bulk::Messengers messengers;
        // Endpoints that are in use and want to hear of the fleet.
        std::function<std::vector<notify::EndpointPtr>()> listeners;
        std::function<bool()> is_ours{};  // whether this node does it; empty: always
    };
    FleetNews(Parts parts, bulk::TellingOptions options, Millis look_every = Millis(1'000));
    ~FleetNews();  // REQUIRES: stop() has returned, or start() was never called

    void start();
    Task<> stop();

private:
    // How far an endpoint has heard.
    struct Standing {
        fleet::FleetEventPlace heard{};
        Time since{};      // what happened before is none of its business
        int attempts = 0;  // at the next event
        int failures = 0;  // in a row
        Time due{};        // it is left alone until then
        bool is_busy = false;
    };

    Task<> run();
    Task<> look();
    Task<bool> recall();
    Task<> hand_over();
    Task<> tell(notify::EndpointPtr to);
    Task<bool> tell_page(notify::EndpointPtr to);
    enum class Told { done, given_up, later };
    Task<Told> tell_one(notify::EndpointPtr to, notify::Announcement news);
    Standing* find(notify::EndpointId id);
    Task<> save();
    std::string text() const;

    Parts p_;
    const bulk::TellingOptions options_;
    const Millis look_every_;
    std::map<notify::EndpointId, Standing> standings_;
    bool has_read_ = false;  // what the node before us wrote
    std::string written_;
    std::unique_ptr<TaskGroup> main_;
    std::unique_ptr<TaskGroup> work_;
};

}  // namespace comfyd::app
