// One machine as one process drives it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/fleet.hpp"
#include "jobs/model_holder.hpp"
#include "simulation/machines.hpp"

namespace comfyd::simulation {

// Jobs that share a prompt: it begins when each has come or has left.
class Group final : public jobs::Batch {
public:
    Group(Fleet& fleet, std::string shared_prompt, std::size_t members, bool stays_apart)
        : prompt_id(std::move(shared_prompt)),
          is_apart(stays_apart),
          fleet_(fleet),
          missing_(members) {}

    void leave(std::size_t place) override;
    bool runs_alone() const override { return is_apart; }
    std::optional<Whole> take_whole() override;

    void join(const JobId& job, std::size_t place);
    bool is_complete() const { return missing_ == 0; }

    const std::string prompt_id;
    const bool is_apart;
    std::set<JobId> jobs;

private:
    void take_place(std::size_t place);

    Fleet& fleet_;
    std::set<std::size_t> seen_;
    std::size_t missing_;
    bool is_taken_ = false;
};

class Worker final : public jobs::Worker, public jobs::ModelHolder {
public:
    Worker(Machines& machines, Machine& machine, Fleet& fleet, Executor core)
        : machines_(machines), machine_(machine), fleet_(fleet), core_(core) {}

    jobs::WorkerInfo info() const override;
    const std::string& id() const override { return machine_.id; }
    bool available() const override;
    bool can_run(const Requirement& requirement) const override;
    std::size_t running() const override;
    std::string abilities() const override;
    Task<Result<jobs::AttemptResult>> run(
        jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
    ) override;
    bool merges() const override { return machine_.merges; }
    std::shared_ptr<jobs::Batch> make_group(PromptId prompt, std::size_t members) override;

    ModelHolder* models() override { return machine_.has_agent ? this : nullptr; }
    std::optional<std::vector<std::string>> lacking(const Requirement& requirement) const override;
    bool is_open() const override;
    std::uint64_t free_bytes() const override { return 0; }
    std::optional<std::string> content_address(const std::string& sha256) const override;
    // Takes its time, and fails in every way there is.
    Task<Result<>> fetch_models(std::vector<json::object> wishes, std::function<void(Fetched)> told)
        override;

    bool warms() const override { return true; }
    // Likewise.
    Task<Result<>> warm(std::string workflow, Millis patience) override;
    void stop_warming() override { is_called_back_ = true; }

    Machine& machine() const { return machine_; }
    // Nothing is here, and the machine runs nothing that will be asked for again.
    bool is_done() const;
    // There is another one of its machine.
    void retire() { is_retired_ = true; }
    // Something may have changed for the runs here.
    void look_again();

private:
    struct Run {
        jobs::Assignment assignment;
        jobs::AttemptListener& listener;
        jobs::StopRequest& stop;
        std::shared_ptr<Group> group{};
        bool holds_place = true;
        bool is_sent = false;
        Time began{};
        std::optional<Time> lost_at{};
    };

    static std::string prompt_of(const Run& run);
    // What is not so, at the very beginning.
    std::optional<Code> lie();
    // How it ended; nullopt: it goes on, for at most so long.
    std::optional<Ending> look(Run& run, Millis& pause);
    Task<Ending> follow(Run& run);
    // An output that it has made, and the process knows of.
    jobs::Output make_output(Run& run);
    void drop(Run& run);

    Machines& machines_;
    Machine& machine_;
    Fleet& fleet_;
    Executor core_;
    std::vector<Run*> runs_;
    bool is_retired_ = false;
    bool is_called_back_ = false;
};

}  // namespace comfyd::simulation
