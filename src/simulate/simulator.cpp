#include "simulate/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "scheduler/predictor.hpp"
#include "simulate/policy.hpp"
#include "simulate/random.hpp"

namespace comfyd::simulate {
namespace {

constexpr int kAttemptsMax = 3;
constexpr double kRepeatedPart = 0.01;  // of a run whose results the worker has
constexpr std::size_t kMomentsMax = 600;
constexpr std::uint64_t kProgressEvery = 4'096;
// What waits after so many steps in which nothing started fits nowhere.
constexpr std::uint64_t kStuckSteps = 10'000;

struct LoadedModel {
    std::uint32_t model;
    std::uint64_t bytes;
};

// One worker of the fleet as it really is.
struct Machine {
    const GpuType* type = nullptr;
    std::string id;
    std::vector<LoadedModel> loaded;      // the latest used first
    std::deque<std::uint64_t> results;    // contents of its latest runs, the latest last
    std::optional<std::uint32_t> latest;  // profile of its latest run
    Action action;                        // while busy
    bool busy = false;
    bool up = true;
    bool fails = false;            // what it does now will fail
    std::uint32_t generation = 0;  // of its events; those of an older one are void
    std::int64_t since_ms = 0;
    std::vector<scheduler::Model> missing;  // that it had to load for what it does now
    double load_s = 0;
    bool prewarms = false;        // loads ahead of jobs
    std::int64_t warm_at_ms = 0;  // what it loaded ahead of jobs is there
};

struct Event {
    std::int64_t at_ms;
    std::uint64_t number;  // the order among those of the same time
    std::uint32_t worker;
    std::uint32_t generation;
    enum class Kind : std::uint8_t { end, outage, repaired, warm } kind;

    bool operator>(const Event& other) const {
        return at_ms != other.at_ms ? at_ms > other.at_ms : number > other.number;
    }
};

class Simulation {
public:
    Simulation(const Trace& trace, const Fleet& fleet, const Settings& settings)
        : trace_(trace), fleet_(fleet), settings_(settings), random_(settings.seed) {
        intern_models();
        machines_.resize(fleet.size());
        for (std::uint32_t at = 0; at < fleet.size(); ++at) {
            machines_[at].type = &fleet[at];
            machines_[at].id = worker_id(fleet, at);
        }
        outcome_.workers = fleet.size();
        outcome_.fleet = describe_fleet(fleet);
        outcome_.waits.assign(trace.jobs.size(), -1);
        outcome_.turnarounds.assign(trace.jobs.size(), -1);
    }

    Result<Outcome> run(const std::string& policy, const Progress& progress) {
        policy_ = make_policy(
            policy,
            Scene{
                trace_,
                fleet_,
                predictor_,
                settings_.merge_max,
                settings_.prewarms,
                settings_.pinned
            }
        );
        if (policy_ == nullptr) {
            return fail(Code::invalid_argument, "there is no policy '" + policy + "'");
        }
        outcome_.policy = policy;
        plan_outages();
        while (step()) {
            if (progress && ended_ >= progress_at_) {
                progress_at_ = ended_ + kProgressEvery;
                if (!progress(ended_)) {
                    return fail(Code::cancelled, "the simulation was stopped");
                }
            }
        }
        finish();
        return std::move(outcome_);
    }

private:
    void intern_models() {
        std::unordered_map<std::string, std::uint32_t> known;
        for (const TraceProfile& profile : trace_.profiles) {
            auto& models = models_.emplace_back();
            for (const scheduler::Model& model : profile.profile->models) {
                const auto number = static_cast<std::uint32_t>(known.size());
                models.push_back({known.emplace(model.name, number).first->second, model.bytes});
            }
        }
    }

