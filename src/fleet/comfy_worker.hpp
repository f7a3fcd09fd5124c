// One ComfyUI server of the fleet, as the core knows it: what it can run, what it is given and
// whether it can take more. The server itself is driven by its ComfyMachine, on one of the io
// threads; what that tells arrives here by posts. Owned by the Fleet; core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/comfy_machine.hpp"
#include "fleet/hand_ahead.hpp"
#include "fleet/options.hpp"
#include "jobs/fleet.hpp"
#include "jobs/model_holder.hpp"
#include "net/client.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

// What a worker needs of its surroundings, all of which outlive it.
struct ComfyWorkerParts {
    Executor core;
    Executor lane;      // that its machine lives on
    net::Client& http;  // of the lane
    const Clock& clock;
    assets::Store& store;
    Pool& pool;
    ClassCache& classes;
    NodeCosts& costs;
    const FleetOptions& options;
    std::function<void()> changed;          // it may be available or capable now, or not any more
    std::function<void()> classes_changed;  // likewise, and it has other node classes
    std::function<bool(const Requirement& requirement)> left_to_engine;
    // Enough others of the pool are left, should one be taken out because it fails too often.
    std::function<bool(const std::string& pool)> may_rest_one;
};

class ComfyBatch;

class ComfyWorker final : public jobs::Worker, public jobs::ModelHolder {
public:
    ComfyWorker(WorkerConfig config, ComfyWorkerParts parts);
    ~ComfyWorker() override;

    void start();
    // Ends the watching; join() returns when it has ended.
    void cancel();
    Task<> join();
    void set_draining(bool draining);
    // Somebody says that it is there: one that was down is looked at now, and not in its turn.
    void hear_ready();
    bool is_draining() const { return draining_; }
    // No attempt is here or expected, and no group of jobs is about to begin one.
    bool is_idle() const { return taken_.empty() && running() == 0 && expected_ == 0; }
    // From now on it refuses attempts, and those that its prompts are still of end with
    // Code::worker_unavailable, their prompts taken back: another worker may do them.
    void give_back();
    // Our own, in a child process.
    bool is_engine() const { return config_.process != nullptr; }
    bool is_quarantined() const { return known_.is_quarantined; }
    const std::string& pool() const { return config_.pool; }
    const std::string& software() const { return config_.software; }
    bool is_up() const { return known_.state == MachineReport::State::up; }
    // Kept while it is down.
    MachineFacts facts() const;
    // nullptr until it first told them; kept while it is down.
    std::shared_ptr<const workflow::NodeClasses> classes() const { return known_.classes; }

    jobs::WorkerInfo info() const override;
    const std::string& id() const override { return config_.id; }
    bool available() const override;
    bool can_run(const Requirement& requirement) const override;
    // Smaller is to be preferred.
    double load() const;
    // Attempts whose prompt it has not finished, without one behind which another may come.
    std::size_t running() const override;
    std::string abilities() const override;
    std::shared_ptr<void> expect_attempt() override;
    Task<Result<jobs::AttemptResult>> run(
        jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
    ) override;
    bool merges() const override { return known_.merges; }
    bool warms() const override { return known_.warms && !is_engine(); }
    Task<Result<>> warm(std::string workflow, Millis patience) override;
    void stop_warming() override;
    std::shared_ptr<jobs::Batch> make_group(PromptId prompt, std::size_t members) override;
    Task<Result<std::string>> read_file(JobId job, jobs::WorkerFile file, std::uint64_t bytes_max)
        override;
    // The worker's own input folder holds the file; false also where it cannot be asked.
    Task<bool> has_input(std::string name);
    Task<Result<>> free_memory(bool models, bool results) override;

