#include "engine/validate.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/python_text.hpp"
#include "engine/validate_input.hpp"

namespace comfyd::engine {
namespace {

// What would be a Python exception in ComfyUI's own validation.
struct Raised {
    std::string type;
    std::string text;
};

std::string_view as_view(const boost::json::string& text) {
    return {text.data(), text.size()};
}
std::string_view as_view(boost::json::string_view text) {
    return {text.data(), text.size()};
}

std::set<std::string_view> split_types(std::string_view types) {
    std::set<std::string_view> parts;
    while (true) {
        const std::size_t comma = types.find(',');
        std::string_view part = types.substr(0, comma);
        while (part.starts_with(' ')) {
            part.remove_prefix(1);
        }
        parts.insert(part);
        if (comma == types.npos) {
            return parts;
        }
        types.remove_prefix(comma + 1);
    }
}

bool types_meet(std::string_view received, std::string_view wanted) {
    if (received == wanted || received == "*" || wanted == "*") {
        return true;
    }
    const std::set<std::string_view> options = split_types(wanted);
    return std::ranges::any_of(split_types(received), [&](std::string_view type) {
        return options.contains(type);
    });
}

class Validator {
public:
    Validator(json::object& prompt, const Registry& registry, const Folders& folders)
        : prompt_(prompt), registry_(registry), folders_(folders) {}

    Validation run();

private:
    struct Judged {
        bool valid = true;
        json::array errors;
    };
    struct Source {
        std::string id;
        std::string type;  // of the linked slot
    };

    std::optional<json::object> check_classes(std::vector<std::string>& outputs) const;
    std::optional<json::object> check_class(std::string_view id, const json::value& entry) const;
    void judge_output(const std::string& id, Validation& into, std::string& details);

    tl::expected<bool, Raised> judge(const std::string& id, std::size_t depth);
    tl::expected<bool, Raised> judge_inputs(
        const NodeClass& node, json::object& inputs, std::size_t depth
    );
    void record_cycle(const std::string& id);
    Judged& settle(const std::string& id, Judged judged);

    std::optional<Raised> judge_link(
        const InputSubject& subject, Judged& judged, std::size_t depth
    );
    tl::expected<Source, Raised> find_source(const json::array& link) const;
    void judge_source(
        const InputSubject& subject, const std::string& id, Judged& judged, std::size_t depth
    );
    std::optional<Raised> check_by_node(
        const NodeClass& node, json::object& inputs, Judged& judged
    );

    std::unordered_set<std::string> ancestors(const std::string& id) const;

