// Several jobs that share one run on a ComfyUI worker: waits until all of them are here, has their
// workflows merged and run as one prompt, and gives each its own progress, outputs and end.
//
// Each member joins with a coroutine of its own, is stopped on its own (the others go on; when the
// last one is stopped, the run is) and gets a result of its own. Where the workflows cannot be
// merged after all, or the merged run fails for a reason that may lie with one of them, the members
// run alone, one after the other. Shared by its members; core executor only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "fleet/comfy_attempt.hpp"
#include "fleet/merged_prompt.hpp"
#include "fleet/worker_messages.hpp"
#include "jobs/fleet.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/merge/merge.hpp"

namespace comfyd::fleet {

class ComfyBatch final : public jobs::Batch, private jobs::AttemptListener {
public:
    // Runs one prompt on the worker to its end. `owner_of` is empty for a job that runs alone.
    using Run = std::function<Task<Result<jobs::AttemptResult>>(
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop,
        OwnerOf owner_of
    )>;
    struct Parts {
        Executor core;
        const Clock& clock;
        Pool& pool;
        std::function<std::shared_ptr<const workflow::NodeClasses>()> classes;
        Run run;
    };
    ComfyBatch(Parts parts, PromptId prompt, std::size_t members);

    // REQUIRES: the assignment names a place of this group that is still expected. `self` keeps the
    // run alive for the length of the call.
    Task<Result<jobs::AttemptResult>> join(
        std::shared_ptr<ComfyBatch> self,
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop
    );
    void leave(std::size_t place) override;
    bool runs_alone() const override { return separated_; }
    std::optional<Whole> take_whole() override { return std::exchange(whole_, std::nullopt); }
    // It waits for its members, or they run alone: the worker is taken, also between its prompts.
    bool holds_worker() const {
        return phase_ == Phase::gathering || (phase_ == Phase::alone && count_here() > 0);
    }

private:
    enum class Phase { gathering, running, alone, ended };
    enum class Presence { expected, here, gone };
    struct Member {
        Presence presence = Presence::expected;
        jobs::Assignment assignment;
        jobs::AttemptListener* listener = nullptr;
        jobs::StopRequest* stop = nullptr;
        std::optional<Result<jobs::AttemptResult>> result;
        std::optional<json::object> workflow;
        std::optional<Narrator> narrator;
        std::string told_node;  // the last that its followers heard of
    };

    // What became of a member that waits; nullopt: it waits on.
    std::optional<Result<jobs::AttemptResult>> outcome_of(std::size_t place, bool abandoned);
    Task<Result<jobs::AttemptResult>> run_alone(std::size_t place);
    void gather();
    void pass_turn();
    void wake_all();
    std::size_t count_here() const;

    Task<> drive();
    Task<Result<jobs::AttemptResult>> run_merged();
    // Returns the text of the prompt.
    Task<Result<std::string>> merge_workflows();
    jobs::Assignment merged_assignment() const;
    void share_out(Result<jobs::AttemptResult> outcome);
    void share_usage();
    // The member that a node of the prompt belongs to, and what the member calls the node.
    std::vector<workflow::JobNode> origins_of(const std::string& node) const;
    std::shared_ptr<NodeOwners> make_owners() const;
    void go(Member& member);

    void on_progress(const jobs::Progress& progress) override;
    bool wants_progress() const override;
    void on_preview(std::string bytes, std::string content_type) override;
    void on_output(const jobs::Output& output) override;
    void on_usage(const jobs::Usage& usage) override;
    void narrate(Member& member, const std::string& node, const jobs::Progress& progress);

    Parts parts_;
    const PromptId prompt_;
    std::vector<Member> members_;  // by place
    Phase phase_ = Phase::gathering;
    bool separated_ = false;  // the merged run failed, or there was none
    std::size_t turn_ = 0;    // phase alone: whose it is
    std::size_t inside_ = 0;  // calls of join() that have not returned
    std::shared_ptr<const workflow::Merged> merged_;
    std::shared_ptr<NodeOwners> owners_;  // once it runs
    std::optional<jobs::Usage> usage_;
    std::optional<Whole> whole_;
    jobs::StopRequest stop_;
    TaskGroup work_;
};

}  // namespace comfyd::fleet
