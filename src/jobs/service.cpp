#include "jobs/service.hpp"

#include <utility>

#include "base/hop.hpp"
#include "base/log.hpp"
#include "base/stall_watch.hpp"
#include "jobs/service_impl.hpp"

namespace comfyd::jobs {
namespace {

tl::unexpected<Error> no_such_job(const JobId& id) {
    return fail(Code::not_found, "no job has the id " + id.to_string());
}

}  // namespace

Service::Impl::Impl(
    Executor core,
    Clock& clock,
    Ledger& ledger,
    Fleet& fleet,
    events::Hub& hub,
    ServiceOptions options
)
    : core_(core),
      clock_(clock),
      ledger_(ledger),
      fleet_(fleet),
      hub_(hub),
      options_(options),
      dispatcher_(core, clock, ledger, fleet, hub, options.scheduling),
      arrivals_(core, dispatcher_) {
    dispatcher_.set_tenants(options.tenants, options.classify);
    dispatcher_.set_outputs_kept(options.outputs_kept);
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
        auto live = co_await call_on(core_, [this, id] {
            arrivals_.take_over();
            return dispatcher_.live(id);
        });
        view.progress = std::move(live.progress);
        view.queue_position = live.queue_position;
        view.estimated_wait_s = live.estimated_wait_s;
        view.estimated_remaining_s = live.estimated_remaining_s;
        view.estimate_confidence = live.estimate_confidence;
    }
    co_return view;
}

Task<Result<View>> Service::Impl::cancel(std::string tenant, JobId id) {
    auto found = co_await find(tenant, id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    Result<> done;
    if (!is_terminal(found->state)) {
        done = co_await await_on(core_, with_arrivals(dispatcher_.cancel(id)));
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
    auto done = co_await await_on(core_, with_arrivals(dispatcher_.cancel_waiting(id)));
    co_return done;
}

Task<Result<View>> Service::Impl::retry(std::string tenant, JobId id) {
    auto found = co_await find(tenant, id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto done = co_await await_on(core_, with_arrivals(dispatcher_.retry(id)));
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
    auto read = co_await await_on(core_, read_from_worker(id, std::move(file), bytes_max));
    co_return read;
}

Task<Result<std::string>> Service::Impl::read_from_worker(
    JobId id, WorkerFile file, std::uint64_t bytes_max
) {
    const auto worker = dispatcher_.worker_of(id);  // kept alive until the file is read
    if (!worker) {
        co_return fail(Code::conflict, "the job does not run any more");
    }
    auto read = co_await worker->read_file(id, std::move(file), bytes_max);
    if (!read && !dispatcher_.worker_of(id)) {
        co_return fail(Code::conflict, "the job has ended meanwhile");
    }
    co_return read;
}

Task<> Service::Impl::free_idle_workers(bool models, bool results) {
    for (const auto& worker : fleet_.workers()) {
        if (worker->info().status != WorkerStatus::idle) {
            continue;
        }
        auto freed = co_await worker->free_memory(models, results);
        if (freed && (models || results)) {
            dispatcher_.forget_models(worker->id());
        }
        if (!freed) {
            log::info(
                "a worker did not give memory back",
                {{"worker", worker->id()}, {"error", freed.error().message}}
            );
        }
    }
}

Service::Service(
    Executor core,
    Clock& clock,
    Ledger& ledger,
    Fleet& fleet,
    events::Hub& hub,
    ServiceOptions options
)
    : impl_(std::make_unique<Impl>(core, clock, ledger, fleet, hub, options)) {}
Service::~Service() = default;

Task<Result<>> Service::recover() {
    auto recovered = co_await impl_->dispatcher_.recover();
    if (!recovered) {
        co_return fail(std::move(recovered.error()));
    }
    impl_->dispatcher_.start();
    co_return Result<>();
}

Task<> Service::stop(Millis grace) {
    impl_->stopping_ = true;
    return impl_->dispatcher_.stop(grace);
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

Task<Result<Explained>> Service::explain(std::string tenant, JobId id) {
    auto found = co_await impl_->find(std::move(tenant), id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    Explained explained;
    explained.job = std::move(*found);
    if (!is_terminal(explained.job.state)) {
        explained.waiting = co_await call_on(impl_->core_, [impl = impl_.get(), id, &explained] {
            impl->arrivals_.take_over();
            explained.waits_for = impl->dispatcher_.waits_for(id);
            return impl->dispatcher_.explain(id);
        });
        explained.is_classified = explained.waiting && impl_->options_.classify;
    }
    co_return explained;
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
    auto count = co_await call_on(impl_->core_, [impl = impl_.get(), tenant = std::move(tenant)] {
        impl->arrivals_.take_over();
        return impl->dispatcher_.unfinished(tenant);
    });
    co_return count;
}

Task<Result<std::string>> Service::read_output(
    std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
) {
    return impl_->read_output(std::move(tenant), id, std::move(file), bytes_max);
}

Task<> Service::free_idle_workers(bool models, bool results) {
    return await_on(impl_->core_, impl_->free_idle_workers(models, results));
}

scheduler::Predictor& Service::predictor() {
    return impl_->dispatcher_.predictor();
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
    auto counts = co_await call_on(impl_->core_, [impl = impl_.get()] {
        impl->arrivals_.take_over();
        return QueueCounts{
            impl->dispatcher_.queued_count(),
            impl->dispatcher_.running_count(),
            impl->dispatcher_.waiting_count(),
            impl->hub_.subscription_count(),
            impl->dispatcher_.queued_by_class()
        };
    });
    co_return counts;
}

Task<std::vector<WorkerInfo>> Service::workers() {
    auto workers = co_await call_on(impl_->core_, [impl = impl_.get()] {
        const NowDoing doing("describing workers");
        std::vector<WorkerInfo> infos;
        for (const auto& worker : impl->fleet_.workers()) {
            infos.push_back(worker->info());
        }
        return infos;
    });
    co_return workers;
}

void Service::on_webhook(std::function<void(const Event&)> callback) {
    impl_->dispatcher_.on_webhook(std::move(callback));
}
void Service::on_progress(std::function<void(const Job&, const Webhook&, const Event&)> callback) {
    impl_->dispatcher_.on_progress(std::move(callback));
}
void Service::on_finished(std::function<void(const Job&)> callback) {
    impl_->dispatcher_.on_finished(std::move(callback));
}
void Service::on_used(std::function<void(const std::string& worker, const Usage&)> callback) {
    impl_->dispatcher_.on_used(std::move(callback));
}

}  // namespace comfyd::jobs
