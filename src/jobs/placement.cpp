#include "jobs/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "jobs/attempt.hpp"
#include "jobs/cause.hpp"

namespace comfyd::jobs {
namespace {

// Why it takes no jobs, as `explain` says it.
std::string why_unavailable(const WorkerInfo& info) {
    if (info.status == WorkerStatus::down) {
        return info.last_error.empty() ? "is down" : "is down: " + info.last_error;
    }
    const bool is_closed =
        info.status == WorkerStatus::draining || info.status == WorkerStatus::starting;
    return is_closed ? "is " + std::string(to_string(info.status)) : "has other work";
}

// The clock may have been set back meanwhile.
double seconds_between(Time then, Time now) {
    return std::chrono::duration<double>(std::max(Millis(0), now - then)).count();
}

}  // namespace

const std::string* Placement::gpu_type(const std::string& worker) const {
    const auto known = workers_.find(worker);
    return known == workers_.end() ? nullptr : &known->second.gpu_type;
}

const std::string* Placement::usual_gpu_type() const {
    return workers_.empty() ? nullptr : &workers_.begin()->second.gpu_type;
}

// It may have ended some whose results are still being fetched.
void Placement::give_up_finished(const Known& known) {
    std::vector<std::vector<std::shared_ptr<Attempt>>> runs;  // jobs that share one are together
    for (const JobId& id : known.attempts) {
        const auto attempt = table_.attempt(id);
        if (!attempt || !attempt->is_on_worker) {
            continue;
        }
        const auto same = std::ranges::find_if(runs, [&attempt](const auto& run) {
            return attempt->group && run.front()->group == attempt->group;
        });
        (same == runs.end() ? runs.emplace_back() : *same).push_back(attempt);
    }
    const std::size_t running = known.worker->running();
    for (std::size_t i = 0; i + running < runs.size(); ++i) {
        for (const auto& attempt : runs[i]) {
            give_up_place(*attempt);
        }
    }
}

void Placement::update(const std::shared_ptr<Worker>& worker) {
    Known& known = workers_[worker->id()];
    if (known.worker && known.worker != worker) {  // another, by the name of one that has left
        scheduler_.remove_worker(worker->id());
        known = {};
    }
    known.worker = worker;
    give_up_finished(known);
    const WorkerInfo info = worker->info();
    scheduler::WorkerState state;
    state.id = info.id;
    state.gpu_type = info.gpu;
    state.gpu = info.gpu_id;
    state.vram_bytes = info.vram_total;
    state.ram_bytes = info.ram_total;
    state.region = info.region;
    state.slots = info.slots;
    state.model_memory_bytes = info.model_memory_bytes;
    state.abilities = worker->abilities();
    state.merges = worker->merges();
    state.available =
        worker->available() || known.attempts.size() >= static_cast<std::size_t>(info.slots);
    if (!state.available) {
        state.unavailable_why = why_unavailable(info);
    }
    std::string told = state.abilities + '\n' + state.gpu_type + '\n' + state.gpu + '\n' +
                       state.region + '\n' + std::to_string(state.vram_bytes) + '\n' +
                       std::to_string(state.ram_bytes) + '\n' + std::to_string(state.slots) +
                       (state.merges ? "\nm" : "\n") + (state.available ? "+" : "-") +
                       state.unavailable_why;
    if (told == known.told && !state.abilities.empty()) {
        return;
    }
    if (info.status == WorkerStatus::down || info.status == WorkerStatus::starting) {
        scheduler_.forget_models(info.id);
    }
    known.told = std::move(told);
    known.gpu_type = state.gpu_type;
    state.can_run = [seen = std::weak_ptr<Worker>(worker)](const Requirement& requirement) {
        const auto asked = seen.lock();
        return asked && asked->can_run(requirement);
    };
    scheduler_.set_worker(std::move(state));
}

void Placement::remove(const std::string& worker) {
    workers_.erase(worker);
    scheduler_.remove_worker(worker);
}

std::shared_ptr<Worker> Placement::confirm(const scheduler::Decision& decision) {
    const auto known = workers_.find(decision.worker);
    if (known != workers_.end() && known->second.worker->available()) {
        log::debug(
            "placed",
            {{"job", decision.job},
             {"worker", decision.worker},
             {"why", scheduler::to_string(decision.why)},
             {"waited_s", decision.waited_s},
             {"load_s", decision.numbers.load_s},
             {"run_s", decision.numbers.run_s},
             {"vram_needed", decision.numbers.vram_needed},
             {"vram_free", decision.numbers.vram_free},
             {"other_worker", decision.other_worker},
             {"other_finish_s", decision.other.finish_s},
             {"queue", decision.queue_length}}
        );
        return known->second.worker;
    }
    scheduler_.finished(decision.job, 0, clock_.now());
    if (known != workers_.end()) {
        scheduler::WorkerState closed;
        closed.id = decision.worker;
        closed.available = false;
        closed.unavailable_why = why_unavailable(known->second.worker->info());
        scheduler_.set_worker(std::move(closed));
        known->second.told.clear();
    }
    return nullptr;
}

bool Placement::may_share(const scheduler::Decision& decision, const Worker& worker) const {
    return !decision.batched.empty() && worker.merges() &&
           !lone_shapes_.contains(decision.keys.profile->shape, clock_.now());
}

void Placement::take_place(Attempt& attempt) {
    attempt.holds_place = true;
    attempt.placed_at = clock_.now();
    workers_[attempt.worker->id()].attempts.push_back(attempt.id);
}

void Placement::give_up_place(Attempt& attempt) {
    if (!attempt.holds_place) {
        return;
    }
    attempt.holds_place = false;
    if (const auto known = workers_.find(attempt.worker->id()); known != workers_.end()) {
        std::erase(known->second.attempts, attempt.id);
    }
    attempt.gpu_part = scheduler_.gpu_part(attempt.id, clock_.now());
    const Time now = clock_.now();
    const double seconds = seconds_between(attempt.placed_at, now);
    scheduler_.finished(attempt.id, seconds * attempt.gpu_part / attempt.jobs_together, now);
}

double Placement::gpu_part(const Attempt& attempt) const {
    return attempt.holds_place ? scheduler_.gpu_part(attempt.id, clock_.now()) : attempt.gpu_part;
}

// Where the models were believed to be in memory: a loader node that runs again may find them
// there, and what that takes must not be learned as the time of a load.
bool Placement::is_load(const Attempt& attempt, Millis measured) const {
    constexpr double kPartOfALoad = 0.25;
    const auto& worker = workers_.at(attempt.worker->id());
    double expected_s = 0;
    for (const scheduler::Model& model : attempt.keys.profile->models) {
        expected_s += predictor_.load_seconds(model, worker.gpu_type, attempt.worker->id());
    }
    return std::chrono::duration<double>(measured).count() >= kPartOfALoad * expected_s;
}

void Placement::learn_memory(
    const Attempt& attempt, const Error& error, const std::string& gpu_type
) {
    const auto text_of = [&error](std::string_view key) -> std::string_view {
        const json::value* found = json::find(error.details, key);
        return found != nullptr && found->is_string() ? std::string_view(found->get_string())
                                                      : std::string_view();
    };
    const std::string_view message = text_of("exception_message");
    if (is_host_memory(text_of("exception_type"), message)) {
        return;
    }
    // What is in use on a GPU that others work on is not this job's need.
    const WorkerInfo info = attempt.worker->info();
    const bool is_alone = info.gpu_id.empty() && info.slots == 1 && attempt.jobs_together == 1;
    const auto wanted = is_alone ? memory_wanted(message) : std::nullopt;
    predictor_.learn_out_of_memory(*attempt.keys.profile, gpu_type, wanted.value_or(0));
}

void Placement::learn(const Attempt& attempt, const Result<AttemptResult>& outcome) {
    const auto known = workers_.find(attempt.worker->id());
    if (known == workers_.end() || attempt.keys.profile->shape.empty()) {
        return;
    }
    const scheduler::Profile& profile = *attempt.keys.profile;
    if (attempt.group && attempt.group->runs_alone()) {
        lone_shapes_.add(profile.shape, clock_.now());
    }
    if (!outcome) {
        if (outcome.error().code == Code::out_of_memory) {
            learn_memory(attempt, outcome.error(), known->second.gpu_type);
            scheduler_.forget_models(known->first);  // ComfyUI unloads them all
        } else if (outcome.error().code == Code::worker_lost) {
            scheduler_.forget_models(known->first);
        }
        return;
    }
    const auto whole = attempt.group ? attempt.group->take_whole() : std::nullopt;
    if (attempt.group && !whole) {
        return;  // another of its jobs has told of the run, or each ran alone after all
    }
    scheduler::RunReport report{profile, known->second.gpu_type, known->first, 0, {}};
    report.seconds = seconds_between(attempt.placed_at, clock_.now());
    report.jobs = whole ? whole->jobs : 1;
    bool has_loaded = attempt.expected_load_s > 0;
    if (whole || attempt.usage) {
        const auto seconds = [](Millis duration) {
            return std::chrono::duration<double>(duration).count();
        };
        const Usage& usage = whole ? whole->usage : *attempt.usage;
        has_loaded = usage.model_loads > 0 && (has_loaded || is_load(attempt, usage.model_load));
        if (usage.model_load + usage.inference > Millis(0)) {
            report.seconds = seconds(usage.model_load + usage.inference);
            report.load_seconds = seconds(usage.model_load);
        }
        report.peak_vram_bytes = usage.vram_peak_bytes;
    }
    // Others on the GPU made it longer; what was loaded came from a disk.
    const double load_s = report.load_seconds.value_or(0);
    report.seconds = load_s + (report.seconds - load_s) * gpu_part(attempt);
    if (has_loaded) {
        report.loaded = profile.models;
    } else {
        report.load_seconds.reset();
    }
    predictor_.learn(report);
}

}  // namespace comfyd::jobs
