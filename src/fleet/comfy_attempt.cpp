#include "fleet/comfy_attempt.hpp"

#include <algorithm>
#include <utility>

#include "comfy/members.hpp"
#include "fleet/stopping.hpp"
#include "fleet/worker_messages.hpp"
#include "jobs/cause.hpp"
#include "jobs/give_back.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kLargeWorkflowBytes = 256 * 1024;
constexpr std::size_t kSentPicturesBytesMax = 256 * 1024 * 1024;
// Its pictures come as preview frames and are never files.
constexpr std::string_view kPictureSender = "SaveImageWebsocket";

}  // namespace

ComfyAttempt::ComfyAttempt(
    ComfyLink& link,
    jobs::Assignment assignment,
    jobs::AttemptListener& listener,
    jobs::StopRequest& stop,
    OwnerOf owner_of
)
    : link_(link),
      options_(link.options),
      assignment_(std::move(assignment)),
      prompt_id_(assignment_.prompt.to_string()),
      listener_(listener),
      stop_(stop),
      owner_of_(std::move(owner_of)),
      mandate_(current(options_.mandate)),
      wake_(link.executor),
      gone_(link.executor),
      sought_(assignment_.reattach),
      last_message_(Ticks::now()),
      last_look_(last_message_),
      silence_{last_message_, last_message_, 0},
      made_at_(last_message_) {}

// The work runs as a task of its own, so that a stop interrupts whatever it waits for.
Task<Result<jobs::AttemptResult>> ComfyAttempt::run() {
    TaskGroup work(link_.executor);
    work.spawn("attempt", execute());
    const std::optional<Code> why = co_await wait_for_end(result_, stop_, assignment_.timeout);
    if (why) {
        work.cancel();
    }
    // A join that is itself cancelled returns early; the task ends all the same.
    while (work.size() > 0) {
        co_await work.join();
    }
    if (!why && stop_.reason == Code::cancelled) {
        co_return fail(stop_error(Code::cancelled));
    }
    if (!why) {
        co_return std::move(*result_);
    }
    if (*why != Code::shutting_down && *why != Code::lead_lost) {
        co_await withdraw();
    }
    const bool is_late = *why == Code::execution_timeout || *why == Code::deadline_exceeded;
    if (is_late && !lead_lost_) {
        co_await keep_finished();
    }
    co_return fail(lead_lost_ ? *lead_lost_ : stop_error(*why));
}

Task<> ComfyAttempt::execute() {
    auto result = co_await attempt();
    result_ = std::move(result);
    stop_.requested.notify();
}

Task<Result<jobs::AttemptResult>> ComfyAttempt::attempt() {
    auto prompt = co_await parse_workflow();
    if (!prompt) {
        co_return fail(std::move(prompt.error()));
    }
    times_.emplace(link_.costs, *prompt, link_.gpu_type);
    tracker_.emplace(*prompt, times_->expected());
    meter_.emplace(*prompt, link_.shares_gpu);
    if (assignment_.reattach) {
        auto place = co_await find_again();
        if (!place) {
            co_return fail(std::move(place.error()));
        }
        sought_ = false;
        reattached_ = accepted_ = sent_ = *place != Place::absent;
    }
    if (!accepted_ && prompt->empty()) {
        co_return fail(Code::conflict, "the worker does not have the prompt any more");
    }
    if (!accepted_) {
        auto submitted = co_await submit(std::move(*prompt));
        if (!submitted && submitted.error().code == Code::worker_rejected &&
            !reused_uploads_.empty()) {
            // Somebody may have removed input files that we did not send again.
            for (const std::string& name : reused_uploads_) {
                link_.uploaded.erase(name);
            }
            reused_uploads_.clear();
            auto again = co_await parse_workflow();
            if (!again) {
                co_return fail(std::move(again.error()));
            }
            submitted = co_await submit(std::move(*again));
        }
        if (!submitted) {
            co_return fail(std::move(submitted.error()));
        }
    }
    auto followed = co_await follow();
    if (!followed) {
        if (jobs::cause_of(followed.error()) == jobs::Cause::hung) {
            co_await withdraw();
            co_await keep_finished();
        }
        co_return fail(std::move(followed.error()));
    }
    auto ending = read_ending();
    gpu_failed_ =
        gpu_failed_ || (!ending && jobs::cause_of(ending.error()) == jobs::Cause::cuda_fault);
    leave_worker();
    if (!ending) {
        co_await keep_finished();
        co_return fail(std::move(ending.error()));
    }
    auto collected = co_await collect();
    co_return collected;
}