    // Its agent, where it has one.
    ModelHolder* models() override { return known_.fetches_models ? this : nullptr; }
    bool fetches_models() const { return known_.fetches_models; }
    std::optional<std::vector<std::string>> lacking(const Requirement& requirement) const override;
    bool is_open() const override;
    bool is_coming() const override;
    bool may_run(const Requirement& requirement) const override;
    std::uint64_t free_bytes() const override { return known_.disk_free_bytes; }
    std::optional<std::string> content_address(const std::string& sha256) const override;
    Task<Result<>> fetch_models(std::vector<json::object> wishes, std::function<void(Fetched)> told)
        override;

    // Whether judge() may know: it is up and has the node pack.
    bool can_judge() const;
    // What it would say to the prompt, which may hold asset references, without running it.
    // nullopt: it did not say.
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets
    );

private:
    // Where posts of the machine arrive; they may come after our end.
    struct Door {
        ComfyWorker* worker;
    };
    struct Taken {
        JobId job;
        bool has_left = false;  // the machine is done with the prompt; results are being fetched
        bool is_asked_back = false;
        std::weak_ptr<AttemptOrder> order{};
    };
    // Holds the place of an attempt from the call of run() to its end.
    class SlotLease {
    public:
        SlotLease(ComfyWorker& worker, const jobs::Assignment& assignment);
        ~SlotLease();
        SlotLease(SlotLease&& other) noexcept;
        SlotLease& operator=(SlotLease&&) = delete;

    private:
        ComfyWorker* worker_;
        PromptId prompt_;
    };

    const std::string& gpu_kind() const;
    std::uint64_t gpu_memory() const;
    std::uint64_t ram_total() const;
    ComfyMachineParts machine_parts();
    // A call that the machine can post, with what it says.
    template <class... Said>
    std::function<void(Said...)> door_to(void (ComfyWorker::*enter)(Said...));
    void take(MachineReport report);
    void left(const PromptId& prompt);
    // Prompts that it has not finished.
    std::size_t prompts() const;
    std::size_t groups() const;  // that are about to become one
    // It runs one prompt after the other and has a queue for those that are to come.
    bool queues() const;
    // Tells when it can take a prompt behind the one that runs, and takes back who waits too long.
    Task<> look_ahead();
    void note_ahead();
    void give_back(const Taken& taken);
    // Where it is ours to end, and does not do what it is told.
    void end_process();

    Task<Result<jobs::AttemptResult>> run_prompt(
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop,
        OwnerOf owner_of
    );
    Task<Result<jobs::AttemptResult>> refuse() const;
    Task<Result<jobs::AttemptResult>> run_leased(
        std::shared_ptr<AttemptOrder> order, jobs::StopRequest& stop, SlotLease lease
    );
    Task<Result<jobs::AttemptResult>> run_away(
        std::shared_ptr<AttemptOrder> order, jobs::StopRequest& stop
    );
    Task<> carry_out(
        std::shared_ptr<AttemptOrder> order,
        std::optional<Result<jobs::AttemptResult>>& result,
        Signal& done
    );
    void count(const Result<jobs::AttemptResult>& result);
    // It failed, and what it was asked to do was not at fault.
    void count_fault(const Error& error);

    WorkerConfig config_;
    ComfyWorkerParts parts_;
    std::shared_ptr<Door> door_;
    std::shared_ptr<ComfyMachine> machine_;  // shared with what runs on its executor

    MachineReport known_;
    bool draining_ = false;
    bool gives_back_ = false;
    int expected_ = 0;  // attempts
    std::map<PromptId, Taken> taken_;
    HandAhead ahead_;
    std::size_t told_running_ = 0;  // running(), as others were told last
    std::optional<Time> looks_at_;  // when look_ahead() looks by itself
    Signal ahead_changed_;
    TaskGroup watch_;
    std::vector<std::weak_ptr<ComfyBatch>> groups_;
    std::weak_ptr<WarmOrder> warming_;
    Time created_at_;
    Time last_active_at_;
    std::uint64_t completed_ = 0;
    std::uint64_t failed_ = 0;
    int failed_in_a_row_ = 0;
    CircuitBreaker breaker_;
};

}  // namespace comfyd::fleet
