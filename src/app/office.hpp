// What a node has while it leads a domain: the domain's workers, and the dispatcher over them. Made
// when the lead is taken and dropped when it is lost. Core executor, but for what says otherwise.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "app/model_news.hpp"
#include "app/workers.hpp"
#include "assets/store.hpp"
#include "base/pool.hpp"
#include "fleet/fleet.hpp"
#include "jobs/notebook.hpp"
#include "jobs/service.hpp"

namespace comfyd::app {

class Office {
public:
    // All outlive it.
    struct Parts {
        Executor core;
        Clock& clock;
        std::vector<fleet::Lane> lanes;
        assets::Store& assets;
        Pool& pool;
        fleet::ClassCache& classes;
        fleet::NodeCosts& node_costs;
        jobs::Service& jobs;
        jobs::Notebook& notebook;
        fleet::InstanceStore& instances;
        fleet::Callers& callers;
        // What workers could run when they were last led.
        std::function<std::shared_ptr<const workflow::Catalogue>()> last_known;
        ModelNews& model_news;        // what workers tell of their files
        fleet::LinkOf link_of;        // for their agents
        fleet::MandatePtr mandate{};  // null: nobody else leads
    };

    // Code::config_invalid for workers that cannot be. Any thread, as long as nothing runs yet.
    static Result<std::unique_ptr<Office>> make(
        const Parts& parts,
        const Config& config,
        const fleet::TenantFolders& folders,
        std::string domain = "main"
    );
    ~Office();  // REQUIRES: close() finished, or open() was never called

    // Starts the workers and brings the domain's jobs back. `ledger` outlives the office.
    Task<Result<>> open(jobs::Ledger& ledger, jobs::SharedLedger* shared = nullptr);
    // Running attempts are left on their workers, or finish within `grace`.
    Task<> close(Millis grace);

    // A draining worker ends what it runs and gets nothing more, until it is resumed: also of
    // whoever leads it next. Code::not_found, Code::conflict; storage_*: it drains now, but may not
    // after a restart.
    Task<Result<>> set_draining(std::string worker, bool draining);

    // Its agent says that its machine stops, or that it goes on: for as long as it says so.
    void hear_stopping(const std::string& worker, bool is_stopping);

    // Its agent says that it is there.
    void hear_ready(const std::string& worker) { fleet_->hear_ready(worker); }

    fleet::Fleet& fleet() { return *fleet_; }
    // nullptr: there are no machines that it could start.
    fleet::Keeper* keeper() { return kept_ == nullptr ? nullptr : &kept_->keeper(); }

private:
    Office(const Parts& parts, std::string domain);
    Task<> drain_again();
    void remember_classes();

    Parts parts_;
    const std::string domain_;
    std::unique_ptr<fleet::Fleet> fleet_;
    WorkerProviders providers_;
    fleet::KeptPools* kept_ = nullptr;  // among them
    std::set<std::string> draining_;    // as operators want it
};

}  // namespace comfyd::app