std::optional<NodeOwner> ComfyAttempt::owner_of(const std::string& node) const {
    return owner_of_ ? owner_of_(node) : NodeOwner{assignment_.tenant, assignment_.job};
}

// Without a workflow: a prompt that the worker has already and that cannot be sent again.
Task<Result<json::object>> ComfyAttempt::parse_workflow() {
    Result<json::object> parsed;
    if (assignment_.reattach && assignment_.workflow.empty()) {
        parsed = json::object();
    } else if (assignment_.workflow.size() < kLargeWorkflowBytes) {
        parsed = json::parse_object(assignment_.workflow);
    } else {
        auto text = assignment_.workflow;
        parsed =
            co_await link_.pool.run([text = std::move(text)] { return json::parse_object(text); });
    }
    if (!parsed) {
        co_return fail(
            Code::invalid_workflow, "the stored workflow cannot be read: " + parsed.error().message
        );
    }
    co_return parsed;
}

void ComfyAttempt::on_message(const comfy::Message& message, Ticks::time_point came_at) {
    told_run_.hear(message);
    if (const auto* executed = std::get_if<comfy::Executed>(&message)) {
        note_made(*executed);
    }
    if (listener_.wants_worker_messages()) {
        tell(message);
    }
    measure(message, came_at);
    // A custom node may speak from a thread of its own, also while nothing runs.
    if (std::holds_alternative<comfy::Unknown>(message)) {
        return;
    }
    last_message_ = came_at;
    looks_in_silence_ = 0;
    silence_.since = last_message_;
    silence_.refusals = 0;
    seen_message_ = true;
    const auto* error = std::get_if<comfy::ExecutionError>(&message);
    gpu_failed_ =
        gpu_failed_ || (error != nullptr &&
                        jobs::cause_of_exception(error->exception_type, error->exception_message) ==
                            jobs::Cause::cuda_fault);
    if (const auto* executing = std::get_if<comfy::Executing>(&message);
        executing && !executing->node) {
        end_marked_ = true;
        leave_worker();
        wake_.notify();
        return;
    }
    const bool ends = std::holds_alternative<comfy::ExecutionSuccess>(message) ||
                      std::holds_alternative<comfy::ExecutionInterrupted>(message) ||
                      (error != nullptr && error->ends_prompt());
    if (ends) {
        if (std::holds_alternative<comfy::ExecutionSuccess>(message)) {
            time_node("");
        }
        ending_at_ = last_message_;
        wake_.notify();
        return;
    }
    if (!tracker_ || stop_.reason || entry_) {
        return;
    }
    if (const auto* preview = std::get_if<comfy::Preview>(&message)) {
        keep_picture(
            *preview,
            preview->node_id.empty() ? tracker_->snapshot().current_node : preview->node_id
        );
        listener_.on_preview(preview->bytes, preview->content_type);
    } else if (tracker_->apply(message)) {
        time_node(tracker_->snapshot().current_node);
        progress_untold_ = true;
        if (has_audience()) {
            tell_progress();
        }
    }
}

void ComfyAttempt::tell_progress() {
    if (std::exchange(progress_untold_, false) && !stop_.reason && !entry_) {
        listener_.on_progress(tracker_->snapshot());
    }
}

void ComfyAttempt::tell(const comfy::Message& message) {
    auto said = to_worker_message(message);
    if (!said) {
        return;
    }
    // The others name no files, and are many.
    if (std::holds_alternative<comfy::Executed>(message) ||
        std::holds_alternative<comfy::ExecutionError>(message) ||
        std::holds_alternative<comfy::Unknown>(message)) {
        workflow::hide_private_folders(said->data);
    }
    listener_.on_worker_message(std::move(*said));
}

void ComfyAttempt::note_made(const comfy::Executed& message) {
    if (made_.empty()) {
        told_over_ = link_.socket;
    }
    json::object outputs;
    outputs[message.node] = message.output;
    for (UiItem& item : list_results(outputs)) {
        if (!item.content && made_.size() < kOutputsMax) {
            made_.push_back(std::move(item));
        }
    }
}

