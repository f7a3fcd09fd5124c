// The ledger as the leader of a domain uses it: it writes under its term, and reads like everybody.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/postgres/job_secrets.hpp"
#include "ledger/postgres/job_writes.hpp"
#include "ledger/postgres/purge.hpp"
#include "ledger/postgres/writer.hpp"

namespace comfyd::ledger::postgres {

class LedLedger final : public jobs::Ledger {
public:
    LedLedger(
        jobs::Ledger& whole,
        Writer& writer,
        const JobSecrets& secrets,
        const Telling& telling,
        PurgeCursor& cursor,
        jobs::Term term
    )
        : whole_(whole),
          writer_(writer),
          secrets_(secrets),
          telling_(telling),
          cursor_(cursor),
          term_(std::move(term)) {}

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override {
        auto sealed = secrets_.seal(job);
        return writer_.write(
            AcceptJob(std::move(job), std::move(sealed), telling_),
            term_,
            Writer::Urgency::now_or_refused
        );
    }
    Task<Result<>> commit(jobs::Change change) override {
        return writer_.write(CommitChange(std::move(change), telling_), term_);
    }
    Task<Result<jobs::Purged>> purge(Time before, int limit) override {
        return writer_.write(PurgeJobs(before, limit, cursor_), term_, Writer::Urgency::behind);
    }
    Task<Result<>> discard(JobId id) override { return writer_.write(DiscardJob(id), term_); }

    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override {
        return whole_.find_key(std::move(tenant), std::move(key));
    }
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override {
        return whole_.find_reusable(std::move(tenant), std::move(reuse_key));
    }
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override { return whole_.find(id); }
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override {
        return whole_.find_spec(id);
    }
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override {
        return whole_.list(std::move(query));
    }
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override {
        return whole_.events(id, after);
    }
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override {
        return whole_.webhook_status(id);
    }
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override {
        return whole_.counts(std::move(tenant));
    }
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override {
        return whole_.stats(std::move(query));
    }
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override {
        return whole_.unfinished(after, limit);
    }

private:
    jobs::Ledger& whole_;
    Writer& writer_;
    const JobSecrets& secrets_;
    const Telling& telling_;
    PurgeCursor& cursor_;
    const jobs::Term term_;
};

}  // namespace comfyd::ledger::postgres
