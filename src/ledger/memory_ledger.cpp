#include "ledger/memory_ledger.hpp"

#include <algorithm>

#include "ledger/rollup_names.hpp"
#include "ledger/sqlite/job_queries.hpp"

namespace comfyd::ledger {
namespace {

bool matches(const jobs::ListQuery& query, const jobs::Job& job) {
    const bool in_states =
        query.states.empty() || std::ranges::find(query.states, job.state) != query.states.end();
    return in_states && (!query.tenant || job.tenant == *query.tenant) &&
           (query.workflow_id.empty() || job.workflow_id == query.workflow_id) &&
           (query.dialect.empty() || job.dialect == query.dialect) &&
           (!query.created_after || job.created_at > *query.created_after) &&
           (!query.created_before || job.created_at < *query.created_before);
}

}  // namespace

std::uint64_t MemoryLedger::begin() {
    return *under_way_.insert(++latest_transaction_).first;
}

std::uint64_t MemoryLedger::oldest_under_way() const {
    return under_way_.empty() ? latest_transaction_ + 1 : *under_way_.begin();
}

Task<Result<jobs::Accepted>> MemoryLedger::accept(jobs::NewJob job) {
    co_return store(++latest_transaction_, std::move(job));
}

Task<Result<jobs::Accepted>> MemoryLedger::accept_in(std::uint64_t transaction, jobs::NewJob job) {
    under_way_.erase(transaction);
    co_return store(transaction, std::move(job));
}

Result<jobs::Accepted> MemoryLedger::store(std::uint64_t transaction, jobs::NewJob job) {
    if (auto held = find_holder(job.spec.tenant, job.spec.idempotency_key)) {
        return std::move(*held);
    }
    const JobId id = job.change.job.id;
    if (entries_.contains(id)) {
        return fail(Code::conflict, "there is a job " + id.to_string() + " already");
    }
    Entry entry{job.change.job, std::move(job.spec), {}};
    entry.spec.secret_extra_data.clear();
    entry.arrival = transaction;
    note(entry, job.change.event);
    if (job.warning) {
        note(entry, *job.warning);
    }
    if (job.then) {
        if (auto done = change(entry, *job.then); !done) {
            return fail(std::move(done.error()));
        }
    }
    if (!entry.spec.idempotency_key.empty()) {
        keys_[{entry.spec.tenant, entry.spec.idempotency_key}] = {
            id, entry.spec.request_hash, clock_.now()
        };
    }
    entries_.emplace(id, std::move(entry));
    return jobs::Accepted{true, std::nullopt, {}};
}

std::optional<jobs::Accepted> MemoryLedger::find_holder(
    const std::string& tenant, const std::string& key
) {
    const auto held = keys_.find({tenant, key});
    if (held == keys_.end() ||
        held->second.created_at + sqlite::kIdempotencyKeyLife <= clock_.now()) {
        return std::nullopt;
    }
    return jobs::Accepted{false, entries_.at(held->second.job).job, held->second.request_hash};
}

Task<Result<jobs::Accepted>> MemoryLedger::find_key(std::string tenant, std::string key) {
    co_return find_holder(tenant, key).value_or(jobs::Accepted{});
}

Task<Result<std::optional<jobs::Job>>> MemoryLedger::find_reusable(
    std::string tenant, std::string reuse_key
) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
        const jobs::Job& job = entry->second.job;
        if (job.state == jobs::State::completed && !job.reused_from && job.tenant == tenant &&
            job.reuse_key == reuse_key && !reuse_key.empty()) {
            co_return job;
        }
    }
    co_return std::nullopt;
}

Task<Result<>> MemoryLedger::commit(jobs::Change change) {
    const auto found = entries_.find(change.job.id);
    if (found == entries_.end()) {
        co_return fail(Code::not_found, "there is no job " + change.job.id.to_string());
    }
    co_return this->change(found->second, change);
}

Result<> MemoryLedger::change(Entry& entry, const jobs::Change& change) {
    if (entry.job.revision != change.job.revision - 1 ||
        change.event.sequence <= entry.job.sequence) {
        return fail(
            Code::conflict,
            "job " + change.job.id.to_string() + " was changed meanwhile; read it again and decide"
        );
    }
    if (is_terminal(entry.job.state) && !is_terminal(change.job.state)) {
        entry.arrival = ++latest_transaction_;
    }
    entry.job = change.job;
    jobs::each_file(entry.job.outputs, [](jobs::Output& file) { file.bytes.reset(); });
    note(entry, change.event);
    if (auto counted = jobs::stats_of(change)) {
        count(std::move(*counted));
    }
    return {};
}

void MemoryLedger::note(Entry& entry, const jobs::Event& event) {
    if (event.is_durable()) {
        entry.events.push_back(event);
        const auto& webhook = entry.spec.webhook;
        entry.tells =
            entry.tells || (webhook && webhook->wants(jobs::webhook_event_name(event.type)));
    }
}

