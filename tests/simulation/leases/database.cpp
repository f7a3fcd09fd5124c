#include "simulation/leases/database.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::simulation {
namespace {

// There and back, twice: one request may be on its way when the lead becomes free.
constexpr Millis kOnTheWay{100};

}  // namespace

Database::Database(
    const Agenda& agenda,
    LeaseRules& rules,
    Break broken,
    Millis clock_error,
    std::function<void(NodeId, int)> told
)
    : undisturbed_since(agenda.now()),
      agenda_(agenda),
      rules_(rules),
      broken_(broken),
      clock_(agenda, clock_error),
      told_(std::move(told)),
      free_at_(agenda.now()) {}

bool Database::enter(const NodeId& node, int session) {
    if (!is_up_) {
        return false;
    }
    if (session > latest_session_) {
        latest_session_ = session;
        sessions_[session] = node;
    }
    session_now_ = session;
    return sessions_.contains(session);
}

void Database::end_session(int session) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) {
        return;
    }
    const NodeId node = found->second;
    sessions_.erase(found);
    if (leader_ && leader_session_ == session) {
        leases_.end_session(node);
        free_at_ = std::min(free_at_, agenda_.now());
    }
    told_(node, session);
}

void Database::go_down() {
    is_up_ = false;
    while (!sessions_.empty()) {
        end_session(sessions_.begin()->first);
    }
}

std::optional<cluster::Taken> Database::take(const NodeId& node) {
    auto taken = leases_.take_now("main", node);
    if (!taken) {
        return taken;
    }
    const Time since = std::max(free_at_, undisturbed_since);
    rules_.on_taken(
        taken->term,
        agenda_.now() - since,
        cluster::kTryEvery + kOnTheWay,
        agenda_.now() + taken->quiet_in
    );
    const int before = std::exchange(leader_session_, session_now_);
    leader_ = taken->term;
    free_at_ = agenda_.now() + cluster::kLeaseLife;
    if (before != session_now_) {
        end_session(before);
    }
    return taken;
}

bool Database::renew(const jobs::Term& term) {
    if (!leases_.renew_now(term, 0)) {
        return false;
    }
    free_at_ = agenda_.now() + cluster::kLeaseLife;
    return true;
}

void Database::resign(const jobs::Term& term) {
    if (leases_.holds(term)) {
        leases_.resign_now(term);
        free_at_ = agenda_.now();
    }
}

bool Database::have_all_ended() const {
    return std::ranges::all_of(jobs_, [](const JobRow& job) {
        return job.state == JobRow::State::ended;
    });
}

bool Database::is_refused(const jobs::Term& term) const {
    return broken_ != Break::no_fence_in_ledger && !leases_.holds(term);
}

bool Database::start(const jobs::Term& term, int job, int worker) {
    if (is_refused(term)) {
        return false;
    }
    rules_.on_written(term);
    JobRow& row = jobs_.at(static_cast<std::size_t>(job));
    if (row.state == JobRow::State::queued) {
        row.state = JobRow::State::started;
        row.worker = worker;
        row.epoch = term.epoch;
    }
    return true;
}

bool Database::end(const jobs::Term& term, int job) {
    if (is_refused(term)) {
        return false;
    }
    rules_.on_written(term);
    JobRow& row = jobs_.at(static_cast<std::size_t>(job));
    if (row.state != JobRow::State::ended) {
        row.state = JobRow::State::ended;
        row.epoch = term.epoch;
        rules_.on_ended(job);
    }
    return true;
}

}  // namespace comfyd::simulation
