#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

// Of so many jobs one is looked at for how right its expected wait was.
constexpr std::uint64_t kForecastEvery = 8;
constexpr std::size_t kForecastsMax = 256;
constexpr double kForecastMin = 0.5;  // seconds
// Of the workers that have a model so many are looked at for what else they have.
constexpr int kHoldersLookedAt = 4;

}  // namespace

Scheduler::Impl::Impl(const Estimates& estimates, Options options)
    : profiles_(estimates, options.merge_max),
      order_(profiles_),
      machines_(profiles_),
      options_(options),
      policy_(make_policy(options.policy)) {}

void Scheduler::Impl::worker_changed(Index worker) {
    const Machines::Machine& machine = machines_[worker];
    if (!machine.has_room()) {
        return;
    }
    changed_kinds_.insert(machine.kind);
    if (!machine.loaded.empty()) {
        dirty_.push_back(worker);
    }
    // Those that waited for it because of its models are found by these; those without models
    // because of its results.
    order_.unblock_anchor(0);
}

void Scheduler::Impl::set_worker(WorkerState state) {
    const Index worker = machines_.set(std::move(state));
    // What did not fit anywhere, or went to the largest for want of a larger one, may now.
    order_.unblock_all();
    worker_changed(worker);
}

void Scheduler::Impl::remove_worker(const std::string& id) {
    const auto worker = machines_.find(id);
    if (!worker) {
        return;
    }
    std::erase(dirty_, *worker);
    machines_.remove(*worker);
    order_.unblock_all();
}

void Scheduler::Impl::set_models(const std::string& id, const std::vector<Model>& models) {
    const auto worker = machines_.find(id);
    if (!worker) {
        return;
    }
    std::vector<Index> indices;
    for (const Model& model : models) {
        indices.push_back(profiles_.intern_model(model));
    }
    for (const Machines::Loaded& loaded : machines_[*worker].loaded) {
        order_.unblock_anchor(loaded.model);
    }
    machines_.set_models(*worker, indices);
    if (models.empty()) {
        machines_.forget_results(*worker);
    }
    worker_changed(*worker);
}

Circumstances Scheduler::Impl::circumstances(const ProfilePtr& profile) {
    Circumstances known;
    if (profile->shape.empty()) {
        return known;
    }
    const Index at = profiles_.intern(profile);
    const ProfileTable::Expected& expected = profiles_.expected(at, profiles_.usual_type());
    if (expected.is_known) {
        known.expected_seconds = expected.run_s;
        const std::uint64_t largest = machines_.largest_vram();
        if (largest > 0 && expected.vram_bytes > 0) {
            known.memory_part =
                static_cast<double>(expected.vram_bytes) / static_cast<double>(largest);
        }
    }
    if (const Index anchor = profiles_[at].anchor; anchor != 0) {
        machines_.make_anchor(anchor);
        known.cached_part = machines_.most_cached(at, kHoldersLookedAt);
    }
    profiles_.release(at);
    return known;
}

void Scheduler::Impl::add(const JobId& job, const JobKeys& keys) {
    COMFYD_ASSERT(!running_.contains(job));
    order_.add(job, keys);
    note_arrival(job, keys);
    if (++added_ % kForecastEvery == 0) {
        newest_ = job;
    }
}

bool Scheduler::Impl::remove(const JobId& job) {
    forecasts_.erase(job);
    return order_.remove(job);
}

void Scheduler::Impl::note_expected(Time now) {
    if (newest_ && order_.contains(*newest_) && forecasts_.size() < kForecastsMax) {
        const double wait_s = raw_wait(*newest_, now);
        const WaitClass wait_class = order_.place(*newest_, nullptr).wait_class;
        if (wait_s > kForecastMin) {
            forecasts_.emplace(*newest_, Forecast{now, wait_s, wait_class});
        }
    }
    newest_.reset();
}

void Scheduler::Impl::note_started(const JobId& job, Time now) {
    const auto forecast = forecasts_.find(job);
    if (forecast == forecasts_.end()) {
        return;
    }
    const double waited_s = seconds_between(forecast->second.made_at, now);
    const double off = std::log(std::max(waited_s, kForecastMin) / forecast->second.wait_s);
    double& mean = log_off_[static_cast<std::size_t>(forecast->second.wait_class)];
    mean += 0.05 * (std::clamp(off, -2.0, 2.0) - mean);
    forecasts_.erase(forecast);
}