    json::object& prompt_;
    const Registry& registry_;
    const Folders& folders_;
    std::vector<std::string> order_;  // of judged_, as found
    std::unordered_map<std::string, Judged> judged_;
    std::vector<std::string> path_;  // from the output down to the node being judged
};

Validation Validator::run() {
    Validation result;
    if (prompt_.size() > kNodesMax) {
        result.error = make_error(
            "invalid_prompt",
            "Prompt has too many nodes",
            std::to_string(prompt_.size()) + " nodes, at most " + std::to_string(kNodesMax),
            {}
        );
        return result;
    }
    std::vector<std::string> outputs;
    if (auto error = check_classes(outputs)) {
        result.error = std::move(*error);
        return result;
    }
    if (outputs.empty()) {
        result.error = make_error("prompt_no_outputs", "Prompt has no outputs", "", {});
        return result;
    }
    std::string details;
    for (const std::string& output : outputs) {
        judge_output(output, result, details);
    }
    result.ok = !result.outputs_to_execute.empty();
    if (!result.ok) {
        result.error = make_error(
            "prompt_outputs_failed_validation", "Prompt outputs failed validation", details, {}
        );
    }
    return result;
}

std::optional<json::object> Validator::check_classes(std::vector<std::string>& outputs) const {
    for (const auto& [key, entry] : prompt_) {
        const std::string_view id = as_view(key);
        if (auto error = check_class(id, entry)) {
            return error;
        }
        const auto& class_type = entry.get_object().at("class_type").get_string();
        if (registry_.find(as_view(class_type))->output_node) {
            outputs.emplace_back(id);
        }
    }
    return std::nullopt;
}

std::optional<json::object> Validator::check_class(std::string_view id, const json::value& entry)
    const {
    const std::string where = "Node ID '#" + std::string(id) + "'";
    if (!entry.is_object()) {
        return make_error(
            "invalid_prompt",
            "Node '" + std::string(id) +
                "' is not an object. A prompt maps node ids to {class_type, inputs}; export the "
                "workflow in API format.",
            where,
            {}
        );
    }
    const json::object& node = entry.get_object();
    const json::value* class_type = node.if_contains("class_type");
    if (class_type != nullptr && class_type->is_string() &&
        registry_.find(as_view(class_type->get_string())) != nullptr) {
        return std::nullopt;
    }
    json::value title;
    if (const json::value* meta = json::find(node, "_meta"); meta != nullptr && meta->is_object()) {
        const json::value* found = json::find(meta->get_object(), "title");
        title = found != nullptr ? *found : json::value();
    }
    json::object extra;
    extra["node_id"] = id;
    extra["class_type"] = class_type != nullptr ? *class_type : json::value();
    std::string message;
    if (class_type == nullptr) {
        message = "Node '" + (title.is_null() ? "ID #" + std::string(id) : python_str(title)) +
                  "' has no class_type. The workflow may be corrupted or a custom node is missing.";
    } else {
        title = title.is_null() ? *class_type : title;
        message =
            "Node '" + python_str(title) + "' not found. The custom node may not be installed.";
    }
    extra["node_title"] = std::move(title);
    return make_error("missing_node_type", message, where, std::move(extra));
}

void Validator::judge_output(const std::string& id, Validation& into, std::string& details) {
    const auto valid = judge(id, 0);
    if (!valid) {
        path_.clear();
        json::object extra;
        extra["exception_type"] = valid.error().type;
        extra["traceback"] = json::array();
        Judged judged{.valid = false, .errors = {}};
        judged.errors.emplace_back(make_error(
            "exception_during_validation",
            "Exception when validating node",
            valid.error().text,
            std::move(extra)
        ));
        settle(id, std::move(judged));
    } else if (*valid) {
        into.outputs_to_execute.push_back(id);
        return;
    }
    for (const json::value& error : judged_.at(id).errors) {
        details += details.empty() ? "" : "\n";
        details += as_view(error.at("message").get_string());
        details += ": ";
        details += as_view(error.at("details").get_string());
    }
    const std::unordered_set<std::string> concerned = ancestors(id);
    for (const std::string& node_id : order_) {
        const Judged& judged = judged_.at(node_id);
        if (judged.valid || judged.errors.empty() || !concerned.contains(node_id)) {
            continue;
        }
        json::value& entry = into.node_errors[node_id];
        if (entry.is_null()) {
            json::object fresh;
            fresh["errors"] = judged.errors;
            fresh["dependent_outputs"] = json::array();
            fresh["class_type"] = prompt_.at(node_id).at("class_type");
            entry = std::move(fresh);
        }
        entry.at("dependent_outputs").as_array().emplace_back(id);
    }
}

std::unordered_set<std::string> Validator::ancestors(const std::string& id) const {
    std::unordered_set<std::string> found{id};
    std::vector<std::string> pending{id};
    while (!pending.empty()) {
        const std::string current = std::move(pending.back());
        pending.pop_back();
        const json::value* inputs = json::find(prompt_.at(current).get_object(), "inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (const auto& [name, value] : inputs->get_object()) {
            const json::array* link = value.if_array();
            if (link == nullptr || link->size() != 2 || !link->front().is_string()) {
                continue;
            }
            std::string source(as_view(link->front().get_string()));
            if (prompt_.contains(source) && found.insert(source).second) {
                pending.push_back(std::move(source));
            }
        }
    }
    return found;
}

Validator::Judged& Validator::settle(const std::string& id, Judged judged) {
    const auto [at, added] = judged_.insert_or_assign(id, std::move(judged));
    if (added) {
        order_.push_back(id);
    }
    return at->second;
}

tl::expected<bool, Raised> Validator::judge(const std::string& id, std::size_t depth) {
    if (const auto known = judged_.find(id); known != judged_.end()) {
        return known->second.valid;
    }
    if (std::ranges::find(path_, id) != path_.end()) {
        record_cycle(id);
        return false;
    }
    if (depth > kChainMax) {
        return tl::unexpected(Raised{"RecursionError", "maximum recursion depth exceeded"});
    }
    json::object& entry = prompt_.at(id).as_object();
    json::value* inputs = entry.if_contains("inputs");
    if (inputs == nullptr) {
        return tl::unexpected(Raised{"KeyError", "'inputs'"});
    }
    if (!inputs->is_object()) {
        return tl::unexpected(Raised{
            "TypeError",
            "the inputs of a node must be an object, not '" + std::string(python_type(*inputs)) +
                "'"
        });
    }
    path_.push_back(id);
    const NodeClass& node = *registry_.find(as_view(entry.at("class_type").get_string()));
    auto valid = judge_inputs(node, inputs->get_object(), depth);
    if (valid) {
        path_.pop_back();
    }
    return valid;
}

// path_.back() is the node whose inputs these are.
tl::expected<bool, Raised> Validator::judge_inputs(
    const NodeClass& node, json::object& inputs, std::size_t depth
) {
    const std::string id = path_.back();
    Judged judged;
    for (const Input& input : node.inputs) {
        json::value* value = inputs.if_contains(input.name);
        if (value == nullptr) {
            if (input.need == Need::required) {
                judged.errors.emplace_back(make_error(
                    "required_input_missing",
                    "Required input is missing",
                    input.name,
                    {{"input_name", input.name}}
                ));
            }
            continue;
        }
        const InputSubject subject{node, input, *value, folders_};
        if (!value->is_array()) {
            if (auto error = judge_literal(subject)) {
                judged.errors.emplace_back(std::move(*error));
            }
        } else if (auto raised = judge_link(subject, judged, depth)) {
            return tl::unexpected(std::move(*raised));
        }
    }
    if (auto raised = check_by_node(node, inputs, judged)) {
        return tl::unexpected(std::move(*raised));
    }
    judged.valid = judged.valid && judged.errors.empty();
    // A cycle through this node has been recorded below it already.
    if (const auto known = judged_.find(id); known != judged_.end()) {
        return known->second.valid;
    }
    return settle(id, std::move(judged)).valid;
}

void Validator::record_cycle(const std::string& id) {
    const auto begin = std::ranges::find(path_, id);
    std::string text;
    json::array nodes;
    for (auto at = begin; at != path_.end(); ++at) {
        const json::value& class_type = prompt_.at(*at).at("class_type");
        text += *at + " (" + python_str(class_type) + ") -> ";
        nodes.emplace_back(*at);
    }
    text += id + " (" + python_str(prompt_.at(id).at("class_type")) + ")";
    for (auto at = begin; at != path_.end(); ++at) {
        Judged judged{.valid = false, .errors = {}};
        judged.errors.emplace_back(make_error(
            "dependency_cycle",
            "Dependency cycle detected",
            text,
            {{"node_id", *at}, {"cycle_nodes", nodes}}
        ));
        settle(*at, std::move(judged));
    }
}

std::optional<Raised> Validator::judge_link(
    const InputSubject& subject, Judged& judged, std::size_t depth
) {
    const json::array& link = subject.value.get_array();
    if (link.size() != 2) {
        json::object extra = input_facts(subject);
        extra["received_value"] = link;
        judged.errors.emplace_back(make_error(
            "bad_linked_input",
            "Bad linked input, must be a length-2 list of [node_id, slot_index]",
            subject.input.name,
            std::move(extra)
        ));
        return std::nullopt;
    }
    auto source = find_source(link);
    if (!source) {
        return std::move(source.error());
    }
    const bool v1_combo = subject.input.type == "COMBO" && subject.node.schema == Schema::v1;
    if (v1_combo ? source->type != "*" : !types_meet(source->type, subject.input.type)) {
        json::object extra = input_facts(subject);
        const std::string wanted =
            v1_combo ? python_repr(extra["input_config"].at(0)) : subject.input.type;
        extra["received_type"] = source->type;
        extra["linked_node"] = link;
        judged.errors.emplace_back(make_error(
            "return_type_mismatch",
            "Return type mismatch between linked nodes",
            subject.input.name + ", received_type(" + source->type + ") mismatch input_type(" +
                wanted + ")",
            std::move(extra)
        ));
        return std::nullopt;
    }
    judge_source(subject, source->id, judged, depth);
    return std::nullopt;
}

tl::expected<Validator::Source, Raised> Validator::find_source(const json::array& link) const {
    if (link[0].is_array() || link[0].is_object()) {
        const std::string type(python_type(link[0]));
        return tl::unexpected(Raised{
            "TypeError", "cannot use '" + type + "' as a dict key (unhashable type: '" + type + "')"
        });
    }
    if (!link[0].is_string() || !prompt_.contains(as_view(link[0].get_string()))) {
        return tl::unexpected(Raised{"KeyError", python_repr(link[0])});
    }
    std::string id(as_view(link[0].get_string()));
    const auto& class_type = prompt_.at(id).at("class_type").get_string();
    const NodeClass& node = *registry_.find(as_view(class_type));
    const std::string sequence = node.schema == Schema::v3 ? "list" : "tuple";
    if (!link[1].is_int64() && !link[1].is_uint64() && !link[1].is_bool()) {
        return tl::unexpected(Raised{
            "TypeError",
            sequence + " indices must be integers or slices, not " +
                std::string(python_type(link[1]))
        });
    }
    const auto slot = slot_index(link[1], node.outputs.size());
    if (!slot) {
        return tl::unexpected(Raised{"IndexError", sequence + " index out of range"});
    }
    return Source{std::move(id), node.outputs[*slot].type};
}

void Validator::judge_source(
    const InputSubject& subject, const std::string& id, Judged& judged, std::size_t depth
) {
    const std::size_t path_length = path_.size();
    const auto valid = judge(id, depth + 1);
    if (valid) {
        judged.valid = judged.valid && *valid;
        return;
    }
    path_.resize(path_length);
    json::object extra = input_facts(subject);
    extra["exception_message"] = valid.error().text;
    extra["exception_type"] = valid.error().type;
    extra["traceback"] = json::array();
    extra["linked_node"] = subject.value;
    Judged source{.valid = false, .errors = {}};
    source.errors.emplace_back(make_error(
        "exception_during_inner_validation",
        "Exception when validating inner node",
        valid.error().text,
        std::move(extra)
    ));
    settle(id, std::move(source));
    judged.valid = false;
}

std::optional<Raised> Validator::check_by_node(
    const NodeClass& node, json::object& inputs, Judged& judged
) {
    if (node.check == nullptr) {
        return std::nullopt;
    }
    const json::value* literal = inputs.if_contains(node.checked_input);
    if (literal == nullptr || literal->is_array()) {
        return std::nullopt;
    }
    const auto refusal = node.check(*literal, folders_);
    if (!refusal) {
        return std::nullopt;
    }
    if (!refusal->exception_type.empty()) {
        return Raised{refusal->exception_type, refusal->text};
    }
    judged.errors.emplace_back(make_error(
        "custom_validation_failed",
        "Custom validation failed for node",
        node.checked_input + " - " + refusal->text,
        {{"input_name", node.checked_input}}
    ));
    return std::nullopt;
}

}  // namespace

Validation validate_prompt(json::object& prompt, const Registry& registry, const Folders& folders) {
    return Validator(prompt, registry, folders).run();
}

std::optional<std::size_t> slot_index(const json::value& slot, std::size_t count) {
    std::int64_t index = 0;
    if (slot.is_bool()) {
        index = slot.get_bool() ? 1 : 0;
    } else if (slot.is_int64()) {
        index = slot.get_int64();
    } else {
        return std::nullopt;
    }
    const auto size = static_cast<std::int64_t>(count);
    if (index < -size || index >= size) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(index < 0 ? index + size : index);
}

}  // namespace comfyd::engine
