#include "ledger/memory_shared.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::ledger {
namespace {

// What a leader writes, while it leads.
class TermLedger final : public jobs::Ledger {
public:
    TermLedger(MemoryLedger& ledger, const MemoryLeases& leases, jobs::Term term)
        : ledger_(ledger), leases_(leases), term_(std::move(term)) {}

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override {
        return write(ledger_.accept(std::move(job)));
    }
    Task<Result<>> commit(jobs::Change change) override {
        return write(ledger_.commit(std::move(change)));
    }
    Task<Result<jobs::Purged>> purge(Time before, int limit) override {
        return write(ledger_.purge(before, limit));
    }
    Task<Result<>> discard(JobId id) override { return write(ledger_.discard(id)); }

    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override {
        return ledger_.find_key(std::move(tenant), std::move(key));
    }
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override {
        return ledger_.find_reusable(std::move(tenant), std::move(reuse_key));
    }
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override { return ledger_.find(id); }
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override {
        return ledger_.find_spec(id);
    }
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override {
        return ledger_.list(std::move(query));
    }
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override {
        return ledger_.events(id, after);
    }
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override {
        return ledger_.webhook_status(id);
    }
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override {
        return ledger_.counts(std::move(tenant));
    }
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override {
        return ledger_.stats(std::move(query));
    }
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override {
        return ledger_.unfinished(after, limit);
    }

private:
    // `operation` has not begun: a Task waits until it is awaited.
    template <class T>
    Task<Result<T>> write(Task<Result<T>> operation) {
        if (!leases_.holds(term_)) {
            co_return fail(
                Code::lead_lost,
                "epoch " + std::to_string(term_.epoch) + " of the domain " + term_.domain +
                    " is over"
            );
        }
        auto result = co_await std::move(operation);
        co_return result;
    }

    MemoryLedger& ledger_;
    const MemoryLeases& leases_;
    jobs::Term term_;
};

}  // namespace

std::unique_ptr<jobs::Ledger> MemoryShared::under(jobs::Term term) {
    return std::make_unique<TermLedger>(ledger_, leases_, std::move(term));
}

Task<Result<jobs::ArrivalPage>> MemoryShared::arrivals(
    std::string domain, jobs::ArrivalCursor after, int limit, jobs::IsKnown is_known
) {
    using Place = std::pair<std::uint64_t, JobId>;
    std::map<Place, const MemoryLedger::Entry*> open;
    for (const auto& [id, entry] : ledger_.entries()) {
        const Place place{entry.arrival, id};
        if (!is_terminal(entry.job.state) && entry.spec.domain == domain &&
            place > Place{after.transaction, after.job}) {
            open[place] = &entry;
        }
    }
    const bool is_first_page = after.next_reading == 0;
    const std::uint64_t next_reading =
        is_first_page ? ledger_.oldest_under_way() : after.next_reading;
    jobs::ArrivalPage page;
    int read = 0;
    for (const auto& [place, entry] : open) {
        if (read == std::max(limit, 1)) {
            page.more = true;
            break;
        }
        read += 1;
        const jobs::Job& job = entry->job;
        if (!is_known || !is_known({job.id, job.state, job.revision})) {
            page.jobs.push_back({job, entry->spec.requirement, entry->spec.profile});
        }
        page.next = {place.first, place.second, next_reading};
    }
    if (!page.more) {
        page.next = {next_reading, JobId{}, 0};
    }
    co_return page;
}

Task<Result<>> MemoryShared::wish(jobs::Wish wish) {
    wish.id = ++latest_wish_;
    wishes_[wish.id] = std::move(wish);
    co_return Result<>();
}

Task<Result<std::vector<jobs::Wish>>> MemoryShared::wishes(std::string domain, int limit) {
    std::vector<jobs::Wish> found;
    for (const auto& [id, wish] : wishes_) {
        if (wish.domain == domain && found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(wish);
        }
    }
    co_return found;
}

Task<Result<>> MemoryShared::drop_wishes(std::vector<std::int64_t> ids) {
    for (const std::int64_t id : ids) {
        wishes_.erase(id);
    }
    co_return Result<>();
}

Task<Result<std::vector<JobId>>> MemoryShared::advanced(std::vector<jobs::Heard> heard) {
    std::vector<JobId> found;
    for (const jobs::Heard& one : heard) {
        const auto entry = ledger_.entries().find(one.job);
        if (entry != ledger_.entries().end() && entry->second.job.sequence > one.sequence) {
            found.push_back(one.job);
        }
    }
    co_return found;
}

}  // namespace comfyd::ledger
