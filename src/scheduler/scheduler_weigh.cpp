// What each worker would mean for a job, and which of them gets it.
#include <algorithm>
#include <limits>

#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

// Workers of one kind, or with one model, that are looked at for a job.
constexpr int kLookedAt = 4;
// A worker that has the results of a job is waited for within this part of what the job takes
// elsewhere.
constexpr double kSoon = 0.5;
constexpr std::uint64_t kUnknownBytes = std::numeric_limits<std::uint64_t>::max();

}  // namespace

bool Scheduler::Impl::must_avoid(const Order::Group& group, const Machines::Machine& machine)
    const {
    if (std::find(group.avoid.begin(), group.avoid.end(), machine.state.id) == group.avoid.end()) {
        return false;
    }
    std::size_t avoided = 0;
    for (const std::string& id : group.avoid) {
        const auto worker = machines_.find(id);
        if (worker && machines_[*worker].state.available &&
            machines_.can_run(machines_[*worker], group.profile)) {
            ++avoided;
        }
    }
    return machines_.capable(group.profile).second > avoided;
}

Numbers Scheduler::Impl::numbers_of(const Machines::Machine& machine, Index profile, Time now)
    const {
    const ProfileTable::Expected& expected = profiles_.expected(profile, machine.type);
    Numbers numbers;
    numbers.remaining_s = machines_.remaining_s(machine, now);
    numbers.load_s = machines_.load_s(machine, profile);
    numbers.run_s = expected.run_s * machines_.sharing(machine);
    numbers.finish_s = numbers.remaining_s + numbers.load_s + numbers.run_s;
    numbers.vram_needed = machines_.claim(machine, profile);
    numbers.vram_free = machines_.vram_free(machine);
    numbers.cached = machines_.cached(machine, profile);
    numbers.load =
        static_cast<double>(machine.runs.size()) / static_cast<double>(machine.state.slots);
    numbers.score = placement_score(numbers, machine.state.vram_bytes);
    return numbers;
}

void Scheduler::Impl::list_free(
    const Order::Group& group,
    Time now,
    std::optional<Index> with_results,
    Question& question,
    std::vector<Index>& workers
) const {
    const auto add = [&](Index worker) {
        const Machines::Machine& machine = machines_[worker];
        if (std::find(workers.begin(), workers.end(), worker) != workers.end() ||
            !machines_.fits_now(machine, group.profile) || must_avoid(group, machine)) {
            return false;
        }
        workers.push_back(worker);
        Candidate candidate;
        candidate.numbers = numbers_of(machine, group.profile, now);
        candidate.is_wanted_elsewhere =
            candidate.numbers.load_s > 0 && is_wanted(machine, WaitClass::batch);
        candidate.ran_alike = machine.latest_profile == group.profile;
        question.candidates.push_back(std::move(candidate));
        return true;
    };
    const auto add_some = [&](const auto& free, auto may) {
        int looked_at = 0;
        int added = 0;
        for (const auto& [load, since, worker] : free) {
            if (may(worker) && add(worker)) {
                ++added;
            }
            // More than usual where they are full because of others on the same GPU.
            if (++looked_at >= 16 * kLookedAt || added >= kLookedAt) {
                break;
            }
        }
    };
    for (Index kind = 0; kind < machines_.kinds().size(); ++kind) {
        const auto& free = machines_.kinds()[kind].free;
        if (!free.empty() && machines_.can_run(kind, profiles_[group.profile].requirement) &&
            machines_.is_large_enough(machines_.kinds()[kind], group.profile)) {
            add_some(free, [](Index) { return true; });
        }
    }
    if (group.anchor != 0) {
        add_some(machines_.free_with(group.anchor), [&](Index worker) {
            return machines_.can_run(machines_[worker], group.profile);
        });
    }
    for (const auto& worker : {with_results, machines_.latest_with(group.profile)}) {
        if (worker && machines_[*worker].has_room() &&
            machines_.can_run(machines_[*worker], group.profile)) {
            add(*worker);
        }
    }
    if (profiles_[group.profile].is_for_gpu) {
        keep_tightest(group.profile, question, workers);
    }
}

