// The database as nodes know it: sessions, the table of leases and a few jobs. Whatever is asked of
// it is one transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ledger/memory_leases.hpp"
#include "simulation/leases/agenda.hpp"
#include "simulation/leases/breaks.hpp"
#include "simulation/leases/rules.hpp"

namespace comfyd::simulation {

struct JobRow {
    enum class State { queued, started, ended };

    int id = 0;
    State state = State::queued;
    int worker = 0;
    std::uint64_t epoch = 0;  // of the latest change
};

class Database {
public:
    // `told` is called when a session ends that the node may believe in still.
    Database(
        const Agenda& agenda,
        LeaseRules& rules,
        Break broken,
        Millis clock_error,
        std::function<void(NodeId, int)> told
    );

    // Before each transaction. False: there is no such session (any more), or no database.
    bool enter(const NodeId& node, int session);
    void end_session(int session);
    void go_down();
    void come_up() { is_up_ = true; }
    bool is_up() const { return is_up_; }

    std::optional<cluster::Taken> take(const NodeId& node);
    bool renew(const jobs::Term& term);
    void resign(const jobs::Term& term);

    void accept(int job) { jobs_.push_back({job}); }
    const std::vector<JobRow>& jobs() const { return jobs_; }
    bool have_all_ended() const;
    // False: the fence. Said again they change nothing.
    bool start(const jobs::Term& term, int job, int worker);
    bool end(const jobs::Term& term, int job);

    // From when on the lead was free, and since when nothing has held anybody up: who may lead has
    // it soon after.
    Time undisturbed_since;

private:
    class OwnClock final : public Clock {
    public:
        OwnClock(const Agenda& agenda, Millis error) : agenda_(agenda), error_(error) {}
        Time now() const override { return agenda_.now() + error_; }

    private:
        const Agenda& agenda_;
        Millis error_;
    };

    bool is_refused(const jobs::Term& term) const;

    const Agenda& agenda_;
    LeaseRules& rules_;
    Break broken_;
    OwnClock clock_;
    std::function<void(NodeId, int)> told_;
    ledger::MemoryLeases leases_{clock_};
    bool is_up_ = true;
    std::map<int, NodeId> sessions_;
    int latest_session_ = 0;
    int session_now_ = 0;  // of what is done
    std::optional<jobs::Term> leader_;
    int leader_session_ = 0;
    Time free_at_;
    std::vector<JobRow> jobs_;
};

}  // namespace comfyd::simulation
