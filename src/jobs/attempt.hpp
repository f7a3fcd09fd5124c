// One try of a job on one worker, as the dispatcher keeps it: the job, what it tells while it runs,
// and how to stop it. Lives on the core executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/fleet.hpp"
#include "jobs/job.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// One try of a job, from its placement to its outcome. Kept by the table of jobs and by the
// coroutines that work on it.
class Attempt final : public AttemptListener {
public:
    Attempt(
        Executor core,
        events::Hub& event_hub,
        Clock& wall_clock,
        JobId job_id,
        std::shared_ptr<Worker> on_worker
    )
        : id(job_id),
          worker(std::move(on_worker)),
          stop(core),
          hub_(event_hub),
          clock_(wall_clock) {}

    void on_progress(const Progress& now) override {
        progress = now;
        if (changing) {
            return;
        }
        progress_sequence = ++sequence;
        // Most jobs have no listener; the event is only made for those that have one.
        if (!wants_progress()) {
            return;
        }
        events::EventPtr event = progress_event();
        if (progress_told) {
            progress_told(*event);
        }
        hub_.publish(job, events::Shown{std::move(event)});
    }

    bool wants_progress() const override { return progress_told || hub_.wants_progress(job); }

    // REQUIRES: progress.
    events::EventPtr progress_event() const {
        auto event = make_event(EventType::progress);
        event->sequence = progress_sequence;
        event->data = progress->to_json();
        const auto left = seconds_left ? seconds_left() : std::nullopt;
        event->data["eta_seconds"] = left ? json::value(*left) : json::value(nullptr);
        return event;
    }

    void on_preview(std::string bytes, std::string content_type) override {
        if (changing) {
            return;
        }
        ++sequence;
        auto event = make_event(EventType::preview);
        event->preview = std::move(bytes);
        event->preview_type = std::move(content_type);
        event->data = {{"node_id", progress ? progress->current_node : std::string()}};
        preview_event = event;
        hub_.publish(job, events::Shown{std::move(event)});
    }

    void on_output(const Output& output) override {
        ++sequence;
        auto event = make_event(EventType::output);
        event->data = {{"output", output.to_json()}};
        outputs.push_back(std::move(event));
    }

    void on_usage(const Usage& used) override {
        if (usage) {
            usage->add(used);
        } else {
            usage = used;
        }
    }

    void on_kept(AttemptResult result) override { kept = std::move(result); }

    bool wants_worker_messages() const override { return hub_.wants_worker_messages(job); }
    void on_worker_message(WorkerMessage said) override {
        hub_.publish(job, events::Said{id, std::move(said)});
    }

    const JobId id;
    const std::shared_ptr<Worker> worker;
    std::shared_ptr<void> expected;  // by its worker, of one that began before a restart
    Job job;                         // as the ledger has it; valid once `begun`
    std::optional<Spec> spec;        // read from the ledger unless the job has just been accepted
    bool begun = false;
    scheduler::JobKeys keys;
    bool is_on_worker = false;         // its run() has been called
    bool is_ending = false;            // the worker is done with it, its end is being stored
    bool holds_place = false;          // the scheduler counts it as running
    std::shared_ptr<Batch> group;      // set: it shares its run with others
    std::optional<BatchPlace> shared;  // likewise
    Time placed_at{};
    double expected_load_s = 0;
    int jobs_together = 1;  // in its run, itself included
    double gpu_part = 1;    // of the time until it gave up its place: see Scheduler::gpu_part()
    StopRequest stop;
    std::uint64_t sequence = 0;  // of the latest event, stored or not
    std::optional<Progress> progress;
    std::uint64_t progress_sequence = 0;
    std::function<std::optional<int>()> seconds_left;  // of the run; nullopt: not known
    std::function<void(const Event&)> progress_told;   // set: a webhook wants to hear of it
    std::shared_ptr<Event> preview_event;
    std::optional<Usage> usage;  // when the worker is done with it
    AttemptResult kept;          // where it failed: what it had finished
    std::vector<std::shared_ptr<Event>>
        outputs;  // told when the job's end is committed: before, nobody could fetch them
    // A change of `job` is being committed. It has its number already, so nothing with a higher one
    // is told before it.
    bool changing = false;

private:
    std::shared_ptr<Event> make_event(EventType type) const {
        auto event = std::make_shared<Event>();
        event->job = id;
        event->sequence = sequence;
        event->type = type;
        event->at = clock_.now();
        event->state = State::running;
        return event;
    }

    events::Hub& hub_;
    Clock& clock_;
};

}  // namespace comfyd::jobs
