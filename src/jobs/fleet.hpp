// What the jobs room asks of the machines that run workflows. Implemented by the fleet room.
// Everything here lives on the core executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/circuit_breaker.hpp"
#include "base/task.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

// Several jobs that share one run on a worker. Every member is either given to the worker's run()
// with its place, or leaves.
class Batch {
public:
    virtual ~Batch() = default;
    virtual void leave(std::size_t place) = 0;
    // The jobs were here and could not run together: each ran, or runs, alone.
    virtual bool runs_alone() const = 0;
    // What the run took as a whole, for whoever asks first after it has ended well.
    struct Whole {
        int jobs = 0;
        Usage usage;
    };
    virtual std::optional<Whole> take_whole() = 0;
};

// One try of a job on one worker.
struct Assignment {
    JobId job;
    int attempt = 1;
    PromptId prompt;
    std::string tenant;
    std::string workflow;  // JSON text; may hold asset references, which the runner uploads first
    json::object extra_data;
    std::vector<std::string> targets;  // output nodes to run; empty: all
    Millis timeout{};
    // After a restart: the prompt may already be on the worker. The runner looks for it first, and
    // submits only when the worker certainly does not have it.
    bool reattach = false;
    std::shared_ptr<Batch> group{};  // made by the worker; null: the job runs alone
    std::size_t place = 0;           // in the group
    // As such runs took there, with nothing to load; nullopt: not known.
    std::optional<Millis> expected{};
};

// Asks a running attempt to stop. The runner waits on `requested` and reads `reason`.
struct StopRequest {
    explicit StopRequest(Executor executor) : requested(executor) {}
    Signal requested;
    std::stop_source told;  // the same for other threads, which only want to know that it is over
    std::optional<Code> reason;  // Code::cancelled, Code::execution_timeout,
                                 // Code::deadline_exceeded, Code::shutting_down
    void stop(Code why) {
        if (!reason) {
            reason = why;
            requested.notify();
            told.request_stop();
        }
    }
};

struct AttemptResult {
    std::vector<Output> outputs;
    json::object ui_outputs;
};

// What an attempt tells while it runs.
class AttemptListener {
public:
    virtual ~AttemptListener() = default;
    virtual void on_progress(const Progress& progress) = 0;
    // Whether anybody waits for each on_progress() now. Where nobody does it may come some
    // milliseconds later, and only the latest.
    virtual bool wants_progress() const { return true; }
    virtual void on_preview(std::string bytes, std::string content_type) = 0;
    virtual void on_output(const Output& output) = 0;
    // Before the attempt ends, however it ends; not for one that never came to its worker. Again
    // where the attempt ran again, for example alone after a merged run: each tells of itself.
    virtual void on_usage(const Usage& usage) { static_cast<void>(usage); }
    // Before an attempt ends that has failed: what was finished by then, stored like the outputs of
    // one that ends well.
    virtual void on_kept(AttemptResult result) { static_cast<void>(result); }
    // Whether anybody wants to hear on_worker_message() now; making messages for nobody would cost.
    virtual bool wants_worker_messages() const { return false; }
    virtual void on_worker_message(WorkerMessage said) { static_cast<void>(said); }
};

// A file of a worker, as its ui dictionaries name it.
struct WorkerFile {
    std::string name;
    std::string subfolder;
    std::string folder;  // "output", "temp", "input"
};

// In the details of a failed attempt: it ran in a process of comfyd's own engine, which died
// meanwhile. One that does so again is not tried a third time, because the job itself may be the
// cause.
inline constexpr std::string_view kEndedWithProcess = "ended_with_process";

enum class WorkerStatus {
    starting,
    idle,
    running,
    draining,  // takes no more jobs
    down,      // does not answer
};
std::string_view to_string(WorkerStatus status);

struct WorkerInfo {
    std::string id;
    std::string url;  // "engine:" for the embedded one
    WorkerStatus status = WorkerStatus::starting;
    std::string version;  // ComfyUI's
    std::string gpu;      // name of the first device
    std::uint64_t vram_total = 0;
    std::uint64_t vram_free = 0;
    std::uint64_t ram_total = 0;  // main memory of its machine; 0: not known
    // Bytes of models that its agent has brought there since that started: from outside, and from
    // other agents.
    std::uint64_t fetched_outside = 0;
    std::uint64_t fetched_from_peers = 0;
    std::size_t node_classes = 0;
    std::string last_error;  // why it is down
    std::optional<JobId> current_job;
    std::vector<JobId> jobs{};  // all that it runs
    std::size_t running = 0;    // prompts of theirs; a merged one is one
    Time created_at{};
    Time last_active_at{};
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    int slots = 1;                         // jobs at a time
    std::uint64_t model_memory_bytes = 0;  // for models that stay beside those of the latest job
    std::string gpu_id;  // workers with the same one share a GPU; empty: it has its own
    std::string pool = "default";
    std::string region{};
    std::string machine{};  // its name, where comfyd started it
    // How it is trusted after it failed several times in a row (base/circuit_breaker.hpp).
    CircuitBreaker::State breaker = CircuitBreaker::State::closed;

