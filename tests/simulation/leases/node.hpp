// One life of a process of the cluster: the real `cluster::Lead` over the simulated network, and a
// leader while it leads. It has an executor of its own, which stands still while the process is
// stopped, at whatever point between two steps that is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/virtual_time.hpp"
#include "cluster/lead.hpp"
#include "simulation/leases/call.hpp"
#include "simulation/leases/world.hpp"

namespace comfyd::simulation {

class Leader;

class Node {
public:
    Node(LeaseWorld& world, int number);
    ~Node();  // REQUIRES: has_ended()

    const NodeId& id() const { return id_; }
    const std::string& name() const { return name_; }
    bool leads() const { return lead_.leads(); }
    bool is_paused() const { return paused_until_.has_value(); }
    bool is_stopping() const { return is_stopping_; }
    bool has_ended() const { return has_ended_; }

    // Does all that can be done now, unless it is stopped meanwhile.
    void run();
    // When it has something to do by itself.
    std::optional<Time> next() const;
    void pause(Millis length);
    void go_on() { paused_until_.reset(); }
    int pauses() const { return pauses_; }
    void set_wall_clock(Millis error) { wall_clock_error_ = error; }

    void let_go();
    void stop();  // in order: SIGTERM
    void kill();  // ends it

    // The connection to the database: which one, 0: none; what was asked there has failed.
    int session() const { return session_; }
    void fail_session(int session);

    // nullopt: no answer came, and it may have been done or not.
    template <class Work>
    Task<std::optional<std::invoke_result_t<Work>>> ask_database(Work work) {
        auto value = std::make_shared<std::optional<std::invoke_result_t<Work>>>();
        const bool came = co_await call_database([value, work] { value->emplace(work()); });
        co_return came ? std::move(*value) : std::nullopt;
    }
    template <class Work>
    Task<std::optional<std::invoke_result_t<Work>>> ask_machine(Machine& machine, Work work) {
        auto value = std::make_shared<std::optional<std::invoke_result_t<Work>>>();
        const bool came = co_await call_machine(machine, [value, work] { value->emplace(work()); });
        co_return came ? std::move(*value) : std::nullopt;
    }

    // May something be sent to a worker?
    bool trusts(const cluster::Trust& trust) const;
    void on_refused(std::uint64_t epoch) { lead_.refused(epoch); }
    LeaseWorld& world() { return world_; }
    Executor executor() { return io_.get_executor(); }

private:
    class Clock final : public cluster::BootClock {
    public:
        explicit Clock(const Node& node) : node_(node) {}
        Millis now() const override;

    private:
        const Node& node_;
    };
    class Leases final : public cluster::Leases {
    public:
        explicit Leases(Node& node) : node_(node) {}
        Task<Result<std::optional<cluster::Taken>>> take(std::string domain, NodeId node) override;
        Task<Result<>> renew(jobs::Term term, std::uint64_t queued) override;
        Task<Result<>> resign(jobs::Term term) override;
        Task<Result<std::vector<cluster::Lease>>> all() override;

    private:
        Node& node_;
    };

    Task<bool> call_database(std::function<void()> work);
    Task<bool> call_machine(Machine& machine, std::function<void()> work);
    Task<> run_leader(cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust);
    Task<> end_leader(cluster::LeadEnd why);
    Task<> resign();
    void close_session();
    bool is_answer_fresh() const { return clock_.now() < answered_at_ + cluster::kTrust; }

    LeaseWorld& world_;
    NodeId id_;
    std::string name_;
    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<Executor> keep_{io_.get_executor()};
    VirtualTime time_;
    Clock clock_{*this};
    Leases leases_{*this};
    Millis wall_clock_error_{0};
    Millis answered_at_{0};  // the latest request for the lease that succeeded

    int session_ = 0;
    struct Pending {
        int session;
        std::shared_ptr<Call> call;
    };
    std::vector<Pending> pending_;
    std::vector<std::shared_ptr<Call>> machine_calls_;

    bool has_work_ = true;  // something waits on the executor
    std::optional<Time> paused_until_;
    int pauses_ = 0;
    bool is_stopping_ = false;
    bool is_dead_ = false;
    Signal killed_;
    bool has_ended_ = false;
    std::unique_ptr<Leader> leader_;
    cluster::Lead lead_;
};

}  // namespace comfyd::simulation
