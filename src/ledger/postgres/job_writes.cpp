#include "ledger/postgres/job_writes.hpp"

#include <utility>

#include "ledger/codec.hpp"
#include "ledger/postgres/job_queries.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kHasJob[] = "SELECT 1 FROM jobs WHERE id = $1";
constexpr char kFindChanged[] =
    "SELECT revision, sequence, state, worker, finished_at, epoch FROM jobs WHERE id = $1";

constexpr std::size_t kRowOverheadBytes = 512;

// Hashes of outputs that are another job's, a line each; nullopt: it has made its own.
std::optional<std::string> reused_hashes(const jobs::Job& job) {
    if (!job.reused_from || job.outputs.empty()) {
        return std::nullopt;
    }
    std::string hashes;
    jobs::each_file(job.outputs, [&hashes](const jobs::Output& file) {
        hashes.append(hashes.empty() ? "" : "\n").append(file.hash);
    });
    return hashes;
}

Error outputs_gone(const jobs::Job& job) {
    return Error(
        Code::output_unavailable,
        "an output of job " + job.reused_from->to_string() + " is no longer stored"
    );
}

// An outcome that never changes again, for the indexes; nullopt: it may still run.
std::optional<int> outcome_of(const jobs::Job& job) {
    return jobs::is_terminal(job.state) ? std::optional(static_cast<int>(job.state)) : std::nullopt;
}

std::optional<std::string> shared_prompt(const jobs::Job& job) {
    return job.shared ? std::optional(job.shared->prompt.to_string()) : std::nullopt;
}
std::optional<std::size_t> shared_place(const jobs::Job& job) {
    return job.shared ? std::optional(job.shared->place) : std::nullopt;
}

void add_consequences(
    Batch& batch,
    const jobs::Change& change,
    const ResultTexts& texts,
    const std::vector<ToldTo>& told
) {
    const jobs::Job& job = change.job;
    const jobs::Event& event = change.event;
    if (event.is_durable()) {
        batch.add_event(event, texts.event_data);
        if (job.has_webhook) {
            batch.add_delivery(job, event);
        }
        batch.add_deliveries(job, event, told);
    }
    if (texts.any()) {
        batch.results.add(job.id, texts.failure, texts.outputs, texts.ui_outputs, texts.usage);
    } else if (job.revision > 2) {  // the first change follows nothing that could have a result
        batch.no_results.add(job.id);
    }
    if (jobs::is_terminal(job.state)) {
        batch.add_outputs(job, event.at);
        if (job.reused_from) {
            jobs::each_file(job.outputs, [&batch](const jobs::Output& file) {
                batch.reused_hashes.add(file.hash);
            });
        }
    }
    if (auto entry = jobs::stats_of(change)) {
        batch.add_stats(job.id, std::move(*entry));
    }
}

}  // namespace

AcceptJob::AcceptJob(jobs::NewJob job, std::optional<std::string> sealed, const Telling& telling)
    : new_(std::move(job)),
      sealed_(std::move(sealed)),
      texts_(new_),
      told_(telling.of(new_.change.job, new_.change.event)) {
    if (texts_.webhook) {
        texts_.webhook =
            telling.write_target(*texts_.webhook, new_.change.job.id, notify::kOwnWebhook);
    }
    if (new_.warning) {
        warned_ = telling.of(new_.change.job, *new_.warning);
    }
    if (new_.then) {
        then_texts_.emplace(*new_.then);
        then_told_ = telling.of(new_.then->job, new_.then->event);
    }
}

std::size_t AcceptJob::bytes() const {
    return kRowOverheadBytes + new_.spec.workflow.size() + new_.spec.requirement.encoded().size() +
           texts_.bytes() + (then_texts_ ? then_texts_->bytes() : 0);
}

bool AcceptJob::join(Batch& batch) {
    const jobs::Job& job = new_.change.job;
    const jobs::Spec& spec = new_.spec;
    if (!batch.touch(job.id)) {
        return false;
    }
    const auto reused = new_.then ? reused_hashes(new_.then->job) : std::nullopt;
    // Of equal keys the first one counts, the others find it.
    if (!spec.idempotency_key.empty() &&
        batch.held.insert(spec.tenant + '\0' + spec.idempotency_key).second) {
        batch.keys.add(spec.tenant, spec.idempotency_key, job.id, spec.request_hash, reused);
    }
    add_job(batch);
    batch.specs.add(
        job.id,
        new_.change.event.sequence,
        texts_.queued_data,
        spec.requirement.encoded(),
        texts_.profile,
        texts_.metadata,
        texts_.dialect_data,
        texts_.spec,
        texts_.extra_data,
        spec.workflow
    );
    for (const AssetId& asset : texts_.used_assets.ids) {
        batch.job_assets.add(job.id, asset.to_string());
    }
    for (const std::string& hash : texts_.used_assets.hashes) {
        batch.job_assets.add(job.id, hash);
    }
    if (sealed_ && !(new_.then && jobs::is_terminal(new_.then->job.state))) {
        batch.secrets.add(job.id, *sealed_);
    }
    if (texts_.webhook) {
        batch.targets.add(job.id, notify::kOwnWebhook, *texts_.webhook);
        batch.add_delivery(job, new_.change.event);
    }
    batch.add_deliveries(job, new_.change.event, told_);
    if (new_.warning) {
        batch.add_event(*new_.warning, encode(new_.warning->data));
        if (texts_.webhook) {
            batch.add_delivery(job, *new_.warning);
        }
        batch.add_deliveries(job, *new_.warning, warned_);
    }
    if (new_.then) {
        add_consequences(batch, *new_.then, *then_texts_, then_told_);
    }
    return true;
}

