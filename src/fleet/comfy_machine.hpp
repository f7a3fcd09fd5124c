// One ComfyUI server as it is driven: whether it is there, what it can run, its WebSocket, and the
// attempts on it. What the fleet knows of it is its ComfyWorker's on the core; this one lives on
// the executor of its net::Client, one of the io threads, and tells the core by posts.
//
// It goes down when its connection is refused or several checks in a row fail, and comes up when it
// answers again and has told its node classes. It has at most one WebSocket at a time, under one
// client id.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comfy/held_frames.hpp"
#include "fleet/attempt_relay.hpp"
#include "fleet/class_cache.hpp"
#include "fleet/comfy_attempt.hpp"
#include "fleet/options.hpp"
#include "jobs/fleet.hpp"
#include "jobs/model_holder.hpp"
#include "net/client.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

// The worker itself failed, not what it was asked to do.
inline bool is_workers_fault(Code code) {
    return code == Code::worker_lost || code == Code::worker_unavailable ||
           code == Code::out_of_memory;
}

// What the core knows of a machine, told anew whenever something of it has changed.
struct MachineReport {
    enum class State { starting, up, down };

    State state = State::starting;
    std::string last_error;
    comfy::SystemStats stats;
    // nullptr until it first told them; kept while it is down.
    std::shared_ptr<const workflow::NodeClasses> classes;
    bool merges = false;          // has what merged prompts are made with
    bool warms = false;           // has what models are loaded ahead of jobs with
    bool is_quarantined = false;  // answers, and gets nothing until a prompt has run there
    bool fetches_models = false;  // an agent is in front of it that does so
    bool agent_answers = false;   // whether ComfyUI does or not
    bool wants_rest = false;      // it is to be made anew once it has nothing to do
    // As that agent told last; 0: nothing.
    std::uint64_t disk_free_bytes = 0;
    std::uint64_t ram_total_bytes = 0;
    std::uint64_t fetched_outside = 0;
    std::uint64_t fetched_from_peers = 0;
};

// What a machine needs of its surroundings, all of which outlive it.
struct ComfyMachineParts {
    Executor executor;
    const Clock& clock;
    net::Client& http;  // of the same executor
    assets::Store& store;
    Pool& pool;
    ClassCache& classes;
    NodeCosts& costs;
    const FleetOptions& options;
    // These three only post.
    std::function<void(MachineReport)> report;
    std::function<void(PromptId prompt)> prompt_left;  // the machine can take another one
    std::function<void()> end_process;  // where it is ours and does not do what it is told
};

// An attempt that the core has asked for. Made there; from then on the machine's.
struct AttemptOrder {
    AttemptOrder(
        Executor executor,
        jobs::Assignment assigned,
        std::shared_ptr<AttemptRelay> to_listener,
        OwnerOf owners
    )
        : assignment(std::move(assigned)),
          relay(std::move(to_listener)),
          stop(executor),
          owner_of(std::move(owners)) {}

    jobs::Assignment assignment;
    std::shared_ptr<AttemptRelay> relay;
    jobs::StopRequest stop;
    OwnerOf owner_of;        // called on the machine's executor
    bool is_behind = false;  // another prompt runs there
};

// Models that the core wants there ahead of jobs. Made there; from then on the machine's.
struct WarmOrder {
    WarmOrder(Executor executor, std::string text, Millis most)
        : workflow(std::move(text)), patience(most), stop(executor) {}

    std::string workflow;
    Millis patience;
    jobs::StopRequest stop;
};

class ComfyMachine : public std::enable_shared_from_this<ComfyMachine> {
public:
    ComfyMachine(const WorkerConfig& config, ComfyMachineParts parts);

    // Any thread. Everything else here on this executor.
    Executor executor() const { return parts_.executor; }

    void start();
    // Ends the watching. Attempts are ended by those who started them.
    void cancel() { loops_.cancel(); }
    Task<bool> join();
    // Somebody says that it is there.
    void hear_ready();

