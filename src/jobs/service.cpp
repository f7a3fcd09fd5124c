#include "jobs/service.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hop.hpp"
#include "jobs/service_impl.hpp"

namespace comfyd::jobs {
namespace {

template <class T>
bool is_led_elsewhere(const Result<T>& answer) {
    return !answer && answer.error().code == Code::lead_lost;
}

tl::unexpected<Error> no_such_job(const JobId& id) {
    return fail(Code::not_found, "no job has the id " + id.to_string());
}

}  // namespace

Service::Impl::Impl(
    Executor core,
    Clock& clock,
    Ledger& ledger,
    events::Hub& hub,
    ServiceOptions options,
    Elsewhere* elsewhere
)
    : core_(core),
      clock_(clock),
      ledger_(ledger),
      hub_(hub),
      options_(std::move(options)),
      elsewhere_(elsewhere),
      leads_(core),
      arrivals_(core, leads_, backlog_, elsewhere),
      to_core_(core),
      here_(core, leads_, arrivals_),
      tenants_(std::make_shared<const TenantMap>(std::move(options_.tenants))) {}

Task<Result<>> Service::Impl::lead(std::string domain, LedWith with) {
    auto made = std::make_unique<Dispatcher>(
        Dispatcher::Parts{
            core_,
            clock_,
            with.ledger,
            with.fleet,
            hub_,
            predictor_,
            backlog_,
            with.shared,
            domain,
            options_.pace
        },
        options_.scheduling,
        options_.failures
    );
    made->set_terms_of(options_.terms_of);
    made->set_tenants(*tenants(), options_.classify);
    made->set_outputs_kept(options_.outputs_kept);
    made->set_finishing(options_.finish_outputs);
    made->on_change(changed_);
    made->on_progress(progress_, is_progress_wanted_);
    made->on_finished(finished_);
    made->on_used(used_);
    made->on_attempt_failed(attempt_failed_);
    made->warming().on_ended(prewarmed_);
    // Nobody finds it before it has read everything: a job that came in meanwhile would be read,
    // too.
    auto recovered = co_await made->recover();
    if (recovered && stopping_) {
        recovered = fail(Code::shutting_down, "comfyd is shutting down");
    }
    if (!recovered) {
        co_await made->stop(Millis(0));
        co_return fail(std::move(recovered.error()));
    }
    Dispatcher& leads = leads_.add(domain, std::move(made));
    leads.start();
    leads.warming().set(prewarming_);
    co_return Result<>();
}

void Service::Impl::set_tenants(TenantMap tenants) {
    auto next = std::make_shared<const TenantMap>(std::move(tenants));
    leads_.each([this, &next](Dispatcher& dispatcher) {
        dispatcher.set_tenants(*next, options_.classify);
    });
    const Lock lock(tenants_mutex_);
    tenants_.swap(next);
}

std::shared_ptr<const Service::Impl::TenantMap> Service::Impl::tenants() const {
    const Lock lock(tenants_mutex_);
    return tenants_;
}

Task<> Service::Impl::stop(Millis grace) {
    stopping_ = true;
    co_await leads_.drop_all(grace);
    is_over_ = true;
    hub_.end_all(Code::shutting_down);
}

Task<Result<Job>> Service::Impl::find(std::string tenant, JobId id) {
    auto found = co_await ledger_.find(id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found || (*found)->tenant != tenant) {
        co_return no_such_job(id);
    }
    co_return std::move(**found);
}

Task<Result<View>> Service::Impl::get(std::string tenant, JobId id) {
    auto found = co_await find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    View view;
    view.job = std::move(*found);
    if (!is_terminal(view.job.state)) {
        auto live = co_await here_.live({id, view.job.domain});
        if (!live && elsewhere_ != nullptr) {
            live = co_await elsewhere_->live({id, view.job.domain});
        }
        if (live) {
            view.progress = std::move(live->progress);
            view.queue_position = live->queue_position;
            view.estimated_wait_s = live->estimated_wait_s;
            view.estimated_remaining_s = live->estimated_remaining_s;
            view.estimate_confidence = live->estimate_confidence;
        }
    }
    co_return view;
}

Task<Result<Explained>> Service::Impl::explain(std::string tenant, JobId id) {
    auto found = co_await find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    Explained explained;
    explained.job = std::move(*found);
    if (!is_terminal(explained.job.state)) {
        auto waiting = co_await here_.explain({id, explained.job.domain});
        if (!waiting && elsewhere_ != nullptr) {
            waiting = co_await elsewhere_->explain({id, explained.job.domain});
        }
        if (waiting) {
            explained.waiting = std::move(waiting->explanation);
            explained.waits_for = waiting->waits_for;
        }
        explained.is_classified = explained.waiting && options_.classify;
    }
    co_return explained;
}

Task<Result<>> Service::Impl::cancel(LedJob job, Cancel how) {
    auto done = co_await here_.cancel(job, how);
    if (elsewhere_ != nullptr && is_led_elsewhere(done)) {
        done = co_await elsewhere_->cancel(std::move(job), how);
    }
    co_return done;
}

Task<Result<View>> Service::Impl::cancel(std::string tenant, JobId id) {
    auto found = co_await find(tenant, id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    Result<> done;
    if (!is_terminal(found->state)) {
        done = co_await cancel({id, found->domain}, Cancel::anyway);
    }
    if (!done && done.error().code != Code::conflict) {
        co_return fail(std::move(done.error()));
    }
    // Where it was in no state for it, it has ended meanwhile, or was cancelled before.
    auto view = co_await get(std::move(tenant), id);
    if (view && !done && !is_terminal(view->job.state) && !view->job.cancel_requested) {
        co_return fail(std::move(done.error()));
    }
    co_return view;
}

Task<Result<View>> Service::Impl::remove(std::string tenant, JobId id) {
    auto found = co_await find(tenant, id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!is_terminal(found->state)) {
        auto cancelled = co_await cancel(std::move(tenant), id);
        co_return cancelled;
    }
    auto gone = co_await ledger_.discard(id);
    if (!gone && gone.error().code != Code::conflict) {
        co_return fail(std::move(gone.error()));
    }
    View view;
    view.job = std::move(*found);
    co_return view;
}

Task<Result<>> Service::Impl::cancel_waiting(std::string tenant, JobId id) {
    auto found = co_await find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (found->state != State::queued && found->state != State::retry_waiting) {
        co_return fail(Code::conflict, "the job does not wait any more");
    }
    auto done = co_await cancel({id, found->domain}, Cancel::while_waiting);
    co_return done;
}

Task<std::optional<Result<>>> Service::Impl::retry_here(std::string domain, JobId id) {
    arrivals_.take_over();
    if (leads_.find(domain) == nullptr) {
        co_return std::nullopt;
    }
    auto done = co_await leads_.visit(domain, [id](Dispatcher& dispatcher) {
        return dispatcher.retry(id);
    });
    co_return done;
}

Task<Result<>> Service::Impl::retry_for_leader(Job job) {
    auto revived = revive(job, job.sequence + 1, clock_.now());
    if (!revived) {
        co_return fail(std::move(revived.error()));
    }
    auto stored = co_await ledger_.commit(std::move(*revived));
    if (stored) {
        elsewhere_->tell_of_arrival(job.domain);
    }
    co_return stored;
}

Task<Result<View>> Service::Impl::retry(std::string tenant, JobId id) {
    auto found = co_await find(tenant, id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto permit = co_await ask_permit(tenant, named_tier(found->dialect_data));
    if (!permit) {
        co_return fail(std::move(permit.error()));
    }
    auto led = co_await await_on(core_, retry_here(found->domain, id));
    Result<> done = fail(Code::shutting_down, "comfyd is starting or shutting down");
    if (led) {
        done = std::move(*led);
    } else if (elsewhere_ != nullptr) {
        done = co_await retry_for_leader(std::move(*found));
    }
    if (!done) {
        co_return fail(std::move(done.error()));
    }
    auto view = co_await get(std::move(tenant), id);
    co_return view;
}

Task<Result<std::string>> Service::Impl::read_output(
    std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
) {
    auto found = co_await find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto read = co_await here_.read_output({id, found->domain}, file, bytes_max);
    if (elsewhere_ != nullptr && is_led_elsewhere(read)) {
        read = co_await elsewhere_->read_output({id, found->domain}, std::move(file), bytes_max);
    }
    co_return read;
}

Task<> Service::Impl::free_idle_workers(bool models, bool results) {
    co_await here_.free_idle_workers(models, results);
    if (elsewhere_ != nullptr) {
        co_await elsewhere_->free_idle_workers(models, results);
    }
}

Task<std::size_t> Service::Impl::unfinished(std::string tenant) {
    if (elsewhere_ != nullptr) {
        const auto counts = co_await ledger_.counts(std::move(tenant));
        co_return counts ? counts->of(State::queued) + counts->of(State::running) +
                               counts->of(State::retry_waiting)
                         : 0;
    }
    auto count = co_await call_on(core_, [this, tenant = std::move(tenant)] {
        arrivals_.take_over();
        std::size_t sum = 0;
        leads_.each([&](Dispatcher& dispatcher) { sum += dispatcher.unfinished(tenant); });
        return sum;
    });
    co_return count;
}

Task<QueueCounts> Service::Impl::queue_counts() {
    auto counts = co_await call_on(core_, [this] {
        arrivals_.take_over();
        QueueCounts sum;
        sum.event_streams = hub_.subscription_count();
        leads_.each([&sum](Dispatcher& dispatcher) {
            sum.queued += dispatcher.queued_count();
            sum.running += dispatcher.running_count();
            sum.retry_waiting += dispatcher.waiting_count();
            sum.retries_held += dispatcher.retries_held();
            const auto by_class = dispatcher.queued_by_class();
            for (std::size_t i = 0; i < by_class.size(); ++i) {
                sum.queued_by_class[i] += by_class[i];
            }
        });
        return sum;
    });
    co_return counts;
}

Task<std::vector<WorkerInfo>> Service::Impl::workers() {
    auto workers = co_await here_.workers();
    if (elsewhere_ != nullptr) {
        auto others = co_await elsewhere_->workers();
        std::ranges::move(others, std::back_inserter(workers));
    }
    co_return workers;
}

Service::Service(
    Executor core,
    Clock& clock,
    Ledger& ledger,
    events::Hub& hub,
    ServiceOptions options,
    Elsewhere* elsewhere
)
    : impl_(std::make_unique<Impl>(core, clock, ledger, hub, std::move(options), elsewhere)) {}
Service::~Service() = default;

Task<Result<>> Service::lead(std::string domain, LedWith with) {
    return impl_->lead(std::move(domain), with);
}
Task<> Service::step_down(std::string domain, Millis grace) {
    return impl_->leads_.drop(std::move(domain), grace);
}
Task<> Service::stop(Millis grace) {
    return impl_->stop(grace);
}

std::uint64_t Service::queued_in(const std::string& domain) const {
    const Dispatcher* dispatcher = impl_->leads_.find(domain);
    return dispatcher == nullptr ? 0 : dispatcher->queued_count();
}
void Service::look_for_newcomers(const std::string& domain) {
    if (Dispatcher* dispatcher = impl_->leads_.find(domain)) {
        dispatcher->look_for_newcomers();
    }
}
Millis Service::lag_of(const std::string& domain) const {
    const Dispatcher* dispatcher = impl_->leads_.find(domain);
    return dispatcher == nullptr ? Millis(0) : dispatcher->lag();
}
Leader& Service::here() {
    return impl_->here_;
}

Task<Result<Submitted>> Service::submit(Spec spec) {
    return impl_->submit(std::move(spec));
}
Task<Result<std::optional<Submitted>>> Service::find_submitted(
    std::string tenant, std::string key, std::string request_hash
) {
    return impl_->find_submitted(std::move(tenant), std::move(key), std::move(request_hash));
}

Task<Result<View>> Service::get(std::string tenant, JobId id) {
    return impl_->get(std::move(tenant), id);
}

Task<Result<std::optional<Stamp>>> Service::stamp(JobId id) {
    return impl_->ledger_.stamp(id);
}

Task<Result<Spec>> Service::spec(std::string tenant, JobId id) {
    auto found = co_await impl_->find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto spec = co_await impl_->ledger_.find_spec(id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    if (!*spec) {
        co_return no_such_job(id);
    }
    co_return std::move(**spec);
}

Task<Result<std::vector<PastAttempt>>> Service::attempts(Job job) {
    if (job.attempt == 0 || (job.attempt == 1 && !job.failure)) {
        co_return std::vector<PastAttempt>();
    }
    auto events = co_await impl_->ledger_.events(job.id, 0);
    if (!events) {
        co_return fail(std::move(events.error()));
    }
    co_return past_attempts(*events);
}

Task<Result<Explained>> Service::explain(std::string tenant, JobId id) {
    return impl_->explain(std::move(tenant), id);
}
Task<Result<Page>> Service::list(ListQuery query) {
    return impl_->ledger_.list(std::move(query));
}
Task<Result<View>> Service::cancel(std::string tenant, JobId id) {
    return impl_->cancel(std::move(tenant), id);
}
Task<Result<View>> Service::remove(std::string tenant, JobId id) {
    return impl_->remove(std::move(tenant), id);
}
Task<Result<>> Service::cancel_waiting(std::string tenant, JobId id) {
    return impl_->cancel_waiting(std::move(tenant), id);
}
Task<Result<View>> Service::retry(std::string tenant, JobId id) {
    return impl_->retry(std::move(tenant), id);
}

Task<std::size_t> Service::unfinished(std::string tenant) {
    return impl_->unfinished(std::move(tenant));
}

Task<Result<std::string>> Service::read_output(
    std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
) {
    return impl_->read_output(std::move(tenant), id, std::move(file), bytes_max);
}

Task<> Service::free_idle_workers(bool models, bool results) {
    return impl_->free_idle_workers(models, results);
}

void Service::set_tenants(std::map<std::string, TenantOptions> tenants) {
    impl_->set_tenants(std::move(tenants));
}

scheduler::Predictor& Service::predictor() {
    return impl_->predictor_;
}

Task<Result<WebhookStatus>> Service::webhook_status(JobId id) {
    return impl_->ledger_.webhook_status(id);
}

Task<Result<StateCounts>> Service::counts(std::optional<std::string> tenant) {
    return impl_->ledger_.counts(std::move(tenant));
}

Task<Result<Stats>> Service::stats(StatsQuery query) {
    return impl_->ledger_.stats(std::move(query));
}

Task<QueueCounts> Service::queue_counts() {
    return impl_->queue_counts();
}
Task<std::vector<WorkerInfo>> Service::workers() {
    return impl_->workers();
}

void Service::on_change(std::function<void(const Job&, const Event&)> callback) {
    impl_->changed_ = std::move(callback);
}
void Service::on_progress(
    std::function<void(const Job&, const Webhook*, const Event&)> callback,
    std::function<bool(const Job&)> is_wanted
) {
    impl_->progress_ = std::move(callback);
    impl_->is_progress_wanted_ = std::move(is_wanted);
}
void Service::on_finished(std::function<void(const Job&)> callback) {
    impl_->finished_ = std::move(callback);
}
void Service::set_prewarming(PrewarmOptions options) {
    impl_->prewarming_ = std::move(options);
    impl_->leads_.each([this](Dispatcher& dispatcher) {
        dispatcher.warming().set(impl_->prewarming_);
    });
}
void Service::remember_kinds(const std::string& domain, PastKinds kinds) {
    if (Dispatcher* dispatcher = impl_->leads_.find(domain)) {
        dispatcher->warming().remember(std::move(kinds));
    }
}
void Service::on_prewarmed(Warming::OnEnded callback) {
    impl_->prewarmed_ = std::move(callback);
}
void Service::on_attempt_failed(std::function<void(const Job&, Cause)> callback) {
    impl_->attempt_failed_ = std::move(callback);
}
void Service::on_used(std::function<void(const Job&, const Usage&)> callback) {
    impl_->used_ = std::move(callback);
}

}  // namespace comfyd::jobs
