// This process as one node of several: what it hears of the others, which domains it leads, and the
// offices that it has while it leads them. Owned by the application; core executor, but for what
// says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/class_board.hpp"
#include "app/cluster_gauges.hpp"
#include "app/config/config.hpp"
#include "app/office.hpp"
#include "base/task.hpp"
#include "cluster/boot_clock.hpp"
#include "cluster/bus.hpp"
#include "cluster/lead.hpp"
#include "cluster/mail.hpp"
#include "cluster/other_leaders.hpp"
#include "cluster/roll_call.hpp"
#include "cluster/shared_hub.hpp"
#include "jobs/service.hpp"
#include "ledger/storage.hpp"

namespace comfyd::app {

class ClusterNode {
public:
    // All outlive it.
    struct Parts {
        Executor core;
        Executor bus;  // where what other nodes say is read
        cluster::SharedClock& clock;
        Pool& pool;
        ledger::Storage& storage;  // with shared(), leases() and nodes()
    };
    // Code::config_invalid. Any thread.
    static Result<std::unique_ptr<ClusterNode>> make(const Parts& parts, const Config& config);
    ~ClusterNode();  // REQUIRES: stop() has returned, or start() was never called

    // For the service, which is made with them.
    events::Hub& hub() { return hub_; }
    jobs::Elsewhere& elsewhere() { return others_; }
    ClassBoard& classes() { return classes_; }
    cluster::Mail& mail() { return mail_; }
    const cluster::OtherLeaders& others() const { return others_; }

    struct Hooks {
        std::function<Result<std::unique_ptr<Office>>(fleet::MandatePtr mandate)> make_office;
        // Before an office is opened: what other nodes have learned is read, and looked whether
        // this one sees what they see.
        std::function<Task<Result<>>()> prepare;
    };
    // Begins to ask for the lead of every domain that it may lead. `service` and `cache` outlive
    // it.
    void start(jobs::Service& service, fleet::ClassCache& cache, Hooks hooks);
    // Lets others lead.
    Task<> resign();
    // Says and hears no more. After resign().
    Task<> stop();

    // What only one node of all may do at a time, this one may now. Any thread.
    bool keeps_house() const { return keeps_house_; }

    Task<ClusterReadings> readings();
    // For operators. Any executor.
    Task<Result<json::object>> describe();

    // The office of a worker's domain; nullptr: another node leads it, or nobody has the worker.
    // Whoever asks it something keeps it until there is an answer; it may be closed meanwhile.
    std::shared_ptr<Office> office_of(const std::string& worker) const;
    std::vector<std::shared_ptr<Office>> offices() const;

private:
    struct Led;

    ClusterNode(const Parts& parts, std::unique_ptr<cluster::Bus> bus, const Config& config);
    Task<> begin_lead(
        std::string domain, cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust
    );
    Task<> end_lead(std::string domain);
    Task<Result<>> open_office(Led& led, fleet::MandatePtr mandate);
    fleet::MandatePtr make_mandate(
        const cluster::Taken& taken, std::shared_ptr<const cluster::Trust> trust
    );
    void tell_hub();
    // For the list of nodes, and the list.
    json::object about() const;
    Task<Result<json::array>> list_nodes();

    Parts p_;
    const std::string name_;
    std::vector<std::string> domains_;
    std::vector<std::string> may_lead_;  // of them
    cluster::SystemBootClock boot_clock_;
    std::unique_ptr<cluster::Bus> bus_;
    cluster::Mail mail_;
    cluster::SharedHub hub_;
    cluster::OtherLeaders others_;
    ClassBoard classes_;
    cluster::RollCall roll_call_;
    jobs::Service* service_ = nullptr;
    Hooks hooks_;
    std::map<std::string, std::unique_ptr<cluster::Lead>> leads_;  // by domain
    std::set<std::string> taken_;                                  // domains whose lead is ours
    std::map<std::string, std::unique_ptr<Led>> led_;              // those with an office
    std::atomic<bool> keeps_house_{false};
};

}  // namespace comfyd::app
