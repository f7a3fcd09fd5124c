#include "simulation/worker.hpp"

#include <algorithm>
#include <utility>

#include "jobs/give_back.hpp"

namespace comfyd::simulation {
namespace {

constexpr Millis kLostAfter{5'000};
constexpr Code kEndedWell = Code::internal;  // no run ends with it

jobs::Output some_output(Time now) {
    jobs::Output output;
    output.asset = AssetId::make(now);
    output.node_id = "9";
    output.name = "a.png";
    output.folder = "output";
    output.type = "image";
    return output;
}

}  // namespace

void Group::take_place(std::size_t place) {
    if (seen_.insert(place).second) {
        missing_ -= 1;
    }
}

void Group::leave(std::size_t place) {
    take_place(place);
    fleet_.look_again();
}

void Group::join(const JobId& job, std::size_t place) {
    take_place(place);
    jobs.insert(job);
}

std::optional<jobs::Batch::Whole> Group::take_whole() {
    if (is_apart || std::exchange(is_taken_, true)) {
        return std::nullopt;
    }
    return Whole{static_cast<int>(jobs.size()), {}};
}

jobs::WorkerInfo Worker::info() const {
    jobs::WorkerInfo info;
    info.id = machine_.id;
    info.status = machine_.is_reachable && machine_.is_listed ? jobs::WorkerStatus::idle
                                                              : jobs::WorkerStatus::down;
    if (machine_.is_leaving && machine_.is_reachable) {
        info.status = jobs::WorkerStatus::draining;
    }
    info.slots = machine_.slots;
    info.gpu = "GPU";
    if (!machines_.is_healed()) {
        info.current_job = JobId::make(machines_.clock.now());  // nobody's
    }
    return info;
}

std::size_t Worker::running() const {
    std::set<std::string> prompts;
    for (const Run* run : runs_) {
        if (run->holds_place) {
            prompts.insert(prompt_of(*run));
        }
    }
    return prompts.size();
}

bool Worker::is_done() const {
    return runs_.empty() && std::ranges::none_of(machine_.prompts, [this](const auto& entry) {
               return entry.second.ends_at > machines_.clock.now() && !entry.second.is_given_up;
           });
}

bool Worker::available() const {
    return machine_.is_reachable && machine_.is_listed && !machine_.is_broken &&
           !machine_.is_leaving && !is_retired_ && !fleet_.is_cut() &&
           running() < static_cast<std::size_t>(machine_.slots);
}

bool Worker::can_run(const Requirement& requirement) const {
    const auto values = lacking(requirement);
    return values && values->empty();
}

std::string Worker::abilities() const {
    std::string text = machine_.classes;
    for (const std::string& file : machine_.files) {
        text += " " + file;
    }
    return text;
}

std::optional<std::vector<std::string>> Worker::lacking(const Requirement& requirement) const {
    std::vector<std::string> values;
    const bool has_classes =
        requirement.each([&](std::string_view type, std::string_view, std::string_view value) {
            if (!value.empty() && !machine_.files.contains(std::string(value))) {
                values.emplace_back(value);
            }
            return machine_.classes.find(type) != std::string::npos;
        });
    return has_classes ? std::optional(std::move(values)) : std::nullopt;
}

bool Worker::is_open() const {
    return machine_.is_reachable && machine_.is_listed && !machine_.is_broken &&
           !machine_.is_leaving && !is_retired_ && !fleet_.is_cut();
}

std::optional<std::string> Worker::content_address(const std::string& sha256) const {
    return machine_.id + "/" + sha256;
}

Task<Result<>> Worker::fetch_models(
    std::vector<json::object> wishes, std::function<void(Fetched)> told
) {
    constexpr Code kFailures[] = {
        Code::worker_unavailable,
        Code::connection_failed,
        Code::storage_full,
        Code::not_found,
        Code::hash_mismatch,
        Code::upstream_error,
    };
    Chance& chance = machines_.chance;
    for (const json::object& wish : wishes) {
        const std::string name(wish.at("name").as_string());
        machines_.journal.add([&] { return machine_.id + " fetches " + name; });
        for (std::uint64_t done = 1; done < 3; ++done) {
            const bool goes_on = co_await sleep_for(chance.millis(1, 2'000));
            if (!goes_on || fleet_.is_cut()) {
                co_return fail(Code::cancelled, "the fetch is not waited for any more");
            }
            told({done, 3});
        }
        if (!machines_.is_healed() && chance.one_in(3)) {
            co_return fail(kFailures[chance.below(std::size(kFailures))], "no " + name);
        }
        // Now and then it says so, and it is not there.
        if (machines_.is_healed() || !chance.one_in(6)) {
            machine_.files.insert(name);
        }
    }
    fleet_.tell(machine_.id);
    co_return Result<>();
}

Task<Result<>> Worker::warm(std::string workflow, Millis patience) {
    constexpr Code kFailures[] = {
        Code::worker_unavailable,
        Code::connection_failed,
        Code::node_execution_error,
        Code::worker_rejected,
        Code::execution_timeout,
        Code::not_found,
    };
    static_cast<void>(workflow), static_cast<void>(patience);
    Chance& chance = machines_.chance;
    machines_.journal.add([&] { return machine_.id + " loads models ahead of jobs"; });
    is_called_back_ = false;
    const int pieces = 1 + chance.below(3);
    for (int piece = 0; piece < pieces; ++piece) {
        const bool goes_on = co_await sleep_for(chance.millis(1, 2'000));
        if (!goes_on || fleet_.is_cut() || is_called_back_) {
            co_return fail(Code::cancelled, "the load is not wanted any more");
        }
    }
    if (!machines_.is_healed() && chance.one_in(3)) {
        co_return fail(kFailures[chance.below(std::size(kFailures))], "it did not load them");
    }
    co_return Result<>();
}

std::shared_ptr<jobs::Batch> Worker::make_group(PromptId prompt, std::size_t members) {
    const std::string prompt_id = prompt.to_string();
    if (!machine_.merges) {
        return nullptr;
    }
    const bool is_there = machine_.prompts.contains(prompt_id);
    const bool stays_apart =
        machine_.kept_apart.contains(prompt_id) || (!is_there && machines_.chance.one_in(4));
    if (stays_apart) {
        machine_.kept_apart.insert(prompt_id);
    }
    return std::make_shared<Group>(fleet_, prompt_id, members, stays_apart);
}

void Worker::look_again() {
    for (Run* run : runs_) {
        run->stop.requested.notify();
    }
}

std::string Worker::prompt_of(const Run& run) {
    return run.group && !run.group->is_apart ? run.group->prompt_id
                                             : run.assignment.prompt.to_string();
}

std::optional<Code> Worker::lie() {
    constexpr Code kLies[] = {
        Code::worker_unavailable,
        Code::worker_unavailable,
        Code::worker_rejected,
        Code::shutting_down,
        Code::cancelled,
        Code::deadline_exceeded,
        Code::conflict,
        Code::not_found,
    };
    if (machines_.is_healed() || !machines_.chance.one_in(12)) {
        return std::nullopt;
    }
    return kLies[machines_.chance.below(std::size(kLies))];
}

Task<Result<jobs::AttemptResult>> Worker::run(
    jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
) {
    Run run{std::move(assignment), listener, stop};
    if (!fleet_.is_cut()) {
        machines_.rules.on_run(run.assignment, machine_.id);
    }
    run.group = std::static_pointer_cast<Group>(run.assignment.group);
    run.began = machines_.clock.now();
    runs_.push_back(&run);
    const Ending ending = co_await follow(run);
    std::erase(runs_, &run);
    if (!fleet_.is_cut()) {
        machines_.rules.on_run_ended(run.assignment, ending.code == kEndedWell);
        machines_.journal.add([&] {
            return machine_.id + " ends " + name_of(run.assignment.job) + ": " +
                   (ending.code == kEndedWell ? "well" : std::string(to_string(ending.code)));
        });
        machine_.is_broken =
            machine_.is_broken || (ending.breaks_machine && !machines_.is_healed());
        fleet_.tell(machine_.id);
    }
    if (ending.code != kEndedWell) {
        if (machines_.chance.one_in(2)) {
            const jobs::Output finished = make_output(run);
            listener.on_kept({{finished}, {}});
        }
        json::object details;
        if (ending.cause) {
            details[jobs::kCauseKey] = to_string(*ending.cause);
        }
        if (ending.gives_back) {
            details[jobs::kGivenBack] = true;
        }
        co_return fail(ending.code, "the machine says so", std::move(details));
    }
    const jobs::Output output = make_output(run);
    if (machines_.chance.one_in(4)) {
        listener.on_output(output);  // again
    }
    co_return jobs::AttemptResult{{output}, {}};
}

jobs::Output Worker::make_output(Run& run) {
    jobs::Output output = some_output(machines_.clock.now());
    machines_.rules.on_made(run.assignment, output.asset);
    run.listener.on_output(output);
    return output;
}

Task<Ending> Worker::follow(Run& run) {
    if (run.group) {
        run.group->join(run.assignment.job, run.assignment.place);
        fleet_.look_again();
    }
    if (is_retired_) {
        co_return Ending{Code::worker_unavailable
        };  // it was on its way to a worker that left meanwhile
    }
    if (const auto lie_told = lie()) {
        drop(run);
        co_return Ending{*lie_told};
    }
    jobs::Progress progress;
    for (;;) {
        Millis pause(0);
        if (const auto ended = look(run, pause)) {
            run.holds_place = false;
            if (ended->code == kEndedWell && !fleet_.is_cut() && machines_.chance.one_in(2)) {
                // Free for the next one, while the results are fetched.
                fleet_.tell(machine_.id);
                co_await run.stop.requested.wait_for(machines_.chance.millis(1, 200));
            }
            jobs::Usage usage;
            usage.gpu = machines_.clock.now() - run.began;
            usage.inference = usage.gpu;
            run.listener.on_usage(usage);
            co_return *ended;
        }
        progress.value = machines_.chance.below(100) / 100.0;
        run.listener.on_progress(progress);
        co_await run.stop.requested.wait_for(pause);
        const bool is_over = co_await is_cancelled();
        if (is_over) {
            co_return Ending{Code::shutting_down};
        }
    }
}

std::optional<Ending> Worker::look(Run& run, Millis& pause) {
    const Time now = machines_.clock.now();
    if (fleet_.is_cut() || run.stop.reason == Code::shutting_down) {
        return Ending{Code::shutting_down};
    }
    if (!machine_.is_reachable) {
        run.lost_at = run.lost_at.value_or(now + kLostAfter);
        if (now >= *run.lost_at) {
            if (const auto prompt = machine_.prompts.find(prompt_of(run));
                prompt != machine_.prompts.end()) {
                prompt->second.is_given_up = true;
            } else {
                drop(run);  // the others of its batch go without it
            }
            return Ending{Code::worker_lost};
        }
        pause = *run.lost_at - now;
        return std::nullopt;
    }
    run.lost_at.reset();
    if (run.stop.reason) {
        drop(run);
        return Ending{*run.stop.reason};
    }
    const bool waits_for_others = run.group && !run.group->is_apart && !run.group->is_complete();
    auto prompt = machine_.prompts.find(prompt_of(run));
    if (prompt == machine_.prompts.end() && !waits_for_others) {
        if (run.is_sent) {
            return Ending{Code::worker_lost};  // the machine was started anew and has forgotten it
        }
        const bool is_shared = run.group && !run.group->is_apart;
        machines_.begin(
            machine_, prompt_of(run), is_shared ? run.group->jobs : std::set{run.assignment.job}
        );
        prompt = machine_.prompts.find(prompt_of(run));
    }
    Time due = run.began + run.assignment.timeout;
    if (prompt != machine_.prompts.end()) {
        run.is_sent = true;
        if (now >= prompt->second.ends_at) {
            return prompt->second.failure.value_or(Ending{kEndedWell});
        }
        due = std::min(due, prompt->second.ends_at);
    }
    if (now >= run.began + run.assignment.timeout) {
        drop(run);
        return Ending{Code::execution_timeout};
    }
    pause = due - now;
    return std::nullopt;
}

// The machine is told to let go of it; what it shares with others goes on.
void Worker::drop(Run& run) {
    if (run.group) {
        run.group->jobs.erase(run.assignment.job);
    }
    const auto prompt = machine_.prompts.find(prompt_of(run));
    if (prompt == machine_.prompts.end()) {
        return;
    }
    prompt->second.jobs.erase(run.assignment.job);
    if (prompt->second.jobs.empty()) {
        machine_.prompts.erase(prompt);
    }
}

}  // namespace comfyd::simulation
