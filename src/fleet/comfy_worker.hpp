// One ComfyUI server of the fleet: whether it is there, what it can run, its WebSocket, and the
// attempts on it. Owned by the Fleet; core executor only.
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

#include "fleet/class_cache.hpp"
#include "fleet/comfy_attempt.hpp"
#include "fleet/options.hpp"
#include "jobs/fleet.hpp"
#include "net/client.hpp"
#include "workflow/catalogue.hpp"

namespace comfyd::fleet {

// What a worker needs of its surroundings, all of which outlive it.
struct ComfyWorkerParts {
    Executor core;
    const Clock& clock;
    net::Client& http;
    assets::Store& store;
    Pool& pool;
    ClassCache& classes;
    NodeCosts& costs;
    const FleetOptions& options;
    std::function<void()> changed;          // it may be available or capable now, or not any more
    std::function<void()> classes_changed;  // likewise, and it has other node classes
    std::function<bool(const std::string& requirement)> left_to_engine;
};

class MergedRun;

class ComfyWorker final : public jobs::Worker {
public:
    ComfyWorker(WorkerConfig config, ComfyWorkerParts parts);

    // Spawns its loops; the group is cancelled and joined before the worker goes.
    void start(TaskGroup& group);
    void set_draining(bool draining);
    bool is_draining() const { return draining_; }
    // Our own, in a child process.
    bool is_engine() const { return config_.process != nullptr; }
    bool is_up() const { return state_ == State::up; }
    // nullptr until it first told them; kept while it is down.
    std::shared_ptr<const workflow::NodeClasses> classes() const { return classes_; }

    jobs::WorkerInfo info() const override;
    const std::string& id() const override { return config_.id; }
    bool available() const override;
    bool can_run(const std::string& requirement) const override;
    // Smaller is to be preferred.
    double load() const;
    // Attempts whose prompt it has not finished.
    std::size_t running() const override;
    std::string abilities() const override;
    Task<Result<jobs::AttemptResult>> run(
        jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
    ) override;
    bool merges() const override { return merges_; }
    std::shared_ptr<jobs::RunGroup> make_group(std::string prompt_id, std::size_t members) override;
    Task<Result<std::string>> read_file(JobId job, jobs::WorkerFile file, std::uint64_t bytes_max)
        override;
    // The worker's own input folder holds the file; false also where it cannot be asked.
    Task<bool> has_input(std::string name);
    Task<Result<>> free_memory(bool models, bool results) override;

    // Whether judge() may know: it is up and has the node pack.
    bool can_judge() const;
    // What it would say to the prompt, which may hold asset references, without running it.
    // nullopt: it did not say.
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets
    );

private:
    enum class State { starting, up, down };
    using Ticks = std::chrono::steady_clock;

    // Holds the place of an attempt from the call of run() to its end.
    class Seat {
    public:
        Seat(ComfyWorker& worker, ComfyAttempt* attempt);
        ~Seat();
        Seat(Seat&& other) noexcept;
        Seat& operator=(Seat&&) = delete;

    private:
        ComfyWorker* worker_;
        std::string prompt_id_;
    };

    Task<Result<jobs::AttemptResult>> run_prompt(
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop,
        OwnerOf owner_of
    );
    Task<Result<jobs::AttemptResult>> run_attempt(std::unique_ptr<ComfyAttempt> attempt, Seat seat);
    void settle(
        const ComfyAttempt& attempt, const Result<jobs::AttemptResult>& result, std::uint64_t socket
    );

    Task<> watch_health();
    Task<> check_health();
    Task<Result<>> come_up();
    Task<Result<>> refresh_classes();
    Task<Result<>> check_blockage();
    Task<> clear_orphans();
    void note_failure(const Error& error);
    void go_down(std::string reason);
    // Where it is ours to end, and does not do what it is told.
    void end_process();
    Millis next_check();
    void check_soon();
    void look_at_machine();

    Task<> keep_socket();
    Task<> read_socket();
    void dispatch(const comfy::Message& message);

    WorkerConfig config_;
    ComfyWorkerParts parts_;
    const FleetOptions& options_;
    ComfyLink link_;

    State state_ = State::starting;
    bool draining_ = false;
    std::string last_error_;
    int failures_ = 0;     // of checks, in a row
    int checks_down_ = 0;  // since it went down
    std::optional<Blockage> blockage_;
    std::set<std::string> orphans_;  // prompts that may be on it and that nobody waits for
    Signal check_;
    bool check_wanted_ = false;
    Ticks::time_point checked_at_{};

    std::unique_ptr<comfy::Events> events_;
    std::uint64_t socket_number_ = 0;  // of the WebSocket; 0: none
    std::uint64_t sockets_made_ = 0;
    bool reachable_ = false;
    Signal reachable_changed_;
    Signal socket_changed_;
    std::uint64_t messages_skipped_ = 0;  // unknown or malformed

    comfy::SystemStats stats_;
    std::shared_ptr<const workflow::NodeClasses> classes_;
    Ticks::time_point classes_read_at_{};
    bool merges_ = false;  // has what merged prompts are made with
    std::vector<std::weak_ptr<MergedRun>> groups_;
    bool classes_stale_ = false;  // it refused a class that it should have
    bool lists_stale_ = false;    // it has a file that its lists lack

    std::map<std::string, ComfyAttempt*, std::less<>>
        attempts_;  // by prompt id; each lives in its run()
    Time created_at_;
    Time last_active_at_;
    std::uint64_t completed_ = 0;
    std::uint64_t failed_ = 0;
    int failed_in_a_row_ = 0;
};

}  // namespace comfyd::fleet