    // Everything that happens at the next time. False: nothing is left to happen.
    bool step() {
        const auto next = next_time();
        if (!next) {
            return false;
        }
        now_ = *next;
        while (arrived_ < trace_.jobs.size() && trace_.jobs[arrived_].at_ms <= now_) {
            policy_->add(static_cast<std::uint32_t>(arrived_++), {});
        }
        while (!events_.empty() && events_.top().at_ms <= now_) {
            const Event event = events_.top();
            events_.pop();
            if (event.generation == machines_[event.worker].generation) {
                happen(event);
            }
        }
        steps_without_start_ += arrived_ == trace_.jobs.size() ? 1U : 0U;
        while (auto action = policy_->next(now_)) {
            // Loading for ever, as some rules can, is no progress either.
            steps_without_start_ = action->jobs.empty() ? steps_without_start_ : 0;
            start(std::move(*action));
        }
        for (const Action& action : policy_->prewarm(now_)) {
            prewarm(action);
        }
        note_moment();
        return true;
    }

    std::optional<std::int64_t> next_time() const {
        std::optional<std::int64_t> next;
        const auto consider = [&next](std::int64_t at) { next = next ? std::min(*next, at) : at; };
        if (arrived_ < trace_.jobs.size()) {
            consider(trace_.jobs[arrived_].at_ms);
        }
        const bool all_came = arrived_ == trace_.jobs.size();
        const bool stuck = all_came && steps_without_start_ > kStuckSteps;
        if ((all_came && busy_ == 0 && policy_->waiting() == 0) || stuck) {
            return std::nullopt;
        }
        if (!events_.empty()) {
            consider(events_.top().at_ms);
        }
        if (const auto wake = policy_->wake_at(); wake && policy_->waiting() > 0) {
            consider(std::max(*wake, now_ + 1));
        }
        if (const auto look = policy_->prewarms_at(); look && !all_came) {
            consider(std::max(*look, now_ + 1));
        }
        return next;
    }

    void push(std::int64_t at_ms, std::uint32_t worker, Event::Kind kind) {
        events_.push({at_ms, ++event_number_, worker, machines_[worker].generation, kind});
    }

    void plan_outages() {
        for (std::uint32_t worker = 0; worker < machines_.size() && settings_.outage_hours > 0;
             ++worker) {
            plan_outage(worker);
        }
    }
    void plan_outage(std::uint32_t worker) {
        const double hours = random_.exponential(settings_.outage_hours);
        push(now_ + static_cast<std::int64_t>(hours * 3'600'000), worker, Event::Kind::outage);
    }

    void happen(const Event& event) {
        switch (event.kind) {
            case Event::Kind::end:
                end(event.worker, machines_[event.worker].fails);
                return;
            case Event::Kind::outage:
                break_down(event.worker);
                return;
            case Event::Kind::repaired:
                machines_[event.worker].up = true;
                policy_->set_up(event.worker, true);
                plan_outage(event.worker);
                return;
            case Event::Kind::warm:
                end_prewarm(event.worker);
                return;
        }
    }

    void prewarm(const Action& action) {
        Machine& machine = machines_[action.worker];
        machine.missing.clear();
        const double load_s = load(machine, action.profile);
        machine.results.clear();  // it keeps those of its latest prompts, of which this is one
        machine.latest.reset();
        outcome_.load_seconds += load_s;
        ++outcome_.prewarms;
        machine.prewarms = true;
        machine.warm_at_ms = now_ + static_cast<std::int64_t>(std::llround(load_s * 1000));
        push(machine.warm_at_ms, action.worker, Event::Kind::warm);
    }
    void end_prewarm(std::uint32_t worker) {
        if (std::exchange(machines_[worker].prewarms, false)) {
            policy_->prewarmed(worker, now_);
        }
    }