// At once as it is after both steps, where there are two.
void AcceptJob::add_job(Batch& batch) const {
    const jobs::Job& job = new_.then ? new_.then->job : new_.change.job;
    const auto unless_empty = [](const std::string& text) {
        return text.empty() ? std::nullopt : std::optional(text);
    };
    batch.new_jobs.add(
        job.id,
        new_.spec.domain,
        job.tenant,
        static_cast<int>(job.state),
        outcome_of(job),
        job.revision,
        job.sequence,
        job.priority,
        job.created_at,
        job.started_at,
        job.finished_at,
        job.not_before,
        job.deadline,
        job.timeout,
        job.attempt,
        job.max_attempts,
        job.cancel_requested,
        job.node_count,
        job.dialect,
        job.worker,
        job.workflow_id,
        texts_.webhook_events,
        unless_empty(job.reuse_key),
        job.reused_from,
        shared_prompt(job),
        shared_place(job),
        unless_empty(new_.spec.idempotency_key),
        new_.then ? reused_hashes(job) : std::nullopt
    );
}

void AcceptJob::conclude(const Batch& batch) {
    if (batch.made.contains(new_.change.job.id)) {
        outcome.emplace(jobs::Accepted{.created = true, .existing = {}, .existing_request_hash = {}}
        );
    }
}

Statements AcceptJob::question(const Circumstances& at) {
    return {
        find_key(new_.spec.tenant, new_.spec.idempotency_key, at.now),
        {kHasJob, {new_.change.job.id}},
    };
}

void AcceptJob::hear(const Circumstances& at, const std::vector<Rows>& answers) {
    const JobId id = new_.change.job.id;
    const bool is_there = !answers.at(1).empty();
    auto holder = read_key_holder(answers.at(0));
    if (!holder) {
        outcome.emplace(fail(std::move(holder.error())));
    } else if (is_there && at.is_again) {
        outcome.emplace(jobs::Accepted{.created = true, .existing = {}, .existing_request_hash = {}}
        );
    } else if (holder->existing) {
        outcome.emplace(std::move(*holder));
    } else if (is_there) {
        outcome.emplace(fail(Code::conflict, "there is a job " + id.to_string() + " already"));
    } else if (new_.then && new_.then->job.reused_from) {
        outcome.emplace(fail(outputs_gone(new_.then->job)));
    }
}

CommitChange::CommitChange(jobs::Change change, const Telling& telling)
    : change_(std::move(change)), texts_(change_), told_(telling.of(change_.job, change_.event)) {}

std::size_t CommitChange::bytes() const {
    return kRowOverheadBytes + texts_.bytes();
}

bool CommitChange::join(Batch& batch) {
    const jobs::Job& job = change_.job;
    if (!batch.touch(job.id)) {
        return false;
    }
    const bool has_completed = change_.event.type == jobs::EventType::completed;
    if (jobs::is_terminal(job.state)) {
        batch.ended.add(job.id);
    }
    batch.changes.add(
        job.id,
        static_cast<int>(job.state),
        outcome_of(job),
        job.revision,
        job.sequence,
        job.priority,
        job.started_at,
        job.finished_at,
        job.not_before,
        job.deadline,
        job.timeout,
        job.attempt,
        job.max_attempts,
        job.cancel_requested,
        job.worker,
        job.reused_from,
        shared_prompt(job),
        shared_place(job),
        has_completed ? reused_hashes(job) : std::nullopt
    );
    add_consequences(batch, change_, texts_, told_);
    return true;
}

void CommitChange::conclude(const Batch& batch) {
    if (batch.changed.contains(change_.job.id)) {
        outcome.emplace();
    }
}

Statements CommitChange::question(const Circumstances&) {
    return {{kFindChanged, {change_.job.id}}};
}

void CommitChange::hear(const Circumstances& at, const std::vector<Rows>& answers) {
    const jobs::Job& job = change_.job;
    const Rows& rows = answers.at(0);
    if (rows.empty()) {
        outcome.emplace(fail(Code::not_found, "there is no job " + job.id.to_string()));
        return;
    }
    const Row stored = rows[0];
    const std::int64_t revision = stored.integer(0);
    const auto sequence = static_cast<std::uint64_t>(stored.integer(1));
    const std::uint64_t epoch = at.term ? at.term->epoch : 0;
    const bool is_this = revision == job.revision && sequence == job.sequence &&
                         stored.integer(2) == static_cast<int>(job.state) &&
                         stored.text(3) == job.worker &&
                         stored.optional_time(4) == job.finished_at &&
                         static_cast<std::uint64_t>(stored.integer(5)) == epoch;
    if (at.is_again && is_this) {
        outcome.emplace();
    } else if (revision == job.revision - 1 && sequence < job.sequence && job.reused_from) {
        outcome.emplace(fail(outputs_gone(job)));
    } else {
        outcome.emplace(fail(
            Code::conflict,
            "job " + job.id.to_string() + " was changed meanwhile; read it again and decide anew",
            {{"stored_revision", revision}, {"revision", job.revision}}
        ));
    }
}

}  // namespace comfyd::ledger::postgres
