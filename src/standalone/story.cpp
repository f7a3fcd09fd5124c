#include "standalone/story.hpp"

#include <algorithm>
#include <utility>

#include "comfy/members.hpp"
#include "engine/values/weight.hpp"

namespace comfyd::standalone {
namespace {

// What the failures that are no node's own would be called there.
std::string exception_type_of(Code code) {
    switch (code) {
        case Code::out_of_memory:
            return "MemoryError";
        case Code::storage_full:
        case Code::storage_unavailable:
            return "OSError";
        default:
            return "RuntimeError";
    }
}

// What was made of a prompt may take much more than the prompt.
std::uint64_t bytes_of(const HistoryEntry& entry) {
    std::uint64_t bytes = entry.prompt->bytes;
    for (const auto& [node, ui] : entry.outputs) {
        bytes += node.size() + (ui.is_object() ? engine::weight_of(ui.get_object()) : 0);
    }
    // An error stands in the messages too.
    return bytes + (entry.error.empty() ? 0 : 2 * json::serialize(entry.error).size());
}

}  // namespace

Story::Story(Hub& hub, const Clock& clock, PromptPtr prompt)
    : hub_(hub),
      clock_(clock),
      prompt_(std::move(prompt)),
      has_client_(!prompt_->client_id.empty()) {}

void Story::say(To to, const comfy::Message& message) {
    if (has_client_ || to == To::owner_or_all) {
        if (hub_.listens(prompt_->client_id)) {
            hub_.send(prompt_->client_id, comfy::server::make_frame(message));
        }
    }
}

void Story::record(const comfy::Message& message, To to) {
    json::object encoded = comfy::to_json(message);
    messages_.push_back(json::array{encoded.at("type"), encoded.at("data")});
    say(to, message);
}

void Story::start() {
    started_ = clock_.now();
    record(comfy::ExecutionStart{prompt_->id, to_unix_ms(started_)});
}

void Story::cached(std::vector<std::string> nodes) {
    record(comfy::ExecutionCached{prompt_->id, std::move(nodes), to_unix_ms(clock_.now())});
}

comfy::NodeProgress& Story::progress_of(const std::string& node) {
    const auto [place, is_new] = places_.try_emplace(node, nodes_.size());
    if (is_new) {
        NodeOrigin origin = origin_of(node);
        comfy::NodeProgress progress;
        progress.node_id = node;
        progress.max = 1;
        progress.display_node_id = origin.root;
        progress.parent_node_id = std::move(origin.parent);
        progress.real_node_id = std::move(origin.root);
        nodes_.push_back(std::move(progress));
    }
    touch(node);
    return nodes_[place->second];
}

void Story::touch(const std::string& node) {
    if (!touched_.empty() && touched_.back() == node) {
        return;
    }
    std::erase(touched_, node);
    touched_.push_back(node);
    if (touched_.size() > kNodesToldOfMany) {
        touched_.erase(touched_.begin());
    }
}

void Story::say_progress() {
    if (!hub_.listens(prompt_->client_id) || hub_.is_behind(prompt_->client_id)) {
        return;
    }
    comfy::ProgressState state{prompt_->id, {}};
    if (nodes_.size() <= kNodesMany) {
        state.nodes = nodes_;
    } else {
        for (const std::string& node : touched_) {
            state.nodes.push_back(nodes_[places_.at(node)]);
        }
    }
    say(To::owner_or_all, state);
}

void Story::executing(const std::string& node) {
    current_node_ = node;
    progress_of(node);
    say_progress();
    say(To::owner, comfy::Executing{prompt_->id, node, origin_of(node).root});
}

void Story::progress(const std::string& node, double value, double max) {
    comfy::NodeProgress& progress = progress_of(node);
    progress.value = value;
    progress.max = max;
    say_progress();
    say(To::owner_or_all, comfy::StepProgress{prompt_->id, node, value, max});
}

void Story::preview(const std::string& node, engine::ImageFormat format, std::string bytes) {
    NodeOrigin origin = origin_of(node);
    comfy::Preview preview;
    preview.bytes = std::move(bytes);
    preview.content_type = format == engine::ImageFormat::png ? "image/png" : "image/jpeg";
    preview.prompt_id = prompt_->id;
    preview.node_id = node;
    preview.display_node_id = origin.root;
    preview.parent_node_id = std::move(origin.parent);
    preview.real_node_id = std::move(origin.root);
    hub_.send(prompt_->client_id, comfy::server::make_frame(std::move(preview)));
}

void Story::text(const std::string& node, std::string text) {
    hub_.broadcast(comfy::server::make_frame(comfy::NodeText{node, std::move(text)}));
}

// Told at once and not kept in the history, as ComfyUI does it.
void Story::blocked(const std::string& node, const std::string& message) {
    comfy::ExecutionError error;
    error.prompt_id = prompt_->id;
    error.node_id = node;
    error.node_type = type_of(origin_of(node).root);
    error.executed = executed_;
    error.exception_message = "Execution Blocked: " + message;
    error.exception_type = "ExecutionBlocked";
    error.current_inputs = json::array();
    error.current_outputs = json::array();
    say(To::owner_or_all, error);
}

void Story::added(const std::string& node, const std::string& parent) {
    origins_[node] = {parent, origin_of(parent).root};
}

NodeOrigin Story::origin_of(const std::string& node) const {
    const auto found = origins_.find(node);
    return found == origins_.end() ? NodeOrigin{{}, node} : found->second;
}

void Story::finished(const std::string& node) {
    comfy::NodeProgress& progress = progress_of(node);
    progress.value = progress.max;
    progress.finished = true;
    executed_.push_back(node);
    say_progress();
}

void Story::executed(const std::string& node, const json::object& ui) {
    comfy::Executed message{prompt_->id, node, origin_of(node).root, ui};
    if (ui.empty()) {
        message.output = nullptr;
    } else {
        outputs_[node] = ui;
    }
    say(To::owner, message);
    // A node whose result was there already is told of as finished with it.
    if (current_node_ != node || !places_.contains(node)) {
        comfy::NodeProgress& progress = progress_of(node);
        if (!progress.finished) {
            progress.value = progress.max;
            progress.finished = true;
            say_progress();
        }
    }
}

std::string Story::type_of(const std::string& node) const {
    const json::object* fields = comfy::object_of(prompt_->graph, node);
    return fields == nullptr ? std::string() : comfy::text_of(*fields, "class_type");
}

comfy::ExecutionError Story::describe(const Error& error) const {
    comfy::ExecutionError message;
    message.prompt_id = prompt_->id;
    message.node_id =
        comfy::maybe_text(error.details, "node_id").value_or(origin_of(current_node_).root);
    message.node_type = type_of(message.node_id);
    message.exception_type =
        comfy::maybe_text(error.details, "exception_type").value_or(exception_type_of(error.code));
    message.exception_message =
        comfy::maybe_text(error.details, "exception_message").value_or(error.message + "\n");
    message.traceback = comfy::texts_of(error.details, "traceback");
    message.executed = executed_;
    const json::value* inputs = json::find(error.details, "current_inputs");
    message.current_inputs = inputs == nullptr ? json::value(json::object()) : *inputs;
    // All nodes that could have a result, as ComfyUI says it.
    json::array all;
    for (const auto& [id, node] : prompt_->graph) {
        all.emplace_back(id);
    }
    message.current_outputs = std::move(all);
    message.timestamp = to_unix_ms(clock_.now());
    return message;
}

HistoryEntryPtr Story::conclude(Result<engine::RunResult> result) {
    auto entry = std::make_shared<HistoryEntry>();
    if (result) {
        entry->outputs = std::move(result->outputs);
        record(comfy::ExecutionSuccess{prompt_->id, to_unix_ms(clock_.now())});
    } else if (result.error().code == Code::cancelled) {
        entry->status = comfy::JobStatus::cancelled;
        entry->outputs = std::move(outputs_);
        record(
            comfy::ExecutionInterrupted{
                prompt_->id,
                origin_of(current_node_).root,
                type_of(origin_of(current_node_).root),
                executed_,
                to_unix_ms(clock_.now())
            },
            To::owner_or_all
        );
    } else {
        entry->status = comfy::JobStatus::failed;
        entry->outputs = std::move(outputs_);
        const comfy::ExecutionError error = describe(result.error());
        entry->error = error.to_json();
        record(error);
    }
    entry->prompt = prompt_;
    entry->origins = std::move(origins_);
    entry->messages = std::move(messages_);
    entry->started = started_;
    entry->ended = clock_.now();
    entry->bytes = bytes_of(*entry);
    return entry;
}

void Story::end() {
    say(To::owner, comfy::Executing{prompt_->id, std::nullopt, {}});
}

}  // namespace comfyd::standalone
