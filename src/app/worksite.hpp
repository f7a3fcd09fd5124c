// How this process comes to lead workers: by itself from its start to its end, or as one node of
// several for as long as the lead is its own. Owned by the application; core executor, but for what
// says otherwise.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "app/cluster_node.hpp"
#include "app/config/config.hpp"
#include "app/learned.hpp"
#include "app/machines.hpp"
#include "app/model_news.hpp"
#include "app/office.hpp"
#include "app/worker_certificates.hpp"
#include "events/hub.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {

class Worksite {
public:
    // All outlive it.
    struct Parts {
        Executor core;
        Executor bus;  // where what other nodes say is read
        net::IoThreads& io;
        cluster::SharedClock& clock;
        ledger::Storage& ledger;
        assets::Store& assets;
        Pool& pool;
        const Config& config;
        std::shared_ptr<net::Lines> lines;  // to workers that call by themselves
        fleet::Callers& callers;            // who lets those in
        ModelNews& model_news;              // what all workers tell of their files
        fleet::LinkOf link_of{};            // for their agents
    };
    // Before anything runs, like the next. Code::config_invalid, Code::storage_unavailable.
    static Result<std::unique_ptr<Worksite>> make(const Parts& parts);
    ~Worksite();
    Result<> set_service(jobs::Service& service);

    // For the service, which is made with them.
    events::Hub& hub() { return node_ ? node_->hub() : *own_hub_; }
    jobs::Elsewhere* elsewhere() { return node_ ? &node_->elsewhere() : nullptr; }

    // Brings back the jobs that were not done, or begins to ask for the lead. `learned` outlives
    // it.
    Task<Result<>> open(Learned& learned);
    // Lets other nodes lead, before the service stops.
    Task<> resign();
    // After the service has stopped.
    Task<> close();

    Machines& machines() { return *machines_; }
    fleet::NodeCosts& node_costs() { return node_costs_; }
    // Of the domains that this process leads now.
    std::vector<std::shared_ptr<Office>> offices() const;
    ClusterNode* node() { return node_.get(); }  // nullptr: there is this process alone

private:
    explicit Worksite(const Parts& parts);
    std::vector<fleet::Lane> lanes();
    Result<std::unique_ptr<Office>> make_office(fleet::MandatePtr mandate);
    Task<Result<>> prepare_lead(Learned& learned);
    std::shared_ptr<const workflow::Catalogue> last_known_classes() const;

    Parts p_;
    fleet::TenantFolders folders_;
    std::vector<std::unique_ptr<net::Client>> clients_;  // one for each io thread
    std::unique_ptr<WorkerCertificates> certificates_;
    fleet::ClassCache classes_;
    fleet::NodeCosts node_costs_;
    jobs::Service* service_ = nullptr;
    std::unique_ptr<ClusterNode> node_;  // or, alone, a hub and an office:
    std::unique_ptr<events::Hub> own_hub_;
    std::unique_ptr<ClassBoard> board_;  // null: no pool must be remembered
    std::shared_ptr<Office> office_;
    std::unique_ptr<Machines> machines_;
};

}  // namespace comfyd::app