void Scheduler::Impl::take(const JobId& job, Index worker, double charged_s, Time now) {
    const Machines::Machine& machine = machines_[worker];
    running_[job] = Running{
        order_.take(job, charged_s),
        machine.state.id,
        charged_s,
        now,
        machines_.served_s(machine, now)
    };
}

Machines::Run Scheduler::Impl::expected_run(
    const JobId& job, Index worker, Index profile, std::size_t jobs
) const {
    const Index type = machines_[worker].type;
    const ProfileTable::Expected& expected = profiles_.expected(profile, type);
    Machines::Run run;
    run.job = job;
    run.seconds = jobs > 1 ? profiles_.batch_s(profile, type, jobs) : expected.run_s;
    run.vram_bytes = std::max(
        machines_.claim(machines_[worker], profile),
        expected.vram_bytes + (jobs - 1) * expected.batched_bytes
    );
    return run;
}

Decision Scheduler::Impl::decide(const Match& match, Time now) {
    Decision decision;
    decision.job = match.job;
    decision.worker = machines_[match.worker].state.id;
    decision.keys = order_.keys_of(match.job);
    decision.why = match.why;
    decision.numbers = match.numbers;
    decision.other_worker = match.other_worker;
    decision.other = match.other;
    decision.waited_s = seconds_between(decision.keys.queued_at, now);
    decision.queue_length = order_.size();
    note_started(match.job, now);
    const double load_s = match.numbers.load_s;
    const Machines::Run alone = expected_run(match.job, match.worker, match.profile, 1);
    take(match.job, match.worker, load_s + alone.seconds, now);
    const std::vector<JobId> batched = pick_batched(match, now);
    Machines::Run run = expected_run(match.job, match.worker, match.profile, 1 + batched.size());
    for (const JobId& other : batched) {
        decision.batched.push_back({other, order_.keys_of(other)});
        take(other, match.worker, run.seconds / static_cast<double>(1 + batched.size()), now);
    }
    if (!batched.empty()) {
        decision.numbers.run_s = run.seconds * machines_.sharing(machines_[match.worker]);
        decision.numbers.finish_s = load_s + decision.numbers.run_s;
    }
    machines_.keep_results(
        match.worker, match.profile, batched.empty() ? decision.keys.content : 0
    );
    run.seconds += load_s;
    for (const Index anchor : machines_.start(match.worker, run, match.profile, now)) {
        order_.unblock_anchor(anchor);
    }
    if (load_s > 0) {
        machines_.stay(match.worker, later(now, load_s * (1 + options_.stay_factor)), load_s);
        loads_ += 1;
    }
    return decision;
}

void Scheduler::Impl::running(
    const JobId& job,
    const std::string& id,
    const JobKeys& keys,
    Time now,
    const std::vector<Decision::Batched>& batched
) {
    const auto worker = machines_.find(id);
    if (!worker || running_.contains(job)) {
        return;
    }
    const std::size_t jobs = 1 + batched.size();
    const Index profile = profiles_.intern(keys.profile);
    const Machines::Run run = expected_run(job, *worker, profile, jobs);
    machines_.start(*worker, run, profile, now);
    profiles_.release(profile);
    const double charged_s = run.seconds / static_cast<double>(jobs);
    const double served_s = machines_.served_s(machines_[*worker], now);
    running_[job] = Running{order_.charge(keys, charged_s), id, charged_s, now, served_s};
    for (const Decision::Batched& other : batched) {
        running_[other.job] =
            Running{order_.charge(other.keys, charged_s), id, charged_s, now, served_s};
    }
}

double Scheduler::Impl::gpu_part(const JobId& job, Time now) const {
    const auto run = running_.find(job);
    const auto worker = run == running_.end() ? std::nullopt : machines_.find(run->second.worker);
    const double passed_s = worker ? seconds_between(run->second.since, now) : 0;
    if (passed_s <= 0) {
        return 1;
    }
    const double had_s = machines_.served_s(machines_[*worker], now) - run->second.served_s;
    return std::clamp(had_s / passed_s, 0.0, 1.0);
}

double Scheduler::Impl::sharing(const std::string& id) const {
    const auto worker = machines_.find(id);
    return worker ? machines_.sharing(machines_[*worker]) : 1;
}

