#include "fleet/worker_messages.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::fleet {
namespace {

jobs::WorkerMessage must_become_message(const comfy::Message& message) {
    auto said = to_worker_message(message);
    return said ? std::move(*said) : jobs::WorkerMessage{};
}

}  // namespace

std::optional<jobs::WorkerMessage> to_worker_message(const comfy::Message& message) {
    if (const auto* preview = std::get_if<comfy::Preview>(&message)) {
        jobs::WorkerMessage said;
        said.type = "preview";
        said.data = {
            {"node_id", preview->node_id},
            {"prompt_id", preview->prompt_id},
            {"display_node_id", preview->display_node_id},
            {"parent_node_id", preview->parent_node_id},
            {"real_node_id", preview->real_node_id},
        };
        said.bytes = preview->bytes;
        said.content_type = preview->content_type;
        return said;
    }
    if (const auto* text = std::get_if<comfy::NodeText>(&message)) {
        jobs::WorkerMessage said;
        said.type = "text";
        said.data = {{"node_id", text->node_id}};
        said.bytes = text->text;
        return said;
    }
    if (const auto* unknown = std::get_if<comfy::Unknown>(&message)) {
        // These two are our own names for binary frames.
        if (!unknown->data || unknown->type == "preview" || unknown->type == "text") {
            return std::nullopt;
        }
        return jobs::WorkerMessage{unknown->type, *unknown->data, {}, {}};
    }
    if (std::holds_alternative<comfy::Status>(message) ||
        std::holds_alternative<comfy::FeatureFlags>(message) ||
        std::holds_alternative<comfy::Malformed>(message)) {
        return std::nullopt;
    }
    json::object whole = comfy::to_json(message);
    jobs::WorkerMessage said;
    said.type = std::string(whole.at("type").as_string());
    said.data = std::move(whole.at("data").as_object());
    return said;
}

comfy::NodeProgress& Narrator::entry(const std::string& node) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&node](const auto& known) {
        return known.node_id == node;
    });
    if (found != nodes_.end()) {
        return *found;
    }
    return nodes_.emplace_back(comfy::NodeProgress{node, 0, 1, false, node, "", node});
}

comfy::Message Narrator::state() const {
    return comfy::ProgressState{prompt_id_, nodes_};
}

Narrator::Messages Narrator::cached(const std::vector<std::string>& nodes) const {
    return {must_become_message(comfy::ExecutionCached{prompt_id_, nodes, to_unix_ms(clock_->now())}
    )};
}

Narrator::Messages Narrator::executing(const std::string& node) {
    entry(node);
    Messages said;
    said.push_back(must_become_message(state()));
    said.push_back(must_become_message(comfy::Executing{prompt_id_, node, node}));
    return said;
}

Narrator::Messages Narrator::progress(const std::string& node, double value, double max) {
    auto& known = entry(node);
    known.value = value;
    known.max = max;
    Messages said;
    said.push_back(must_become_message(state()));
    said.push_back(must_become_message(comfy::StepProgress{prompt_id_, node, value, max}));
    return said;
}

Narrator::Messages Narrator::executed(const std::string& node, const json::object& ui) {
    const bool runs = std::any_of(nodes_.begin(), nodes_.end(), [&node](const auto& known) {
        return known.node_id == node && !known.finished;
    });
    Messages said;
    said.push_back(must_become_message(comfy::Executed{prompt_id_, node, node, ui}));
    if (!runs) {  // from the cache: it is told of as finished at once
        auto ended = finished(node);
        std::move(ended.begin(), ended.end(), std::back_inserter(said));
    }
    return said;
}

Narrator::Messages Narrator::finished(const std::string& node) {
    auto& known = entry(node);
    known.value = known.max;
    known.finished = true;
    return {must_become_message(state())};
}

Narrator::Messages Narrator::interrupted(
    const std::function<std::string(const std::string&)>& class_of
) const {
    comfy::ExecutionInterrupted told;
    told.prompt_id = prompt_id_;
    told.timestamp = to_unix_ms(clock_->now());
    for (const comfy::NodeProgress& node : nodes_) {
        if (node.finished) {
            told.executed.push_back(node.node_id);
        } else {
            told.node_id = node.node_id;
            told.node_type = class_of(node.node_id);
        }
    }
    return {must_become_message(told)};
}

Narrator::Messages Narrator::preview(
    const std::string& node, std::string bytes, std::string content_type
) const {
    return {must_become_message(
        comfy::Preview{std::move(bytes), std::move(content_type), prompt_id_, node, node, "", node}
    )};
}

Narrator::Messages Narrator::text(const std::string& node, std::string text) const {
    return {must_become_message(comfy::NodeText{node, std::move(text)})};
}

}  // namespace comfyd::fleet