    // What is loaded ahead of jobs is loaded to its end: no worker stops in the middle of a file.
    void start(Action action) {
        Machine& machine = machines_[action.worker];
        end_prewarm(action.worker);
        const std::int64_t begin_ms = std::max(now_, machine.warm_at_ms);
        machine.missing.clear();
        machine.load_s = load(machine, action.profile);
        double run_s = 0;
        machine.fails = false;
        if (!action.jobs.empty()) {
            run_s = run_seconds(action) * unsaved_part(machine, action) / machine.type->speed;
            ++outcome_.runs;
            machine.fails =
                settings_.failure_rate > 0 && random_.uniform() < settings_.failure_rate;
            run_s *= machine.fails ? random_.uniform() : 1;
        }
        for (const std::uint32_t job : action.jobs) {
            if (outcome_.waits[job] < 0) {
                outcome_.waits[job] = seconds_between(trace_.jobs[job].at_ms, begin_ms);
            }
        }
        machine.action = std::move(action);
        machine.busy = true;
        machine.since_ms = begin_ms;
        ++busy_;
        const auto ms = static_cast<std::int64_t>(std::llround((machine.load_s + run_s) * 1000));
        push(begin_ms + std::max<std::int64_t>(ms, 1), machine.action.worker, Event::Kind::end);
    }

    // What a merged run takes is what the longest of its jobs takes, and a part for each other.
    double run_seconds(const Action& action) const {
        double longest = 0;
        for (const std::uint32_t job : action.jobs) {
            longest = std::max(
                longest,
                trace_.profiles[trace_.jobs[job].profile].seconds *
                    static_cast<double>(trace_.jobs[job].factor)
            );
        }
        return longest * (1 + settings_.merge_cost * (static_cast<double>(action.jobs.size()) - 1));
    }

    // What the worker's cache leaves of a run.
    double unsaved_part(Machine& machine, const Action& action) {
        const bool is_near = std::exchange(machine.latest, action.profile) == action.profile;
        const std::uint64_t content =
            action.jobs.size() == 1 ? trace_.jobs[action.jobs.front()].content : 0;
        const bool is_same =
            content != 0 && std::ranges::find(machine.results, content) != machine.results.end();
        std::erase(machine.results, content);
        machine.results.push_back(content);
        if (machine.results.size() > settings_.results_kept) {
            machine.results.pop_front();
        }
        outcome_.repeated += is_same ? 1U : 0U;
        return is_same   ? kRepeatedPart
               : is_near ? 1 - trace_.profiles[action.profile].kept_part
                         : 1;
    }

    // Brings the models of the profile in; those that were used longest ago make room.
    double load(Machine& machine, std::uint32_t profile) {
        const std::vector<LoadedModel>& needed = models_[profile];
        double bytes = 0;
        for (std::size_t at = 0; at < needed.size(); ++at) {
            const auto found =
                std::ranges::find(machine.loaded, needed[at].model, &LoadedModel::model);
            if (found != machine.loaded.end()) {
                machine.loaded.erase(found);
            } else {
                bytes += static_cast<double>(needed[at].bytes);
                machine.missing.push_back(trace_.profiles[profile].profile->models[at]);
            }
        }
        machine.loaded.insert(machine.loaded.begin(), needed.begin(), needed.end());
        std::size_t kept = needed.size();
        std::uint64_t held = 0;  // beside those of this run
        while (kept < machine.loaded.size() &&
               held + machine.loaded[kept].bytes <= machine.type->model_memory_bytes) {
            held += machine.loaded[kept++].bytes;
        }
        machine.loaded.resize(kept);
        outcome_.loads += machine.missing.empty() ? 0U : 1U;
        const double slower = 1 + settings_.load_jitter * random_.uniform();
        return bytes / machine.type->load_bytes_per_second * slower;
    }

    void end(std::uint32_t worker, bool failed) {
        Machine& machine = machines_[worker];
        const double seconds =
            static_cast<double>(std::max<std::int64_t>(0, now_ - machine.since_ms)) / 1000;
        const double loading = std::min(machine.load_s, seconds);
        outcome_.load_seconds += loading;
        outcome_.run_seconds += seconds - loading;
        machine.busy = false;
        --busy_;
        const Action action = std::move(machine.action);
        const auto count = static_cast<double>(std::max<std::size_t>(action.jobs.size(), 1));
        if (!failed) {
            learn(machine, action, seconds);
        }
        policy_->finished(action, seconds / count, now_);
        for (const std::uint32_t job : action.jobs) {
            conclude(job, worker, failed);
        }
    }

