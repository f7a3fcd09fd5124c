#include "simulation/rules.hpp"

#include "jobs/cause.hpp"
#include "jobs/give_back.hpp"
#include "simulation/journal.hpp"

namespace comfyd::simulation {

using jobs::EventType;
using jobs::State;

void Rules::break_one(std::string what) {
    if (!broken_) {
        broken_ = std::move(what);
    }
}

void Rules::on_accepted(const JobId& id) {
    const auto& entry = stored_.entries().at(id);
    const std::string& key = entry.spec.idempotency_key;
    if (!key.empty()) {
        const auto [held, is_new] = keys_.try_emplace({entry.job.tenant, key}, clock_.now());
        if (!is_new && held->second + std::chrono::hours(24) > clock_.now()) {
            break_one(name_of(id) + " was made although its idempotency key is another's");
        }
        held->second = clock_.now();
    }
    if (entry.job.state == State::running && entry.job.deadline &&
        clock_.now() > *entry.job.deadline && entry.job.started_at >= entry.job.deadline) {
        break_one(name_of(id) + " was started after its deadline");
    }
    for (const jobs::Event& event : entry.events) {
        if (event.type != EventType::queued && event.type != EventType::warning) {
            jobs_[id].committed.push_back(event.sequence);
        }
    }
}

void Rules::on_committed(const jobs::Job& before, const jobs::Change& change) {
    const jobs::Job& after = change.job;
    Known& known = jobs_[after.id];
    known.committed.push_back(change.event.sequence);
    if (change.event.sequence <= before.sequence) {
        break_one(name_of(after.id) + " uses a sequence number again");
    }
    if (is_terminal(before.state)) {
        if (after.state != State::queued || known.retries_open == 0) {
            break_one(
                name_of(after.id) + " was " + std::string(to_string(before.state)) +
                " and became " + std::string(to_string(after.state))
            );
        }
        known.is_cancel_asked = known.cancels_open > 0;
        known.revivals += 1;
        known.taken_down.clear();
        return;
    }
    if (change.event.type == EventType::started) {
        check_start(change);
    }
    if (change.event.type == EventType::retrying &&
        jobs::info(jobs::cause_of(*after.failure)).takes_worker_down) {
        known.taken_down.insert(after.worker);
    }
    if (after.failure && after.failure->details.contains(jobs::kGivenBack) &&
        (after.state == State::failed || after.attempt >= after.max_attempts)) {
        break_one(name_of(after.id) + " has lost an attempt that was given back");
    }
    if (is_terminal(after.state)) {
        check_end(change);
    }
}

void Rules::check_start(const jobs::Change& change) {
    const jobs::Job& job = change.job;
    if (job.deadline && change.event.at >= *job.deadline) {
        break_one(name_of(job.id) + " was started after its deadline");
    }
    if (job.attempt > job.max_attempts) {
        break_one(name_of(job.id) + " got more attempts than it may have");
    }
    if (jobs_[job.id].taken_down.size() > 1) {
        break_one(name_of(job.id) + " took down two workers and gets another");
    }
}

void Rules::check_end(const jobs::Change& change) {
    const jobs::Job& job = change.job;
    const Known& known = jobs_[job.id];
    if (job.state == State::expired && !(job.deadline && change.event.at >= *job.deadline)) {
        break_one(name_of(job.id) + " expired before its deadline");
    }
    if (job.state == State::cancelled && !known.is_cancel_asked && !is_batch_cancelled_) {
        break_one(name_of(job.id) + " was cancelled and nobody asked for it");
    }
    if (job.state == State::completed && !job.reused_from &&
        !known.good_attempts.contains(job.attempt)) {
        break_one(name_of(job.id) + " completed and no worker has said so");
    }
    for (const jobs::Output& output : job.outputs) {
        if (output.media.empty()) {
            break_one(name_of(job.id) + " completed with outputs that were not finished");
        }
        const auto made = known.made.find(output.asset);
        if (!job.reused_from && (made == known.made.end() || made->second != job.attempt)) {
            break_one(name_of(job.id) + " ended with outputs of another attempt");
        }
    }
    if (job.reused_from) {
        const auto source = stored_.entries().find(*job.reused_from);
        if (source == stored_.entries().end() || source->second.job.state != State::completed ||
            source->second.job.reuse_key != job.reuse_key ||
            source->second.job.tenant != job.tenant) {
            break_one(name_of(job.id) + " was answered by a job that does something else");
        }
    }
}

int Rules::on_cancel_asked(const JobId& id) {
    Known& known = jobs_[id];
    known.is_cancel_asked = true;
    known.cancels_open += 1;
    return known.revivals;
}

void Rules::on_cancel_answered(const JobId& id, int revivals, bool is_done) {
    Known& known = jobs_[id];
    known.cancels_open -= 1;
    const jobs::Job& job = stored_.entries().at(id).job;
    const bool is_revived = known.revivals != revivals;
    if (is_done && !is_terminal(job.state) && !job.cancel_requested && !is_revived) {
        break_one(
            "the cancel of " + name_of(id) + " was answered well, and the job is " +
            std::string(to_string(job.state))
        );
    }
}

void Rules::on_run(const jobs::Assignment& assignment, const std::string& worker) {
    Known& known = jobs_[assignment.job];
    const jobs::Job& job = stored_.entries().at(assignment.job).job;
    if (known.is_running) {
        break_one(name_of(assignment.job) + " runs twice at a time in one process");
    }
    if (job.state != State::running || job.attempt != assignment.attempt || job.worker != worker) {
        break_one(
            name_of(assignment.job) + " is given to " + worker + ", but the ledger has it as " +
            std::string(to_string(job.state)) + " on '" + job.worker + "'"
        );
    }
    known.is_running = true;
}

void Rules::on_run_ended(const jobs::Assignment& assignment, bool is_good) {
    Known& known = jobs_[assignment.job];
    known.is_running = false;
    if (is_good) {
        known.good_attempts.insert(assignment.attempt);
    }
}

void Rules::on_told_job(Listener& listener, const events::Arrived& arrived) {
    const jobs::Job& job = *arrived.job;
    const auto [heard, is_first] = listener.jobs.try_emplace(job.id);
    if (!is_first || arrived.how == events::Arrived::How::accepted) {
        return;  // brought back by its owner, or nothing was told of it
    }
    const auto& committed = jobs_[job.id].committed;
    while (heard->second.told < committed.size() && committed[heard->second.told] <= job.sequence) {
        heard->second.told += 1;
    }
    heard->second.sequence = job.sequence;
}

void Rules::on_told_change(Listener& listener, const events::Changed& changed) {
    const JobId& id = changed.job->id;
    const jobs::Event& event = *changed.event;
    const Known& known = jobs_[id];
    const auto [entry, is_first] = listener.jobs.try_emplace(id);
    Listener::Heard& heard = entry->second;
    if (is_first) {
        // Only what brings a job back may come before it is announced.
        heard.told = known.committed_before;
    }
    if (event.sequence <= heard.read) {
        return;
    }
    if (heard.told >= known.committed.size() || known.committed[heard.told] != event.sequence) {
        break_one(name_of(id) + " tells of a change out of turn");
        return;
    }
    heard.told += 1;
    if (event.sequence <= heard.sequence) {
        break_one(name_of(id) + " tells sequence numbers that do not rise");
    }
    heard.sequence = event.sequence;
}

void Rules::on_gap(Listener& listener) {
    if (!listener.may_miss) {
        break_one("one who listens has missed something");
    }
    for (const auto& [id, entry] : stored_.entries()) {
        listener.jobs[id] = {jobs_[id].committed.size(), entry.job.sequence, entry.job.sequence};
    }
}

void Rules::on_process_ended() {
    for (auto& [id, known] : jobs_) {
        known.is_running = false;
        known.cancels_open = 0;
        known.retries_open = 0;
        known.committed_before = known.committed.size();
    }
    attentive.jobs.clear();
    hasty.jobs.clear();
}

void Rules::check_counts(std::size_t queued, std::size_t running, std::size_t retry_waiting) {
    std::array<std::size_t, 7> table{};
    for (const auto& [id, entry] : stored_.entries()) {
        table[static_cast<std::size_t>(entry.job.state)] += 1;
    }
    const std::array<std::size_t, 3> kept{queued, running, retry_waiting};
    if (kept != std::array<std::size_t, 3>{table[0], table[1], table[2]}) {
        std::string text = "queued, running, retry_waiting: the process counts";
        for (std::size_t i = 0; i < kept.size(); ++i) {
            text += " " + std::to_string(kept[i]) + " (table " + std::to_string(table[i]) + ")";
        }
        break_one(std::move(text));
    }
}

void Rules::check_all_told() {
    check_told(attentive);
    check_told(hasty);
}

void Rules::check_told(const Listener& listener) {
    for (const auto& [id, heard] : listener.jobs) {
        if (heard.told != jobs_[id].committed.size()) {
            break_one(name_of(id) + " has changed and nobody was told");
        }
    }
}

void Rules::check_all_ended() {
    for (const auto& [id, entry] : stored_.entries()) {
        if (!is_terminal(entry.job.state)) {
            break_one(
                name_of(id) + " is forgotten: " + std::string(to_string(entry.job.state)) +
                ", attempt " + std::to_string(entry.job.attempt)
            );
        }
    }
}

}  // namespace comfyd::simulation