void Scheduler::Impl::finished(const JobId& job, double gpu_seconds, Time now) {
    const auto found = running_.find(job);
    if (found == running_.end()) {
        return;
    }
    const Running run = std::move(found->second);
    running_.erase(found);
    order_.settle(run.owner, run.charged_s, gpu_seconds);
    if (const auto worker = machines_.find(run.worker)) {
        for (const Index with_room : machines_.finish(*worker, job, now)) {
            worker_changed(with_room);
        }
    }
}

Scheduler::Scheduler(const Estimates& estimates, Options options)
    : impl_(std::make_unique<Impl>(estimates, options)) {}
Scheduler::~Scheduler() = default;

void Scheduler::set_tenant(const std::string& tenant, TenantTerms terms) {
    impl_->order_.set_tenant(tenant, std::move(terms));
}
void Scheduler::set_worker(WorkerState state) {
    impl_->set_worker(std::move(state));
}
void Scheduler::remove_worker(const std::string& id) {
    impl_->remove_worker(id);
}
bool Scheduler::has_worker(const std::string& id) const {
    return impl_->machines_.find(id).has_value();
}
void Scheduler::forget_models(const std::string& worker) {
    impl_->set_models(worker, {});
}
void Scheduler::set_models(const std::string& worker, const std::vector<Model>& models) {
    impl_->set_models(worker, models);
}
Circumstances Scheduler::circumstances(const ProfilePtr& profile) const {
    return impl_->circumstances(profile);
}
void Scheduler::add(const JobId& job, JobKeys keys) {
    impl_->add(job, keys);
}
bool Scheduler::remove(const JobId& job) {
    return impl_->remove(job);
}
bool Scheduler::contains(const JobId& job) const {
    return impl_->order_.contains(job);
}
JobKeys Scheduler::keys_of(const JobId& job) const {
    return impl_->order_.keys_of(job);
}
std::optional<Decision> Scheduler::next(Time now) {
    return impl_->next(now);
}
std::optional<Time> Scheduler::wake_at() const {
    return impl_->wakes_.empty() ? std::nullopt : std::optional<Time>(impl_->wakes_.begin()->at);
}
void Scheduler::running(
    const JobId& job,
    const std::string& worker,
    JobKeys keys,
    Time now,
    const std::vector<Decision::Batched>& batched
) {
    impl_->running(job, worker, keys, now, batched);
}
double Scheduler::gpu_part(const JobId& job, Time now) const {
    return impl_->gpu_part(job, now);
}
double Scheduler::sharing(const std::string& worker) const {
    return impl_->sharing(worker);
}
void Scheduler::finished(const JobId& job, double gpu_seconds, Time now) {
    impl_->finished(job, gpu_seconds, now);
}
std::size_t Scheduler::size() const {
    return impl_->order_.size();
}
std::size_t Scheduler::running_count() const {
    return impl_->running_.size();
}
Amount Scheduler::waiting(WaitClass wait_class) const {
    return impl_->order_.waiting(wait_class);
}
std::vector<Demand> Scheduler::demands() const {
    return impl_->demands();
}
std::vector<Backlog> Scheduler::backlog() const {
    return impl_->backlog();
}
std::map<std::string, double> Scheduler::arrived_s() const {
    return impl_->arrived_s();
}
std::map<std::string, double> Scheduler::gpu_speeds() const {
    return impl_->profiles_.estimates().gpu_speeds();
}
WorkerUse Scheduler::use_of(const std::string& worker, Time now) const {
    return impl_->use_of(worker, now);
}
Warmth Scheduler::warmth(const std::vector<ProfilePtr>& kinds, Time now) const {
    return impl_->warmth(kinds, now);
}
void Scheduler::warm(const std::string& worker, const ProfilePtr& profile) {
    impl_->warm(worker, profile);
}
std::uint64_t Scheduler::loads() const {
    return impl_->loads_;
}
std::optional<std::size_t> Scheduler::position(const JobId& job, Time now) const {
    return impl_->position(job, now);
}
std::optional<double> Scheduler::expected_wait(const JobId& job, Time now) const {
    return impl_->expected_wait(job, now);
}
std::optional<Explanation> Scheduler::explain(const JobId& job, Time now) const {
    return impl_->explain(job, now);
}

}  // namespace comfyd::scheduler
