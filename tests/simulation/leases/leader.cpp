#include "simulation/leases/leader.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace comfyd::simulation {
namespace {

constexpr Millis kLookEvery{800};
constexpr Millis kAgainAfter{300};

}  // namespace

Leader::Leader(Node& node, cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust)
    : node_(node),
      world_(node.world()),
      term_(std::move(taken.term)),
      quiet_at_(world_.agenda.now() + taken.quiet_in),
      trust_(std::move(trust)),
      tasks_(node.executor()) {
    tasks_.spawn("look for jobs", look_for_jobs());
}

Task<> Leader::stop() {
    is_over_ = true;
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> Leader::look_for_jobs() {
    while (!is_over_) {
        auto ask = [&database = world_.database] { return database.jobs(); };
        const auto jobs = co_await node_.ask_database(std::move(ask));
        if (jobs && !is_over_) {
            for (const JobRow& job : *jobs) {
                if (job.state != JobRow::State::ended && known_.insert(job.id).second) {
                    tasks_.spawn("job", drive(job));
                }
            }
        }
        co_await sleep_for(kLookEvery);
    }
}

Task<> Leader::drive(JobRow job) {
    const bool is_new = job.state == JobRow::State::queued;
    if (is_new) {
        job.worker = world_.chance.below(static_cast<int>(world_.machines.size()));
        const bool is_started = co_await start(job);
        if (!is_started) {
            co_return;
        }
    }
    Machine& machine = world_.machines.at(static_cast<std::size_t>(job.worker));
    co_await run_on(machine, job.id, is_new);
}

Task<bool> Leader::start(JobRow job) {
    while (!is_over_) {
        auto ask = [&database = world_.database, term = term_, job] {
            return database.start(term, job.id, job.worker);
        };
        const auto is_started = co_await node_.ask_database(std::move(ask));
        if (is_started && !*is_started) {
            node_.on_refused(term_.epoch);
            co_return false;
        }
        if (is_started) {
            co_return true;
        }
        co_await sleep_for(kAgainAfter);
    }
    co_return false;
}

Task<> Leader::run_on(Machine& machine, int job, bool is_new) {
    while (!is_over_) {
        if (std::exchange(is_new, false)) {
            co_await send(machine, job);
            continue;
        }
        const bool was_quiet = world_.agenda.now() >= quiet_at_;
        auto look = [&machine, &agenda = world_.agenda, job] {
            return machine.find(job, agenda.now());
        };
        const auto place = co_await node_.ask_machine(machine, std::move(look));
        if (place == Machine::Place::done) {
            co_await end(job);
            co_return;
        }
        if (place == Machine::Place::absent) {
            const bool may_send = co_await may_send_again(machine, was_quiet);
            if (may_send) {
                co_await send(machine, job);
                continue;
            }
        }
        co_await sleep_for(kAgainAfter);
    }
}

Task<bool> Leader::may_send_again(Machine& machine, bool was_quiet) {
    if (was_quiet || world_.broken == Break::no_quiet_time) {
        co_return true;
    }
    if (!machine.has_fence()) {
        co_await sleep_for(quiet_at_ - world_.agenda.now());
        co_return false;
    }
    auto announce = [&machine, epoch = term_.epoch] { return machine.announce(epoch); };
    const auto is_known = co_await node_.ask_machine(machine, std::move(announce));
    if (is_known && !*is_known) {
        node_.on_refused(term_.epoch);
    }
    co_return is_known.value_or(false);
}

Task<> Leader::send(Machine& machine, int job) {
    if (is_over_ || !node_.trusts(*trust_)) {
        is_over_ = true;
        co_return;
    }
    const int pauses = node_.pauses();
    if (world_.has_trouble && world_.chance.one_in(15)) {
        node_.pause(world_.pause_length());
    }
    co_await resume_on(node_.executor());  // the process may be stopped here
    const Sent sent{job, term_, node_.pauses() != pauses};
    world_.journal.add([&] {
        return node_.name() + " sends job " + std::to_string(job) + " to " + machine.name() +
               (sent.after_pause ? ", after it was stopped" : "");
    });
    auto post = [&machine, &world = world_, sent] {
        return machine.post(sent, world.agenda.now(), world.chance.millis(100, 2'000), world.rules);
    };
    const auto answer = co_await node_.ask_machine(machine, std::move(post));
    if (answer == Machine::Answer::lower_epoch) {
        node_.on_refused(term_.epoch);
        is_over_ = true;
    }
}

Task<> Leader::end(int job) {
    while (!is_over_) {
        auto ask = [&database = world_.database, term = term_, job] {
            return database.end(term, job);
        };
        const auto is_ended = co_await node_.ask_database(std::move(ask));
        if (is_ended && !*is_ended) {
            node_.on_refused(term_.epoch);
        }
        if (is_ended) {
            co_return;
        }
        co_await sleep_for(kAgainAfter);
    }
}

}  // namespace comfyd::simulation
