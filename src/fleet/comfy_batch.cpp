#include "fleet/comfy_batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"

namespace comfyd::fleet {
namespace {

constexpr Millis kLongWait = std::chrono::hours(1);

// The merged prompt itself may be what failed, or one of the members alone: that is only known when
// each has been tried alone.
bool may_be_one_members_fault(Code code) {
    return code == Code::conflict || code == Code::invalid_workflow ||
           code == Code::worker_rejected || code == Code::node_execution_error ||
           code == Code::out_of_memory || code == Code::execution_timeout ||
           code == Code::output_unavailable || code == Code::missing_asset;
}

Error stopped(Code why) {
    return {why, "the job was stopped while it ran together with others"};
}

}  // namespace

ComfyBatch::ComfyBatch(Parts parts, PromptId prompt, std::size_t members)
    : parts_(std::move(parts)),
      prompt_(prompt),
      members_(members),
      stop_(parts_.core),
      work_(parts_.core) {}

Task<Result<jobs::AttemptResult>> ComfyBatch::join(
    std::shared_ptr<ComfyBatch> self,
    jobs::Assignment assignment,
    jobs::AttemptListener& listener,
    jobs::StopRequest& stop
) {
    const std::size_t place = assignment.place;
    COMFYD_ASSERT(place < members_.size() && members_[place].presence == Presence::expected);
    Member& me = members_[place];
    me.presence = Presence::here;
    me.assignment = std::move(assignment);
    me.assignment.group.reset();  // it would keep the run alive for ever; `self` does for the call
    me.listener = &listener;
    me.stop = &stop;
    ++inside_;
    gather();
    std::optional<Result<jobs::AttemptResult>> outcome;
    bool abandoned = false;
    while (!outcome && !(phase_ == Phase::alone && turn_ == place)) {
        outcome = outcome_of(place, abandoned);
        if (!outcome) {
            co_await stop.requested.wait_for(kLongWait);
            abandoned = co_await is_cancelled();
        }
    }
    if (!outcome) {
        outcome = co_await run_alone(place);
    }
    go(me);
    pass_turn();
    if (--inside_ == 0) {
        while (work_.size() > 0) {
            co_await work_.join();
        }
    }
    co_return std::move(*outcome);
}

void ComfyBatch::leave(std::size_t place) {
    if (place < members_.size() && members_[place].presence == Presence::expected) {
        members_[place].presence = Presence::gone;
        gather();
    }
}

std::optional<Result<jobs::AttemptResult>> ComfyBatch::outcome_of(
    std::size_t place, bool abandoned
) {
    Member& me = members_[place];
    if (me.result) {
        return std::move(me.result);
    }
    const std::optional<Code> why = abandoned ? Code::shutting_down : me.stop->reason;
    if (!why) {
        return std::nullopt;
    }
    if (phase_ == Phase::running && count_here() == 1) {
        stop_.stop(*why);  // nobody else wants the run; its end is this member's
        if (!abandoned) {
            return std::nullopt;
        }
    }
    go(me);
    gather();
    return fail(stopped(*why));
}

Task<Result<jobs::AttemptResult>> ComfyBatch::run_alone(std::size_t place) {
    Member& me = members_[place];
    jobs::Assignment assignment = std::move(me.assignment);
    assignment.group.reset();
    auto result = co_await parts_.run(std::move(assignment), *me.listener, *me.stop, {});
    co_return result;
}

void ComfyBatch::gather() {
    const bool complete = std::ranges::none_of(members_, [](const Member& member) {
        return member.presence == Presence::expected;
    });
    if (phase_ != Phase::gathering || !complete) {
        return;
    }
    const std::size_t here = count_here();
    const bool is_found_again = std::ranges::any_of(members_, [](const Member& member) {
        return member.presence == Presence::here && member.assignment.reattach;
    });
    if (here >= 2 || (here == 1 && is_found_again)) {
        phase_ = Phase::running;
        work_.spawn("merged run", drive());
    } else {
        phase_ = Phase::alone;
        pass_turn();
    }
}

// In phase alone: the turn goes to the first that is still here.
void ComfyBatch::pass_turn() {
    if (phase_ != Phase::alone) {
        return;
    }
    const auto next = std::ranges::find(members_, Presence::here, &Member::presence);
    turn_ = static_cast<std::size_t>(next - members_.begin());
    wake_all();
}

void ComfyBatch::wake_all() {
    for (Member& member : members_) {
        if (member.presence == Presence::here) {
            member.stop->requested.notify();
        }
    }
}

std::size_t ComfyBatch::count_here() const {
    return static_cast<std::size_t>(std::ranges::count(members_, Presence::here, &Member::presence)
    );
}

Task<> ComfyBatch::drive() {
    auto outcome = co_await run_merged();
    const bool separate =
        !outcome && !stop_.reason && may_be_one_members_fault(outcome.error().code);
    if (separate) {
        log::info(
            "jobs run alone instead of together",
            {{"prompt", prompt_.to_string()},
             {"jobs", count_here()},
             {"why", log::foreign(outcome.error().message)}}
        );
        separated_ = true;
        phase_ = Phase::alone;
        pass_turn();
        co_return;
    }
    share_out(std::move(outcome));
    phase_ = Phase::ended;
    wake_all();
}

Task<Result<jobs::AttemptResult>> ComfyBatch::run_merged() {
    jobs::Assignment assignment = merged_assignment();
    if (!assignment.reattach) {
        auto prompt = co_await merge_workflows();
        if (!prompt) {
            co_return fail(std::move(prompt.error()));
        }
        assignment.workflow = std::move(*prompt);
    }
    log::debug("jobs run together", {{"prompt", prompt_.to_string()}, {"jobs", count_here()}});
    owners_ = make_owners();
    auto result = co_await parts_.run(
        std::move(assignment),
        *this,
        stop_,
        [owners = owners_](const std::string& node) { return owners->find(node); }
    );
    co_return result;
}

Task<Result<std::string>> ComfyBatch::merge_workflows() {
    std::vector<ToMerge> to_merge;
    for (std::size_t place = 0; place < members_.size(); ++place) {
        Member& member = members_[place];
        if (member.presence != Presence::here) {
            continue;
        }
        ToMerge own{place, member.assignment.workflow, {}};
        const json::value* info = json::find(member.assignment.extra_data, "extra_pnginfo");
        if (info != nullptr && info->is_object()) {
            own.extra_pnginfo = info->get_object();
        }
        to_merge.push_back(std::move(own));
    }
    auto done = co_await parts_.pool.run([to_merge = std::move(to_merge),
                                          classes = parts_.classes()]() mutable {
        return merge_prompts(std::move(to_merge), std::move(classes));
    });
    if (!done) {
        co_return fail(std::move(done.error()));
    }
    for (auto& [place, workflow] : done->workflows) {
        Member& member = members_[place];
        member.workflow = std::move(workflow);
        member.narrator.emplace(member.assignment.prompt.to_string(), parts_.clock);
    }
    merged_ = std::make_shared<const workflow::Merged>(std::move(done->merged));
    co_return std::move(done->prompt);
}

jobs::Assignment ComfyBatch::merged_assignment() const {
    const auto first = std::ranges::find(members_, Presence::here, &Member::presence);
    jobs::Assignment assignment;
    assignment.job = first->assignment.job;
    assignment.attempt = first->assignment.attempt;
    assignment.tenant = first->assignment.tenant;
    assignment.prompt = prompt_;
    for (const Member& member : members_) {
        if (member.presence == Presence::here) {
            assignment.timeout = std::max(assignment.timeout, member.assignment.timeout);
            assignment.reattach = assignment.reattach || member.assignment.reattach;
        }
    }
    return assignment;
}

std::vector<workflow::JobNode> ComfyBatch::origins_of(const std::string& node) const {
    return find_origins(merged_.get(), node);
}

std::shared_ptr<NodeOwners> ComfyBatch::make_owners() const {
    std::vector<NodeOwner> members;
    for (const Member& member : members_) {
        members.push_back({member.assignment.tenant, member.assignment.job});
    }
    auto owners = std::make_shared<NodeOwners>(merged_, std::move(members));
    for (std::size_t place = 0; place < members_.size(); ++place) {
        if (members_[place].presence != Presence::here) {
            owners->let_go(place);
        }
    }
    return owners;
}

void ComfyBatch::go(Member& member) {
    member.presence = Presence::gone;
    if (owners_) {
        owners_->let_go(static_cast<std::size_t>(&member - members_.data()));
    }
}

void ComfyBatch::share_out(Result<jobs::AttemptResult> outcome) {
    share_usage();
    std::vector<jobs::AttemptResult> parts(members_.size());
    if (outcome) {
        if (merged_ && usage_) {
            whole_ = Whole{static_cast<int>(merged_->samples.size()), *usage_};
        }
        for (jobs::Output& output : outcome->outputs) {
            for (const workflow::JobNode& origin : origins_of(output.node_id)) {
                jobs::Output own = output;
                own.node_id = origin.node_id;
                parts.at(origin.job).outputs.push_back(std::move(own));
                break;  // a file has one owner
            }
        }
        for (const auto& ui : outcome->ui_outputs) {
            for (const workflow::JobNode& origin : origins_of(ui.key())) {
                parts.at(origin.job).ui_outputs[origin.node_id] = ui.value();
            }
        }
    }
    for (std::size_t place = 0; place < members_.size(); ++place) {
        Member& member = members_[place];
        if (member.presence != Presence::here) {
            continue;
        }
        if (!outcome) {
            member.result = fail(outcome.error());
            continue;
        }
        if (member.narrator && member.listener->wants_worker_messages()) {
            for (const auto& ui : parts[place].ui_outputs) {
                const json::object* shown = ui.value().if_object();
                for (auto& said :
                     member.narrator->executed(ui.key(), shown ? *shown : json::object())) {
                    member.listener->on_worker_message(std::move(said));
                }
            }
        }
        member.result = std::move(parts[place]);
    }
}

void ComfyBatch::on_progress(const jobs::Progress& progress) {
    const auto origins = origins_of(progress.current_node);
    for (std::size_t place = 0; place < members_.size(); ++place) {
        Member& member = members_[place];
        if (member.presence != Presence::here) {
            continue;
        }
        const auto own = std::ranges::find(origins, place, &workflow::JobNode::job);
        jobs::Progress told = progress;
        told.nodes_total = member.workflow ? static_cast<int>(member.workflow->size()) : 0;
        told.nodes_done = static_cast<int>(progress.value * told.nodes_total);
        if (own != origins.end()) {
            told.current_node = own->node_id;
            narrate(member, own->node_id, progress);
        } else {
            told.current_node = member.told_node;  // a node that only joins or splits
            told.current_node_class.clear();
        }
        member.listener->on_progress(told);
    }
}

bool ComfyBatch::wants_progress() const {
    return std::ranges::any_of(members_, [](const Member& member) {
        return member.presence == Presence::here &&
               (member.listener->wants_progress() || member.listener->wants_worker_messages());
    });
}

void ComfyBatch::narrate(Member& member, const std::string& node, const jobs::Progress& progress) {
    std::vector<jobs::WorkerMessage> said;
    const auto say = [&said](std::vector<jobs::WorkerMessage> more) {
        std::move(more.begin(), more.end(), std::back_inserter(said));
    };
    if (!member.narrator || !member.listener->wants_worker_messages()) {
        member.told_node = node;
        return;
    }
    if (node != member.told_node) {
        if (!member.told_node.empty()) {
            say(member.narrator->finished(member.told_node));
        }
        say(member.narrator->executing(node));
    }
    if (progress.steps > 0) {
        say(member.narrator->progress(node, progress.step, progress.steps));
    }
    member.told_node = node;
    for (jobs::WorkerMessage& message : said) {
        member.listener->on_worker_message(std::move(message));
    }
}

// A worker shows only the first picture of a batch while it is made.
void ComfyBatch::on_preview(std::string bytes, std::string content_type) {
    const auto first = std::ranges::find_if(members_, [](const Member& member) {
        return member.workflow.has_value();
    });
    if (first != members_.end() && first->presence == Presence::here) {
        first->listener->on_preview(std::move(bytes), std::move(content_type));
    }
}

void ComfyBatch::on_output(const jobs::Output& output) {
    for (const workflow::JobNode& origin : origins_of(output.node_id)) {
        Member& member = members_.at(origin.job);
        if (member.presence == Presence::here) {
            jobs::Output own = output;
            own.node_id = origin.node_id;
            member.listener->on_output(own);
        }
        break;  // a file has one owner
    }
}

// Told when the run has ended and is not repeated job by job.
void ComfyBatch::on_usage(const jobs::Usage& usage) {
    usage_ = usage;
}

// Each pays for its part of the samples.
void ComfyBatch::share_usage() {
    if (!merged_ || !usage_) {
        return;
    }
    const double all = std::accumulate(merged_->samples.begin(), merged_->samples.end(), 0.0);
    std::size_t index = 0;  // of those that were merged, in the order of their places
    for (Member& member : members_) {
        if (!member.workflow) {
            continue;
        }
        const double part = all > 0 ? static_cast<double>(merged_->samples.at(index)) / all : 1;
        ++index;
        if (member.presence != Presence::here) {
            continue;
        }
        const auto share = [part](Millis whole) {
            return Millis(static_cast<Millis::rep>(static_cast<double>(whole.count()) * part));
        };
        jobs::Usage own = *usage_;
        own.gpu = share(usage_->gpu);
        own.model_load = share(usage_->model_load);
        own.inference = share(usage_->inference);
        own.images = static_cast<int>(usage_->images * part + 0.5);
        own.cost_usd = usage_->cost_usd * part;
        member.listener->on_usage(own);
    }
}

}  // namespace comfyd::fleet
