#include "fleet/remarks.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::fleet {
namespace {

jobs::Remark must_remark(const comfy::Message& message) {
    auto remark = to_remark(message);
    return remark ? std::move(*remark) : jobs::Remark{};
}

}  // namespace

std::optional<jobs::Remark> to_remark(const comfy::Message& message) {
    if (const auto* preview = std::get_if<comfy::Preview>(&message)) {
        jobs::Remark remark;
        remark.type = "preview";
        remark.data = {
            {"node_id", preview->node_id},
            {"prompt_id", preview->prompt_id},
            {"display_node_id", preview->display_node_id},
            {"parent_node_id", preview->parent_node_id},
            {"real_node_id", preview->real_node_id},
        };
        remark.bytes = preview->bytes;
        remark.content_type = preview->content_type;
        return remark;
    }
    if (const auto* text = std::get_if<comfy::NodeText>(&message)) {
        jobs::Remark remark;
        remark.type = "text";
        remark.data = {{"node_id", text->node_id}};
        remark.bytes = text->text;
        return remark;
    }
    if (const auto* unknown = std::get_if<comfy::Unknown>(&message)) {
        // These two are our own names for binary frames.
        if (!unknown->data || unknown->type == "preview" || unknown->type == "text") {
            return std::nullopt;
        }
        return jobs::Remark{unknown->type, *unknown->data, {}, {}};
    }
    if (std::holds_alternative<comfy::Status>(message) ||
        std::holds_alternative<comfy::FeatureFlags>(message) ||
        std::holds_alternative<comfy::Malformed>(message)) {
        return std::nullopt;
    }
    json::object whole = comfy::to_json(message);
    jobs::Remark remark;
    remark.type = std::string(whole.at("type").as_string());
    remark.data = std::move(whole.at("data").as_object());
    return remark;
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

Narrator::Remarks Narrator::cached(const std::vector<std::string>& nodes) const {
    return {must_remark(comfy::ExecutionCached{prompt_id_, nodes, to_unix_ms(clock_->now())})};
}

Narrator::Remarks Narrator::executing(const std::string& node) {
    entry(node);
    Remarks remarks;
    remarks.push_back(must_remark(state()));
    remarks.push_back(must_remark(comfy::Executing{prompt_id_, node, node}));
    return remarks;
}

Narrator::Remarks Narrator::progress(const std::string& node, double value, double max) {
    auto& known = entry(node);
    known.value = value;
    known.max = max;
    Remarks remarks;
    remarks.push_back(must_remark(state()));
    remarks.push_back(must_remark(comfy::StepProgress{prompt_id_, node, value, max}));
    return remarks;
}

Narrator::Remarks Narrator::executed(const std::string& node, const json::object& ui) {
    const bool runs = std::any_of(nodes_.begin(), nodes_.end(), [&node](const auto& known) {
        return known.node_id == node && !known.finished;
    });
    Remarks remarks;
    remarks.push_back(must_remark(comfy::Executed{prompt_id_, node, node, ui}));
    if (!runs) {  // from the cache: it is told of as finished at once
        auto ended = finished(node);
        std::move(ended.begin(), ended.end(), std::back_inserter(remarks));
    }
    return remarks;
}

Narrator::Remarks Narrator::finished(const std::string& node) {
    auto& known = entry(node);
    known.value = known.max;
    known.finished = true;
    return {must_remark(state())};
}

Narrator::Remarks Narrator::interrupted(
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
    return {must_remark(told)};
}

Narrator::Remarks Narrator::preview(
    const std::string& node, std::string bytes, std::string content_type
) const {
    return {must_remark(
        comfy::Preview{std::move(bytes), std::move(content_type), prompt_id_, node, node, "", node}
    )};
}

Narrator::Remarks Narrator::text(const std::string& node, std::string text) const {
    return {must_remark(comfy::NodeText{node, std::move(text)})};
}

}  // namespace comfyd::fleet