void MemoryLedger::count(jobs::StatsEntry entry) {
    std::string& workflow = entry.key.workflow;
    if (!workflow.empty()) {
        auto& known = workflows_[{entry.key.hour, entry.key.tenant}];
        if (known.size() < kRollupWorkflowsMax) {
            known.insert(workflow);
        } else if (!known.contains(workflow)) {
            workflow = kRollupOthers;
        }
    }
    totals_[std::move(entry.key)].add(entry.totals);
    const Time oldest = jobs::hour_of(clock_.now() - jobs::kStatsLife);
    while (totals_.begin()->first.hour < oldest) {
        totals_.erase(totals_.begin());
    }
}

Task<Result<std::optional<jobs::Job>>> MemoryLedger::find(JobId id) {
    const auto found = entries_.find(id);
    co_return found == entries_.end() ? std::nullopt : std::optional(found->second.job);
}

Task<Result<std::optional<jobs::Spec>>> MemoryLedger::find_spec(JobId id) {
    const auto found = entries_.find(id);
    co_return found == entries_.end() ? std::nullopt : std::optional(found->second.spec);
}

Task<Result<jobs::Page>> MemoryLedger::list(jobs::ListQuery query) {
    const auto limit = static_cast<std::size_t>(std::clamp(query.limit, 1, sqlite::kListLimitMax));
    jobs::Page page;
    auto entry = query.cursor ? entries_.lower_bound(*query.cursor) : entries_.end();
    while (entry != entries_.begin()) {
        --entry;
        if (!matches(query, entry->second.job)) {
            continue;
        }
        if (page.jobs.size() == limit) {
            page.next_cursor = page.jobs.back().id;
            break;
        }
        page.jobs.push_back(entry->second.job);
    }
    co_return page;
}

Task<Result<std::vector<jobs::Event>>> MemoryLedger::events(JobId id, std::uint64_t after) {
    std::vector<jobs::Event> found;
    if (const auto entry = entries_.find(id); entry != entries_.end()) {
        for (const jobs::Event& event : entry->second.events) {
            if (event.sequence > after) {
                found.push_back(event);
            }
        }
    }
    co_return found;
}

Task<Result<std::optional<jobs::Stamp>>> MemoryLedger::stamp(JobId id) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || !jobs::is_terminal(found->second.job.state)) {
        co_return std::nullopt;
    }
    const jobs::Job& job = found->second.job;
    co_return jobs::Stamp{job.tenant, job.revision};
}

Task<Result<jobs::WebhookStatus>> MemoryLedger::webhook_status(JobId id) {
    const auto found = entries_.find(id);
    co_return jobs::WebhookStatus{found != entries_.end() && found->second.tells};
}

Task<Result<jobs::StateCounts>> MemoryLedger::counts(std::optional<std::string> tenant) {
    jobs::StateCounts counts;
    for (const auto& [id, entry] : entries_) {
        if (!tenant || entry.job.tenant == *tenant) {
            counts.by_state[static_cast<int>(entry.job.state)] += 1;
        }
    }
    co_return counts;
}

Task<Result<jobs::Stats>> MemoryLedger::stats(jobs::StatsQuery query) {
    jobs::StatsSum sum(query.group_by);
    for (const auto& [key, totals] : totals_) {
        if (key.hour >= jobs::hour_of(query.from) && key.hour <= jobs::hour_of(query.to) &&
            (!query.tenant || key.tenant == *query.tenant)) {
            sum.add(key, totals);
        }
    }
    co_return sum.take();
}

Task<Result<std::vector<jobs::Unfinished>>> MemoryLedger::unfinished(
    std::optional<JobId> after, int limit
) {
    const auto most = static_cast<std::size_t>(std::clamp(limit, 1, sqlite::kUnfinishedLimitMax));
    std::vector<jobs::Unfinished> found;
    auto entry = after ? entries_.upper_bound(*after) : entries_.begin();
    for (; entry != entries_.end() && found.size() < most; ++entry) {
        const auto& [job, spec, events, tells, arrival] = entry->second;
        if (!is_terminal(job.state)) {
            found.push_back({job, spec.requirement, spec.profile});
        }
    }
    co_return found;
}

Task<Result<jobs::Purged>> MemoryLedger::purge(Time before, int limit) {
    std::vector<std::pair<Time, JobId>> old;
    for (const auto& [id, entry] : entries_) {
        const bool ended = is_terminal(entry.job.state) && entry.job.finished_at;
        if (ended && *entry.job.finished_at < before && !entry.tells) {
            old.emplace_back(*entry.job.finished_at, id);
        }
    }
    std::ranges::sort(old);
    const auto most = static_cast<std::size_t>(std::max(limit, 1));
    const bool more = old.size() > most;
    old.resize(std::min(old.size(), most));
    for (const auto& [ended_at, id] : old) {
        erase(id);
    }
    co_return jobs::Purged{static_cast<int>(old.size()), more};
}

Task<Result<>> MemoryLedger::discard(JobId id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) {
        co_return fail(Code::not_found, "there is no job " + id.to_string());
    }
    if (!is_terminal(found->second.job.state) || found->second.tells) {
        co_return fail(Code::conflict, "job " + id.to_string() + " is needed still");
    }
    erase(id);
    co_return Result<>();
}

void MemoryLedger::erase(const JobId& id) {
    entries_.erase(id);
    std::erase_if(keys_, [&](const auto& held) { return held.second.job == id; });
}

}  // namespace comfyd::ledger