    void learn(const Machine& machine, const Action& action, double seconds) {
        const scheduler::Profile& profile = *trace_.profiles[action.profile].profile;
        if (action.jobs.empty()) {
            return;
        }
        const double truth = seconds - std::min(machine.load_s, seconds);
        if (action.jobs.size() > 1) {
            scheduler::RunReport report{
                profile, machine.type->name, machine.id, seconds, machine.missing
            };
            report.load_seconds = machine.load_s;
            report.jobs = static_cast<int>(action.jobs.size());
            predictor_.learn(report);
            return;
        }
        const double expected = predictor_.run_seconds(profile, machine.type->name);
        errors_.push_back(static_cast<float>(std::abs(expected - truth) / std::max(truth, 1e-3)));
        predictor_.learn({profile, machine.type->name, machine.id, seconds, machine.missing});
    }

    void conclude(std::uint32_t job, std::uint32_t worker, bool failed) {
        if (failed) {
            ++outcome_.failed_runs;
            std::vector<std::uint32_t>& failures = failures_[job];
            failures.push_back(worker);
            if (failures.size() < kAttemptsMax) {
                policy_->add(job, failures);
                return;
            }
            ++outcome_.failed_jobs;
        } else {
            ++outcome_.completed;
            outcome_.images += trace_.profiles[trace_.jobs[job].profile].images;
        }
        failures_.erase(job);
        ++ended_;
        last_end_ = now_;
        outcome_.turnarounds[job] = seconds_since(trace_.jobs[job].at_ms);
    }

    void break_down(std::uint32_t worker) {
        Machine& machine = machines_[worker];
        ++machine.generation;
        machine.loaded.clear();
        machine.warm_at_ms = now_;
        end_prewarm(worker);
        machine.results.clear();
        machine.latest.reset();
        if (machine.busy) {
            end(worker, true);
        }
        machine.up = false;
        policy_->set_up(worker, false);
        push(
            now_ + static_cast<std::int64_t>(settings_.repair_seconds * 1000),
            worker,
            Event::Kind::repaired
        );
    }

    // Keeps the timeline short: when it grows too long every second moment goes, and from then on
    // they are taken half as often.
    void note_moment() {
        if (now_ < next_moment_) {
            return;
        }
        outcome_.timeline.push_back(
            {static_cast<double>(now_) / 1000,
             static_cast<double>(policy_->waiting()),
             static_cast<double>(busy_)}
        );
        if (outcome_.timeline.size() > kMomentsMax) {
            std::size_t kept = 0;
            for (std::size_t at = 0; at < outcome_.timeline.size(); at += 2) {
                outcome_.timeline[kept++] = outcome_.timeline[at];
            }
            outcome_.timeline.resize(kept);
            moment_every_ = std::max<std::int64_t>(now_ / static_cast<std::int64_t>(kept), 1);
        }
        next_moment_ = now_ + moment_every_;
    }

    static float seconds_between(std::int64_t from_ms, std::int64_t to_ms) {
        return static_cast<float>(static_cast<double>(to_ms - from_ms) / 1000);
    }
    float seconds_since(std::int64_t ms) const { return seconds_between(ms, now_); }

    void finish() {
        const std::int64_t first = trace_.jobs.empty() ? 0 : trace_.jobs.front().at_ms;
        outcome_.makespan =
            static_cast<double>(std::max(last_end_ - first, std::int64_t{0})) / 1000;
        for (const Machine& machine : machines_) {
            outcome_.usd += machine.type->usd_per_hour * outcome_.makespan / 3600;
        }
        outcome_.timeline.push_back({static_cast<double>(last_end_) / 1000, 0, 0});
        if (!errors_.empty()) {
            const auto middle = errors_.begin() + static_cast<std::ptrdiff_t>(errors_.size() / 2);
            std::nth_element(errors_.begin(), middle, errors_.end());
            outcome_.run_error = static_cast<double>(*middle);
        }
    }