std::optional<comfy::FileName> ComfyAttempt::find_made(
    const JobId& job, const jobs::WorkerFile& file
) const {
    for (const UiItem& item : made_) {
        const auto owner = owner_of(item.node_id);
        const comfy::FileName shown = shown_name(item.file);
        if (owner && owner->job == job && shown.filename == file.name &&
            shown.subfolder == file.subfolder && shown.type == file.folder) {
            return on_worker(item.file);
        }
    }
    return std::nullopt;
}

void ComfyAttempt::time_node(const std::string& node) {
    if (times_) {
        times_->at(node, std::chrono::duration<double>(last_message_.time_since_epoch()).count());
    }
}

double ComfyAttempt::seconds_at(Ticks::time_point then) const {
    return std::chrono::duration<double>(then - made_at_).count();
}

void ComfyAttempt::measure(const comfy::Message& message, Ticks::time_point came_at) {
    if (meter_) {
        meter_->apply(message, seconds_at(came_at));
        if (meter_->take_first_step()) {
            link_.look_at_machine();
        }
    }
}

void ComfyAttempt::on_machine(const comfy::SystemStats& stats) {
    if (meter_) {
        meter_->sample(stats);
    }
}

void ComfyAttempt::tell_usage(const Result<jobs::AttemptResult>& result) {
    if (!accepted_ || !meter_) {
        return;
    }
    if (link_.is_engine) {
        jobs::Usage usage;
        usage.inference = std::chrono::floor<Millis>(Ticks::now() - made_at_);
        usage.images = result ? count_images(result->outputs) : 0;
        listener_.on_usage(usage);
        return;
    }
    meter_->ended(seconds_now());
    if (entry_ && entry_->run_time) {
        // Its clock may have been set while it ran; ours has not.
        const auto longest =
            reattached_ ? jobs::kTimeoutMax : std::chrono::ceil<Millis>(Ticks::now() - made_at_);
        meter_->ran(std::min(*entry_->run_time, longest));
    }
    jobs::Usage usage = meter_->usage(link_.gpu_second_usd);
    usage.images = result ? count_images(result->outputs) : 0;
    listener_.on_usage(usage);
}

// A GPU that failed is nobody else's before its machine has seen to it, at the attempt's end.
void ComfyAttempt::leave_worker() {
    if (!left_worker_ && !gpu_failed_) {
        left_worker_ = true;
        if (meter_) {
            meter_->ended(seconds_now());
        }
        link_.prompt_left(assignment_.prompt);
    }
}

void ComfyAttempt::keep_picture(const comfy::Preview& preview, std::string node) {
    const bool fits = sent_pictures_bytes_ + preview.bytes.size() <= kSentPicturesBytesMax;
    if (!fits || preview.content_type != "image/png" ||
        tracker_->class_of(node) != kPictureSender) {
        return;
    }
    sent_pictures_bytes_ += preview.bytes.size();
    comfy::FileName name{node + "_" + std::to_string(sent_pictures_.size()) + ".png", "", "output"};
    sent_pictures_.push_back({std::move(node), std::move(name), preview.bytes});
}

void ComfyAttempt::on_socket_lost() {
    told_run_.miss();
    look_now_ = true;
    wake_.notify();
}

Error ComfyAttempt::stop_error(Code why) const {
    switch (why) {
        case Code::execution_timeout: {
            const std::string within =
                "the run did not end within " +
                std::to_string(std::chrono::ceil<std::chrono::seconds>(assignment_.timeout).count()
                ) +
                " s";
            if (blockage_ && !link_.is_engine) {
                json::object details;
                details[jobs::kCauseKey] = to_string(jobs::Cause::hung);
                return {why, within + " and cannot be stopped", std::move(details)};
            }
            return {why, within + " and was stopped"};
        }
        case Code::deadline_exceeded:
            return {why, "the job's deadline passed while it ran"};
        case Code::worker_unavailable:
            return {
                why,
                "the worker leaves the fleet or is held up by another run; the job is given back",
                {{std::string(jobs::kGivenBack), true}}
            };
        case Code::shutting_down:
            return {why, "comfyd shuts down; the prompt stays on the worker"};
        case Code::lead_lost:
            return {why, "this node does not lead any more; the prompt stays on the worker"};
        default:
            return {why, "the job was cancelled while it ran"};
    }
}

}  // namespace comfyd::fleet