// Who asks for a GPU gets the one with that very name before others of its kind, and of those one
// that is no larger than it must be: the large ones stay free for whoever needs them.
Scheduler::Impl::Misfit Scheduler::Impl::misfit(Index worker, Index profile) const {
    const Machines::Machine& machine = machines_[worker];
    const auto can = machines_.can(machine.kind, profiles_[profile].requirement);
    const std::uint64_t bytes = machine.state.vram_bytes;
    return {can != Machines::Can::exact, bytes > 0 ? bytes : kUnknownBytes};
}

bool Scheduler::Impl::is_as_tight(Index worker, Index other, Index profile) const {
    constexpr double kAlike = 1.1;  // drivers keep some of the memory, not always as much
    const Misfit here = misfit(worker, profile);
    const Misfit there = misfit(other, profile);
    return here.has_other_name < there.has_other_name ||
           (here.has_other_name == there.has_other_name &&
            static_cast<double>(here.bytes) <= kAlike * static_cast<double>(there.bytes));
}

// Where it is not listed nothing is left.
void Scheduler::Impl::keep_only(Index worker, Question& question, std::vector<Index>& workers) {
    const auto found = std::ranges::find(workers, worker);
    const auto at = static_cast<std::size_t>(found - workers.begin());
    const bool is_listed = found != workers.end();
    if (is_listed) {
        std::swap(workers.front(), workers[at]);
        std::swap(question.candidates.front(), question.candidates[at]);
    }
    workers.resize(is_listed ? 1 : 0);
    question.candidates.resize(is_listed ? 1 : 0);
}

void Scheduler::Impl::keep_tightest(Index profile, Question& question, std::vector<Index>& workers)
    const {
    const auto tightest = std::ranges::min_element(workers, {}, [&](Index worker) {
        return misfit(worker, profile);
    });
    if (tightest == workers.end()) {
        return;
    }
    const Index best = *tightest;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        if (is_as_tight(workers[i], best, profile)) {
            std::swap(workers[kept], workers[i]);
            std::swap(question.candidates[kept], question.candidates[i]);
            ++kept;
        }
    }
    workers.resize(kept);
    question.candidates.resize(kept);
}

// Where an equal job ran last, unless its models are gone from there.
std::optional<Index> Scheduler::Impl::worker_with_results(const Order::Head& head) const {
    const auto worker = machines_.with_results(order_.content_of(head.turn.job.job));
    const Order::Group& group = order_.group(head.group);
    return worker && machines_[*worker].state.available &&
                   machines_.can_run(machines_[*worker], group.profile) &&
                   machines_.load_s(machines_[*worker], group.profile) <= 0 &&
                   !must_avoid(group, machines_[*worker])
               ? worker
               : std::nullopt;
}

// The worker has the results, or will have them soon: the run that it saves counts like a load.
std::optional<Scheduler::Impl::Deferred> Scheduler::Impl::prefer_results(
    Index worker,
    const Order::Head& head,
    const std::vector<Index>& workers,
    Question& question,
    Time now
) const {
    const auto listed = std::find(workers.begin(), workers.end(), worker);
    if (listed != workers.end()) {
        Numbers& there =
            question.candidates[static_cast<std::size_t>(listed - workers.begin())].numbers;
        there.finish_s -= there.run_s;
        there.run_s = 0;
        return std::nullopt;
    }
    const Machines::Machine& machine = machines_[worker];
    const double remaining_s = machines_.remaining_s(machine, now);
    const auto soonest = std::ranges::min_element(question.candidates, {}, [](const auto& one) {
        return one.numbers.finish_s;
    });
    // Nobody waits for longer than the job takes elsewhere, however often the worker is taken by
    // others.
    const double waited_s = seconds_between(order_.queued_at(head.turn.job.job), now);
    if (!policy_->stays_with_models() || machine.has_room() ||
        remaining_s > kSoon * soonest->numbers.finish_s ||
        waited_s + remaining_s > soonest->numbers.finish_s) {
        return std::nullopt;
    }
    return Deferred{later(now, 1.1 * remaining_s + 0.1), machine.state.id};
}