    const Trace& trace_;
    const Fleet& fleet_;
    const Settings& settings_;
    Random random_;
    scheduler::Predictor predictor_;
    std::unique_ptr<Policy> policy_;
    std::vector<std::vector<LoadedModel>> models_;  // by profile
    std::vector<Machine> machines_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t event_number_ = 0;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> failures_;  // workers, by job
    std::size_t arrived_ = 0;
    std::size_t busy_ = 0;
    std::uint64_t ended_ = 0;
    std::uint64_t progress_at_ = 0;
    std::uint64_t steps_without_start_ = 0;
    std::int64_t now_ = 0;
    std::int64_t last_end_ = 0;
    std::int64_t next_moment_ = 0;
    std::int64_t moment_every_ = 1;
    std::vector<float> errors_;
    Outcome outcome_;
};

}  // namespace

namespace {

// Of each job, with all that a worker's cache can save.
std::vector<double> least_work(const Trace& trace) {
    std::vector<double> least;
    least.reserve(trace.jobs.size());
    std::unordered_set<std::uint64_t> seen;
    for (const TraceJob& job : trace.jobs) {
        const TraceProfile& profile = trace.profiles[job.profile];
        const bool is_repeat = job.content != 0 && !seen.insert(job.content).second;
        least.push_back(
            profile.seconds * static_cast<double>(job.factor) *
            (is_repeat ? std::min(kRepeatedPart, 1 - profile.kept_part) : 1 - profile.kept_part)
        );
    }
    return least;
}

}  // namespace

double Outcome::utilisation() const {
    const double all = makespan * static_cast<double>(workers);
    return all > 0 ? run_seconds / all : 0;
}

double Outcome::mean_turnaround() const {
    double sum = 0;
    std::size_t ended = 0;
    for (const float turnaround : turnarounds) {
        sum += std::max(0.0, static_cast<double>(turnaround));
        ended += turnaround >= 0 ? 1 : 0;
    }
    return ended > 0 ? sum / static_cast<double>(ended) : 0;
}

double Outcome::images_per_gpu_second() const {
    return gpu_seconds() > 0 ? images / gpu_seconds() : 0;
}

Result<Outcome> simulate(
    const Trace& trace,
    const Fleet& fleet,
    const std::string& policy,
    const Settings& settings,
    const Progress& progress
) {
    return Simulation(trace, fleet, settings).run(policy, progress);
}

double makespan_bound(const Trace& trace, const Fleet& fleet) {
    if (trace.jobs.empty() || fleet.empty()) {
        return 0;
    }
    double capacity = 0;  // seconds of work on the type with speed 1, each second
    double fastest = 0;
    double slowest = fleet.front().speed;
    double load_rate = 0;
    for (const GpuType& type : fleet) {
        capacity += type.speed;
        fastest = std::max(fastest, type.speed);
        slowest = std::min(slowest, type.speed);
        load_rate = std::max(load_rate, type.load_bytes_per_second);
    }
    std::map<std::string, std::uint64_t> models;
    const std::vector<double> least = least_work(trace);
    double longest = 0;
    double from_back = 0;  // work of the jobs from here on
    double bound = 0;
    std::vector<bool> used(trace.profiles.size());
    const double first = static_cast<double>(trace.jobs.front().at_ms) / 1000;
    for (auto job = trace.jobs.rbegin(); job != trace.jobs.rend(); ++job) {
        const double at = static_cast<double>(job->at_ms) / 1000 - first;
        const double work = least[static_cast<std::size_t>(trace.jobs.rend() - job) - 1];
        from_back += work;
        used[job->profile] = true;
        longest = std::max(longest, at + work / fastest);
        bound = std::max(bound, at + from_back / capacity);
    }
    for (std::size_t at = 0; at < used.size(); ++at) {
        if (used[at]) {
            for (const scheduler::Model& model : trace.profiles[at].profile->models) {
                models[model.name] = model.bytes;
            }
        }
    }
    double loads = 0;
    for (const auto& [name, bytes] : models) {
        loads += static_cast<double>(bytes) / load_rate;
    }
    // The slowest workers lose least by loading.
    return std::max({bound, longest, (from_back + loads * slowest) / capacity});
}

}  // namespace comfyd::simulate