    MachineFacts facts() const { return {pool, gpu, region, vram_total}; }
};

class ModelHolder;

class Worker {
public:
    virtual ~Worker() = default;
    virtual WorkerInfo info() const = 0;
    virtual const std::string& id() const = 0;
    // Ready to take one more job now.
    virtual bool available() const = 0;
    virtual bool can_run(const Requirement& requirement) const = 0;
    // Jobs that keep it from others now; those whose results are only being fetched do not.
    virtual std::size_t running() const { return available() ? 0 : 1; }
    // can_run() answers alike for all workers with the same text and as long as it is the same.
    // Empty: not known.
    virtual std::string abilities() const { return {}; }

    // After a restart: until what is returned goes, an attempt is on its way to run() whose prompt
    // its machine may have, and the worker stays. It outlives what is returned.
    virtual std::shared_ptr<void> expect_attempt() { return nullptr; }
    // Runs one attempt to its end. available() counts it from the call on. Failures by code:
    // worker_lost and worker_unavailable (another worker may do it), out_of_memory,
    // node_execution_error (with the exception in the details), worker_rejected (the worker's
    // validation said no; details hold its answer), the stop's reason, output_unavailable,
    // storage_*. When stop's reason is shutting_down the prompt is left on the worker as it is and
    // the result is Code::shutting_down.
    virtual Task<Result<AttemptResult>> run(
        Assignment assignment, AttemptListener& listener, StopRequest& stop
    ) = 0;

    // It can run several jobs of one shape as one prompt.
    virtual bool merges() const { return false; }
    // For jobs of one shape that are to run as one prompt; nullptr: this worker runs each alone.
    virtual std::shared_ptr<Batch> make_group(PromptId prompt, std::size_t members) {
        static_cast<void>(prompt), static_cast<void>(members);
        return nullptr;
    }

    // It can bring models into memory ahead of jobs.
    virtual bool warms() const { return false; }
    // Brings there what the workflow would load, without running it. Jobs may be given to it
    // meanwhile: they wait for the file that is being loaded, at most. Code::not_found: the
    // workflow loads nothing that it knows; Code::cancelled: stop_warming(), or the end of the
    // task; Code::execution_timeout: it took longer than `patience`; else as a run fails.
    virtual Task<Result<>> warm(std::string workflow, Millis patience) {
        static_cast<void>(workflow), static_cast<void>(patience);
        co_return fail(Code::not_found, "this worker loads nothing ahead of jobs");
    }
    virtual void stop_warming() {}

    // Who brings model files there; nullptr: nobody.
    virtual ModelHolder* models() { return nullptr; }

    // A result that a job which still runs has told of, and which nobody has collected yet.
    // Code::not_found, Code::payload_too_large.
    virtual Task<Result<std::string>> read_file(
        JobId job, WorkerFile file, std::uint64_t bytes_max
    ) {
        static_cast<void>(job), static_cast<void>(file), static_cast<void>(bytes_max);
        co_return fail(Code::not_found, "this worker does not show its files");
    }
    // Gives memory back between prompts: models, and the results that it keeps.
    virtual Task<Result<>> free_memory(bool models, bool results) {
        static_cast<void>(models), static_cast<void>(results);
        co_return Result<>();
    }
};

class Fleet {
public:
    virtual ~Fleet() = default;
    virtual std::vector<std::shared_ptr<Worker>> workers() const = 0;
    virtual std::shared_ptr<Worker> find(const std::string& id) const = 0;
    // Called whenever workers may have become available or capable, have come or have left, with
    // their ids. Under the id of one that has left there may be another.
    using OnChange = std::function<void(const std::set<std::string>& workers)>;
    virtual void on_change(OnChange callback) = 0;
    // Why no workers are added for jobs that ask for this pool, or for none, in words; none: they
    // may be.
    virtual std::vector<std::string> hindrances(const std::string& pool) const {
        static_cast<void>(pool);
        return {};
    }
};

}  // namespace comfyd::jobs