void Scheduler::Impl::list_busy(
    const Order::Group& group, Time now, Question& question, std::vector<Index>& workers
) const {
    if (group.anchor == 0) {
        return;
    }
    const bool is_for_gpu = profiles_[group.profile].is_for_gpu;
    const auto& busy = machines_.busy_with(group.anchor);
    question.warm_workers = busy.size() + machines_.free_with(group.anchor).size();
    int looked_at = 0;
    for (const auto& [ends, worker] : busy) {
        const Machines::Machine& machine = machines_[worker];
        if (machines_.can_run(machine, group.profile) && !must_avoid(group, machine) &&
            (!is_for_gpu || is_as_tight(worker, workers.front(), group.profile))) {
            workers.push_back(worker);
            question.candidates.push_back({numbers_of(machine, group.profile, now), true, false});
        }
        if (++looked_at >= kLookedAt) {
            break;
        }
    }
    for (const WaitClass wait_class : kInOrder) {
        if (wait_class <= group.wait_class) {
            question.queue_s += order_.in_turn(wait_class, group.anchor).seconds;
        }
    }
}

Scheduler::Impl::Weighed Scheduler::Impl::weigh(
    const Order::Head& head, Time now, std::optional<Index> only_worker
) {
    const Order::Group& group = order_.group(head.group);
    machines_.make_anchor(group.anchor);
    Question question;
    std::vector<Index> workers;
    Weighed weighed;
    auto with_results = worker_with_results(head);
    const bool is_for_gpu = profiles_[group.profile].is_for_gpu;
    if (only_worker && !is_for_gpu) {
        const Machines::Machine& machine = machines_[*only_worker];
        if (machines_.can_run(machine, group.profile) &&
            machines_.fits_now(machine, group.profile) && !must_avoid(group, machine)) {
            workers.push_back(*only_worker);
            question.candidates.push_back({numbers_of(machine, group.profile, now), false, false});
        }
    } else {
        list_free(group, now, only_worker ? only_worker : with_results, question, workers);
    }
    if (only_worker && is_for_gpu) {
        keep_only(*only_worker, question, workers);
    }
    question.has_models = group.anchor != 0;
    if (question.candidates.empty()) {
        return weighed;
    }
    if (is_for_gpu && with_results && !is_as_tight(*with_results, workers.front(), group.profile)) {
        with_results.reset();
    }
    if (with_results) {
        const bool is_free_elsewhere =
            only_worker && *with_results != *only_worker && machines_[*with_results].has_room();
        weighed.deferred = prefer_results(*with_results, head, workers, question, now);
        if (weighed.deferred || is_free_elsewhere) {
            return weighed;
        }
    }
    if (const auto until = gathers_until(head, now)) {
        gathering_.push_back(head.group);
        weighed.deferred = Deferred{*until, {}};
        return weighed;
    }
    if (!only_worker) {
        list_busy(group, now, question, workers);
    }
    const Choice choice = policy_->choose(question);
    if (!choice.candidate) {
        const Numbers& there = question.candidates[*choice.other].numbers;
        weighed.deferred = Deferred{
            later(now, there.remaining_s + 0.1 + 0.1 * there.run_s),
            machines_[workers[*choice.other]].state.id
        };
        return weighed;
    }
    Match match;
    match.job = head.turn.job.job;
    match.worker = workers[*choice.candidate];
    match.profile = group.profile;
    match.why = choice.why;
    match.numbers = question.candidates[*choice.candidate].numbers;
    if (choice.other) {
        match.other_worker = machines_[workers[*choice.other]].state.id;
        match.other = question.candidates[*choice.other].numbers;
    }
    if (only_worker && group.anchor != 0) {
        match.why = match.numbers.load_s > 0 ? Why::spread : Why::warm;
    }
    match.queue_s = question.queue_s / static_cast<double>(question.warm_workers + 1);
    if (choice.why == Why::spread) {
        match.job = job_to_spread(head, question, match.numbers.load_s);
    }
    weighed.match = std::move(match);
    return weighed;
}

// The jobs in front will have started on the warm workers before the load is done: it is made for
// the one whose turn comes then.
JobId Scheduler::Impl::job_to_spread(
    const Order::Head& head, const Question& question, double load_s
) const {
    const double job_s = std::max(0.001, profiles_.usual_s(order_.group(head.group).profile));
    const double before = load_s / job_s * static_cast<double>(question.warm_workers);
    const std::size_t last = order_.lane_size(head.lane) - 1;
    return order_.job_at(
        head.lane, before >= static_cast<double>(last) ? last : static_cast<std::size_t>(before)
    );
}

}  // namespace comfyd::scheduler
