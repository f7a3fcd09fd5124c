#include <boost/asio/this_coro.hpp>

#include "base/hop.hpp"
#include "jobs/service_impl.hpp"

namespace comfyd::jobs {
namespace {

constexpr int kRankBatch = 0;  // below every priority

bool tells_of_acceptance(const Spec& spec) {
    return spec.webhook && spec.webhook->wants(webhook_event_name(EventType::queued));
}

bool wants_outlook(const Spec& spec) {
    return spec.with_estimates || tells_of_acceptance(spec);
}

}  // namespace

Task<Result<Submitted>> Service::Impl::submit(Spec spec) {
    if (stopping_) {
        co_return fail(
            Code::shutting_down, "comfyd is shutting down; send the request again in a moment"
        );
    }
    if (jobs_ahead(kRankBatch) >= options_.queue_max) {
        co_return fail(
            Code::queue_full,
            "the queue holds " + std::to_string(options_.queue_max) +
                " jobs and takes no more for now",
            {{"queue_max", options_.queue_max}}
        );
    }
    const auto permit = co_await ask_permit(spec.tenant, named_tier(spec.dialect_data));
    if (!permit) {
        auto replayed = co_await replay_instead(spec, permit.error());
        co_return replayed;
    }
    spec.domain = domain_of(spec.requirement.pool());
    const Time now = clock_.now();
    const JobId id = spec.id.value_or(JobId::make(now));
    NewJob job{make_job(id, spec, now), std::move(spec)};
    job.warning = warn(job.change, job.spec);
    Submitted submitted;
    submitted.view.job = job.change.job;
    // Those that may be answered by another are looked at when their turn comes, not before.
    const bool may_reuse = !job.spec.reuse_key.empty();
    const bool may_start = !may_reuse && leads_.any() && jobs_ahead(kRankBatch) == 0;
    if (wants_outlook(job.spec) && !may_start) {
        co_await to_core_.cross([this, &job, &submitted] { add_outlook(job, submitted.view); });
    }
    const std::string request_hash = job.spec.request_hash;
    Event queued = job.change.event;
    std::optional<Result<Accepted>> accepted;
    if (may_reuse) {
        accepted = co_await accept_with_outputs(job, submitted.view);
    }
    if (may_start) {
        accepted = co_await await_on(core_, accept_at_once(job, submitted.view, queued));
        submitted.view.queue_position = 1;
    }
    if (!accepted) {
        Arrivals::Job arrival{
            likely_rank(job.change.job),
            job.change.job,
            known_profile(job.spec.profile, job.spec.requirement),
            job.spec.secret_extra_data,
            content_of(job.spec)
        };
        accepted = co_await ledger_.accept(std::move(job));
        if (*accepted && (*accepted)->created) {
            submitted.view.queue_position = static_cast<int>(jobs_ahead(arrival.rank)) + 1;
            const Executor here = co_await boost::asio::this_coro::executor;
            arrivals_.send(std::move(arrival), here);
        }
    }
    if (!*accepted) {
        co_return fail(std::move(accepted->error()));
    }
    if (!(*accepted)->created) {
        auto replayed = co_await replay(std::move(**accepted), request_hash);
        co_return replayed;
    }
    if (changed_) {
        changed_(submitted.view.job, queued);
    }
    co_return submitted;
}

// A repeated request is answered with its job, whatever has been used up since.
Task<Result<Submitted>> Service::Impl::replay_instead(const Spec& spec, Error refusal) {
    if (!spec.idempotency_key.empty()) {
        auto earlier =
            co_await find_submitted(spec.tenant, spec.idempotency_key, spec.request_hash);
        if (earlier && *earlier) {
            co_return std::move(**earlier);
        }
    }
    co_return fail(std::move(refusal));
}

Task<Result<ServiceOptions::Permit>> Service::Impl::ask_permit(
    std::string tenant, std::string tier
) {
    if (!options_.permit) {
        co_return ServiceOptions::Permit();
    }
    auto permit = co_await options_.permit(std::move(tenant), std::move(tier));
    co_return permit;
}

// A lead that is lost meanwhile does not hold up an accept: it is for whoever leads now.
Task<std::optional<Result<Accepted>>> Service::Impl::accept_at_once(
    NewJob& job, View& view, Event& queued
) {
    if (wants_outlook(job.spec)) {
        add_outlook(job, view);
        queued = job.change.event;
    }
    const std::string domain = job.spec.domain;
    if (leads_.find(domain) == nullptr) {
        co_return std::nullopt;
    }
    std::optional<NewJob> kept;
    if (elsewhere_ != nullptr) {
        kept = job;
    }
    auto accepted = co_await leads_.visit(domain, [&job](Dispatcher& dispatcher) {
        return dispatcher.accept_at_once(job);
    });
    if (kept && accepted && !*accepted && accepted->error().code == Code::lead_lost) {
        job = std::move(*kept);
        co_return std::nullopt;
    }
    co_return accepted;
}

void Service::Impl::add_outlook(NewJob& job, View& view) {
    arrivals_.take_over();
    Dispatcher* dispatcher = leads_.find(job.spec.domain);
    const auto live =
        dispatcher == nullptr
            ? Dispatcher::Live()
            : dispatcher->outlook(
                  job.change.job, known_profile(job.spec.profile, job.spec.requirement)
              );
    view.estimated_wait_s = live.estimated_wait_s;
    view.estimated_remaining_s = live.estimated_remaining_s;
    if (tells_of_acceptance(job.spec)) {
        json::object& told = job.change.event.data;
        told["queue_position"] = live.queue_position.value_or(1);
        if (live.estimated_wait_s) {
            told["estimated_wait_seconds"] = *live.estimated_wait_s;
        }
    }
}

Task<std::optional<Result<Accepted>>> Service::Impl::accept_with_outputs(NewJob& job, View& view) {
    const Job queued = job.change.job;
    auto source =
        co_await find_answer(ledger_, options_.outputs_kept, queued.tenant, queued.reuse_key);
    if (!source || !*source) {
        co_return std::nullopt;  // a ledger in trouble says so when the job is accepted
    }
    auto completed = complete_from(queued, **source, queued.sequence + 1, clock_.now());
    if (!completed) {
        co_return std::nullopt;
    }
    job.then = *completed;
    auto accepted = co_await ledger_.accept(job);
    if (!accepted && accepted.error().code == Code::output_unavailable) {
        job.then.reset();  // they have gone in this moment: it runs
        co_return std::nullopt;
    }
    if (accepted && accepted->created) {
        view.job = completed->job;
        view.estimated_wait_s.reset();
        view.estimated_remaining_s.reset();
        co_await call_on(core_, [this, &queued, &completed] {
            tell_of_answered(queued, *completed);
            return true;
        });
    }
    co_return accepted;
}

void Service::Impl::tell_of_answered(const Job& queued, const Change& completed) {
    if (Dispatcher* dispatcher = leads_.find(queued.domain)) {
        dispatcher->accepted_with_outputs(queued, completed);
        return;
    }
    Publisher publisher(hub_);
    publisher.tell_arrival(queued, events::Arrived::How::accepted);
    publisher.tell_change(completed);
    if (changed_) {
        changed_(completed.job, completed.event);
    }
    if (finished_) {
        finished_(completed.job);
    }
}

Task<Result<std::optional<Submitted>>> Service::Impl::find_submitted(
    std::string tenant, std::string key, std::string request_hash
) {
    auto held = co_await ledger_.find_key(std::move(tenant), std::move(key));
    if (!held) {
        co_return fail(std::move(held.error()));
    }
    if (!held->existing) {
        co_return std::nullopt;
    }
    auto replayed = co_await replay(std::move(*held), std::move(request_hash));
    if (!replayed) {
        co_return fail(std::move(replayed.error()));
    }
    co_return std::move(*replayed);
}

Task<Result<Submitted>> Service::Impl::replay(Accepted accepted, std::string request_hash) {
    if (accepted.existing_request_hash != request_hash) {
        co_return fail(
            Code::idempotency_key_reuse,
            "this idempotency key was used for another request; use a new key for a new "
            "request",
            {{"job_id", accepted.existing->id.to_string()}}
        );
    }
    auto view = co_await get(accepted.existing->tenant, accepted.existing->id);
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    co_return Submitted{std::move(*view), true};
}

int Service::Impl::likely_rank(const Job& job) const {
    if (job.batch || !options_.classify) {
        return job.batch ? kRankBatch : job.priority;
    }
    scheduler::Circumstances known;
    const std::string tier = named_tier(job.dialect_data);
    const auto all = tenants();
    if (const auto named = all->find(job.tenant); tier.empty() && named != all->end()) {
        known.tier = named->second.tier;
    } else if (options_.terms_of) {
        known.tier = options_.terms_of(job.tenant, tier).tier;
    }
    return scheduler::priority_of(job.priority, scheduler::grounds_of(known));
}

std::size_t Service::Impl::jobs_ahead(int rank) const {
    return backlog_.at_least(rank) + (elsewhere_ == nullptr ? 0 : elsewhere_->queued());
}

}  // namespace comfyd::jobs