    Task<Result<jobs::AttemptResult>> run(std::shared_ptr<AttemptOrder> order);
    // Its prompt waits behind a run that does not end: another machine may have the job, but only
    // as long as it waits. What has begun goes on.
    void give_back_waiting(std::shared_ptr<AttemptOrder> order, const PromptId& prompt);
    Task<Result<std::string>> read_file(JobId job, jobs::WorkerFile file, std::uint64_t bytes_max);
    // Its own input folder holds the file; false also where it cannot be asked.
    Task<bool> has_input(std::string name);
    Task<Result<>> free_memory(bool models, bool results);
    // Its agent has fetched them all, and they stand in its lists.
    Task<Result<>> fetch_models(
        std::vector<json::object> wishes, std::function<void(jobs::ModelHolder::Fetched)> told
    );
    Task<Result<>> warm(std::shared_ptr<WarmOrder> order);
    // It gets nothing more until a prompt of ours has run there, which is tried after `rest`.
    void quarantine(std::string reason, Millis rest);
    // What it would say to the prompt, which may hold asset references, without running it.
    // nullopt: it did not say. REQUIRES: it has told its classes.
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets
    );

private:
    using State = MachineReport::State;
    using Ticks = std::chrono::steady_clock;

    // Lets an attempt hear what the machine says, for as long as it runs.
    class Hearing {
    public:
        Hearing(ComfyMachine& machine, ComfyAttempt& attempt);
        ~Hearing();
        Hearing(const Hearing&) = delete;
        Hearing& operator=(const Hearing&) = delete;

    private:
        ComfyMachine& machine_;
        const std::string prompt_id_;
    };

    void settle(
        const ComfyAttempt& attempt, const Result<jobs::AttemptResult>& result, std::uint64_t socket
    );
    void report() { parts_.report(known_); }
    bool may_wait_still(const std::string& prompt) const;
    Task<> take_out_of_queue(std::shared_ptr<AttemptOrder> order, std::string prompt);
    Task<Result<bool>> take_if_pending(std::string prompt);
    // The attempt whose prompt runs; nullptr: none, or it is not known which.
    ComfyAttempt* find_running() const;

    Task<> watch_health();
    Task<> check_health();
    Task<Result<>> come_up();
    Task<Result<>> refresh_classes();
    Task<> look_for_agent();
    Task<> meet_agent(Error refusal);
    void note_fetched(const json::object& status);
    Task<> read_files(std::uint64_t revision);
    Task<> read_new_lists();
    Task<Result<>> check_blockage();
    Task<Result<>> probe();
    Task<Result<>> send_probe();
    Task<Result<>> send_own(std::string id, json::object prompt);
    Task<Result<>> follow_warming(std::shared_ptr<WarmOrder> order, std::string id);
    Task<Result<>> end_warming(std::string id);
    void block(Blockage blockage);
    void unblock();
    Task<> free_after_failure();
    Task<> clear_orphans();
    Task<> announce_lead();
    void note_failure(const Error& error);
    bool hangs(bool refused);
    void go_down(std::string reason);
    Millis next_check();
    void check_soon();
    void look_at_machine();

    Task<> keep_socket();
    Task<> read_socket();
    bool has_audience() const;
    Task<> tell_later();
    void hear_held();
    void miss_message();
    void dispatch(const comfy::Message& message, Ticks::time_point came_at);

    const std::string id_;
    ComfyMachineParts parts_;
    const FleetOptions& options_;
    ComfyLink link_;
    TaskGroup loops_;

    MachineReport known_;
    int failures_ = 0;  // of checks, in a row
    int silences_ = 0;  // of those, the latest that it took and did not answer
    std::optional<Ticks::time_point> refused_since_;
    int checks_down_ = 0;  // since it went down
    std::optional<Blockage> blockage_;
    Ticks::time_point probe_at_{};   // not before
    std::set<std::string> orphans_;  // prompts that may be on it and that nobody waits for
    Signal check_;
    bool check_wanted_ = false;
    Ticks::time_point checked_at_{};

    std::unique_ptr<comfy::Events> events_;
    std::uint64_t sockets_made_ = 0;
    bool reachable_ = false;
    Signal reachable_changed_;
    Signal socket_changed_;
    comfy::HeldFrames held_;
    Signal is_held_;
    std::uint64_t messages_skipped_ = 0;  // unknown or malformed

    Ticks::time_point agent_asked_at_{};
    std::optional<std::uint64_t> files_revision_{};  // of what its agent told of its files

    Ticks::time_point classes_read_at_{};
    bool classes_stale_ = false;  // it refused a class that it should have
    bool lists_stale_ = false;    // it has a file that its lists lack

    std::map<std::string, ComfyAttempt*, std::less<>>
        attempts_;  // by prompt id; each lives in its run()
};

}  // namespace comfyd::fleet
