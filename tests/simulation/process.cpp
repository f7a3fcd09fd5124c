#include "simulation/process.hpp"

#include <stop_token>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>

namespace comfyd::simulation {
namespace {

Task<Result<bool>> outputs_are_kept(Chance& chance) {
    co_return !chance.one_in(6);
}

// Takes its time now and then, and ends where the job is stopped meanwhile.
Task<Result<std::vector<jobs::Output>>> finish_outputs(
    Chance& chance, std::vector<jobs::Output> outputs, std::stop_token stop
) {
    while (chance.one_in(4)) {
        const bool goes_on = co_await sleep_for(chance.millis(0, 5'000));
        if (!goes_on || stop.stop_requested()) {
            co_return fail(Code::cancelled, "stopped while it was finished");
        }
    }
    for (jobs::Output& output : outputs) {
        output.media = {{"kind", "other"}};
    }
    co_return outputs;
}

}  // namespace

Process::Process(World& world)
    : world_(world),
      storage_(world.stored, world.trouble, world.rules, world.chance, world.journal),
      fleet_(world.machines, world.io.get_executor()),
      hub_(world.io.get_executor()),
      service_(world.io.get_executor(), world.time, storage_, hub_, [&world] {
          auto options = world.options;
          options.outputs_kept = [&chance = world.chance](auto, auto) {
              return outputs_are_kept(chance);
          };
          options.finish_outputs = [&chance = world.chance](auto, auto outputs, auto stop) {
              return finish_outputs(chance, std::move(outputs), std::move(stop));
          };
          return options;
      }()) {
    const auto follow = [this](std::size_t waiting_max, Rules::Listener& listener) {
        events::FeedOptions options;
        options.waiting_max = waiting_max;
        auto feed = service_.subscribe(world_.io.get_executor(), std::move(options));
        spawn(run_follow(std::move(feed), listener), watchers_);
    };
    follow(events::FeedOptions().waiting_max, world_.rules.attentive);
    follow(1, world_.rules.hasty);
    // Pinned, because hardly any schedule has so many jobs of a kind that it would pay.
    service_.set_prewarming({.is_on = world_.chance.one_in(2), .pinned = {"0", "1"}});
    call(recover());
}

Process::~Process() {
    world_.rules.on_process_ended();
}

void Process::spawn(Task<> task, int& count) {
    count += 1;
    boost::asio::co_spawn(world_.io, std::move(task), [this, &count](std::exception_ptr error) {
        count -= 1;
        if (error) {
            world_.rules.break_one("an exception came out");
        }
    });
}

std::string Process::tenant_of(const JobId& id) const {
    return world_.stored.entries().at(id).job.tenant;
}

Task<> Process::recover() {
    auto recovered = co_await service_.lead("main", {storage_, fleet_});
    if (state_ != State::starting) {
        co_return;
    }
    if (recovered) {
        state_ = State::up;
        world_.journal.add([] { return "the process is up"; });
    } else {
        world_.journal.add([&] { return "no start: " + recovered.error().message; });
        stop(Millis(0));
    }
}

void Process::stop(Millis grace) {
    state_ = State::stopping;
    call(run_stop(grace));
}

Task<> Process::run_stop(Millis grace) {
    co_await service_.stop(grace);
    world_.journal.add([&] { return is_dead_ ? "the process is dead" : "the process has stopped"; }
    );
    state_ = State::ended;
}

void Process::die() {
    is_dead_ = true;
    storage_.cut();
    fleet_.cut();
    if (state_ != State::stopping && state_ != State::ended) {
        stop(Millis(0));
    }
}

void Process::submit(jobs::Spec spec) {
    call(run_submit(std::move(spec)));
}
void Process::cancel(const JobId& id, bool only_waiting) {
    const int revivals = world_.rules.on_cancel_asked(id);
    call(run_cancel(id, only_waiting, revivals));
}
void Process::retry(const JobId& id) {
    world_.rules.on_retry_asked(id);
    call(run_retry(id));
}
void Process::look_at(const JobId& id) {
    call(run_look_at(id));
}
void Process::watch(const JobId& id, std::uint64_t since) {
    spawn(run_watch(id, since), watchers_);
}
void Process::count() {
    call(run_count());
}

Task<> Process::run_submit(jobs::Spec spec) {
    const JobId id = *spec.id;
    const std::string hash = spec.request_hash;
    submits_.insert(id);
    auto submitted = co_await service_.submit(std::move(spec));
    submits_.erase(id);
    if (is_dead_) {
        co_return;
    }
    world_.journal.add([&] {
        return "answer: submit of " + name_of(id) + ": " +
               (submitted ? name_of(submitted->view.job.id) : submitted.error().message);
    });
    if (!submitted) {
        co_return;
    }
    const auto stored = world_.stored.entries().find(submitted->view.job.id);
    if (stored == world_.stored.entries().end()) {
        world_.rules.break_one(
            "the submit of " + name_of(id) + " was answered before it is stored"
        );
    } else if (submitted->replayed != (submitted->view.job.id != id) ||
               stored->second.spec.request_hash != hash) {
        world_.rules.break_one("the submit of " + name_of(id) + " was answered with another job");
    }
}

Task<> Process::run_cancel(JobId id, bool only_waiting, int revivals) {
    Result<> done;
    if (only_waiting) {
        done = co_await service_.cancel_waiting(tenant_of(id), id);
    } else {
        auto view = co_await service_.cancel(tenant_of(id), id);
        done = view ? Result<>() : fail(std::move(view.error()));
    }
    if (!is_dead_) {
        world_.journal.add([&] {
            return "answer: cancel of " + name_of(id) + ": " +
                   (done ? "done" : done.error().message);
        });
        world_.rules.on_cancel_answered(id, revivals, done.has_value());
    }
}

Task<> Process::run_retry(JobId id) {
    auto view = co_await service_.retry(tenant_of(id), id);
    if (!is_dead_) {
        world_.rules.on_retry_answered(id);
        world_.journal.add([&] {
            return "answer: retry of " + name_of(id) + ": " +
                   (view ? std::string(to_string(view->job.state)) : view.error().message);
        });
    }
}

Task<> Process::run_look_at(JobId id) {
    auto view = co_await service_.get(tenant_of(id), id);
    auto explained = co_await service_.explain(tenant_of(id), id);
    if (!is_dead_ && explained && explained->waiting) {
        world_.journal.add([&] {
            std::string text = name_of(id) + " waits:";
            for (const std::string& reason : explained->waiting->reasons) {
                text += " " + reason + ";";
            }
            return text;
        });
    }
    if (!is_dead_ && view && explained && view->job.id != explained->job.id) {
        world_.rules.break_one("another job is shown than was asked for");
    }
}

Task<> Process::run_watch(JobId id, std::uint64_t since) {
    events::WatchOptions options;
    options.since = since;
    auto watched = co_await service_.watch(tenant_of(id), id, options);
    if (!watched) {
        co_return;
    }
    const auto stored = [this, id]() -> const std::vector<jobs::Event>& {
        return world_.stored.entries().at(id).events;
    };
    std::size_t told = 0;
    while (told < stored().size() && stored()[told].sequence <= since) {
        ++told;
    }
    for (std::uint64_t latest = since;;) {
        auto event = co_await (*watched)->next(std::chrono::hours(1));
        if (is_dead_ || (!event && event.error().code != Code::request_timeout)) {
            co_return;
        }
        if (!event) {
            continue;
        }
        if ((*event)->sequence <= latest) {
            world_.rules.break_one(
                "a watcher of " + name_of(id) + " sees numbers that do not rise"
            );
        }
        latest = (*event)->sequence;
        if (!(*event)->is_durable()) {
            continue;
        }
        if (told >= stored().size() || stored()[told].sequence != latest) {
            world_.rules.break_one("a watcher of " + name_of(id) + " misses an event");
        }
        told += 1;
        if (is_terminal((*event)->state)) {
            co_return;
        }
    }
}

Task<> Process::run_follow(std::shared_ptr<events::Feed> feed, Rules::Listener& listener) {
    Rules& rules = world_.rules;
    for (;;) {
        auto batch = co_await feed->next();
        if (is_dead_ || !batch) {
            co_return;
        }
        if (batch->has_gap) {
            rules.on_gap(listener);
        }
        for (const events::Notice& notice : batch->notices) {
            if (const auto* arrived = std::get_if<events::Arrived>(&notice)) {
                rules.on_told_job(listener, *arrived);
            } else if (const auto* changed = std::get_if<events::Changed>(&notice)) {
                rules.on_told_change(listener, *changed);
            } else {
                rules.break_one("something is told that nobody has asked for");
            }
        }
    }
}

Task<> Process::run_count() {
    const auto counts = co_await service_.queue_counts();
    if (!is_dead_) {
        world_.rules.check_counts(counts.queued, counts.running, counts.retry_waiting);
    }
}

}  // namespace comfyd::simulation
