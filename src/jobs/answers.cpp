#include "jobs/answers.hpp"

#include "base/log.hpp"

namespace comfyd::jobs {

void Answers::run_ended(const JobId& id, const Job* ended) {
    if (is_stopping_) {
        return;  // the next start finds them queued
    }
    if (ended != nullptr && can_answer(*ended)) {
        const auto source = std::make_shared<const Job>(*ended);
        for (Coalescing::Follower& follower : whereabouts_.end_lead(id)) {
            tasks_.spawn("reuse", answer(follower.job, std::move(follower.keys), source));
        }
    } else if (auto next = whereabouts_.pass_on_lead(id)) {
        whereabouts_.make_ready(next->job, std::move(next->keys));
        queued_();
    }
}

Task<> Answers::answer(JobId id, scheduler::JobKeys keys, std::shared_ptr<const Job> source) {
    auto stored = co_await complete_with(id, std::move(source));
    if (stored || is_stopping_ || !table_.is<Coalesced>(id)) {
        co_return;
    }
    // The disk is full: what becomes of it is seen when its turn comes.
    log::info(
        "a job could not be answered at once", {{"job", id}, {"error", stored.error().message}}
    );
    whereabouts_.make_ready(id, std::move(keys));
    queued_();
}

Task<Result<bool>> Answers::answer_from_store(JobId id, std::string tenant, std::string reuse_key) {
    auto source =
        co_await find_answer(ledger_, outputs_kept_, std::move(tenant), std::move(reuse_key));
    if (!source) {
        co_return fail(std::move(source.error()));
    }
    if (!*source) {
        co_return false;
    }
    auto stored = co_await complete_with(id, std::make_shared<const Job>(std::move(**source)));
    if (!stored && stored.error().code == Code::output_unavailable) {
        co_return false;  // they have gone in this moment
    }
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    co_return true;
}

Task<Result<Job>> Answers::complete_with(JobId id, std::shared_ptr<const Job> source) {
    return changes_.make(
        id,
        [this, source = std::move(source)](const Job& job, std::uint64_t sequence) {
            return complete_from(job, *source, sequence, clock_.now());
        }
    );
}

}  // namespace comfyd::jobs
