#include "engine/validate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/python_text.hpp"

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

json::value to_value(const std::vector<std::string>& texts) {
    json::array array;
    for (const std::string& text : texts) {
        array.emplace_back(text);
    }
    return array;
}

json::object make_error(
    std::string_view type,
    std::string_view message,
    std::string_view details,
    json::object extra_info
) {
    json::object error;
    error["type"] = type;
    error["message"] = message;
    error["details"] = details;
    error["extra_info"] = std::move(extra_info);
    return error;
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
    // One input of one node, while it is looked at.
    struct Subject {
        const NodeClass& node;
        const Input& input;
        json::value& value;
        Judged& judged;
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

    std::optional<Raised> judge_link(const Subject& subject, std::size_t depth);
    void judge_literal(const Subject& subject);
    bool coerce(const Subject& subject);
    bool coerce_int(const Subject& subject);
    bool coerce_float(const Subject& subject);
    void check_choice(const Subject& subject);
    std::optional<Raised> check_by_node(
        const NodeClass& node, json::object& inputs, Judged& judged
    );

    json::object input_facts(const Subject& subject) const;
    void add_value_error(
        const Subject& subject,
        std::string_view type,
        std::string_view message,
        json::value received
    ) const;
    bool too_small_or_big(const Subject& subject, const std::string& text, json::value received);
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
        const Subject subject{node, input, *value, judged};
        if (!value->is_array()) {
            judge_literal(subject);
        } else if (auto raised = judge_link(subject, depth)) {
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

json::object Validator::input_facts(const Subject& subject) const {
    json::object facts;
    facts["input_name"] = subject.input.name;
    json::array config = describe(subject.input, subject.node.schema, folders_);
    if (config.size() == 1) {
        config.emplace_back(json::object()
        );  // ComfyUI fills it in here, though not in /object_info
    }
    facts["input_config"] = std::move(config);
    return facts;
}

std::optional<Raised> Validator::judge_link(const Subject& subject, std::size_t depth) {
    const json::array link = subject.value.get_array();
    json::array& errors = subject.judged.errors;
    if (link.size() != 2) {
        json::object extra = input_facts(subject);
        extra["received_value"] = link;
        errors.emplace_back(make_error(
            "bad_linked_input",
            "Bad linked input, must be a length-2 list of [node_id, slot_index]",
            subject.input.name,
            std::move(extra)
        ));
        return std::nullopt;
    }
    if (link[0].is_array() || link[0].is_object()) {
        const std::string type(python_type(link[0]));
        return Raised{
            "TypeError", "cannot use '" + type + "' as a dict key (unhashable type: '" + type + "')"
        };
    }
    if (!link[0].is_string() || !prompt_.contains(as_view(link[0].get_string()))) {
        return Raised{"KeyError", python_repr(link[0])};
    }
    const std::string source_id(as_view(link[0].get_string()));
    const NodeClass& source =
        *registry_.find(as_view(prompt_.at(source_id).at("class_type").get_string()));
    const std::string sequence = source.schema == Schema::v3 ? "list" : "tuple";
    if (!link[1].is_int64() && !link[1].is_uint64() && !link[1].is_bool()) {
        return Raised{
            "TypeError",
            sequence + " indices must be integers or slices, not " +
                std::string(python_type(link[1]))
        };
    }
    const auto slot = slot_index(link[1], source.outputs.size());
    if (!slot) {
        return Raised{"IndexError", sequence + " index out of range"};
    }
    const std::string& received = source.outputs[*slot].type;
    const bool v1_combo = subject.input.type == "COMBO" && subject.node.schema == Schema::v1;
    if (v1_combo ? received != "*" : !types_meet(received, subject.input.type)) {
        json::object extra = input_facts(subject);
        const std::string wanted =
            v1_combo ? python_repr(extra["input_config"].at(0)) : subject.input.type;
        extra["received_type"] = received;
        extra["linked_node"] = link;
        errors.emplace_back(make_error(
            "return_type_mismatch",
            "Return type mismatch between linked nodes",
            subject.input.name + ", received_type(" + received + ") mismatch input_type(" + wanted +
                ")",
            std::move(extra)
        ));
        return std::nullopt;
    }
    const std::size_t path_length = path_.size();
    const auto valid = judge(source_id, depth + 1);
    if (valid) {
        subject.judged.valid = subject.judged.valid && *valid;
        return std::nullopt;
    }
    path_.resize(path_length);
    json::object extra = input_facts(subject);
    extra["exception_message"] = valid.error().text;
    extra["exception_type"] = valid.error().type;
    extra["traceback"] = json::array();
    extra["linked_node"] = link;
    Judged judged{.valid = false, .errors = {}};
    judged.errors.emplace_back(make_error(
        "exception_during_inner_validation",
        "Exception when validating inner node",
        valid.error().text,
        std::move(extra)
    ));
    settle(source_id, std::move(judged));
    subject.judged.valid = false;
    return std::nullopt;
}

void Validator::judge_literal(const Subject& subject) {
    if (subject.value.is_object()) {
        if (json::value* wrapped = subject.value.get_object().if_contains("__value__")) {
            json::value inner = std::move(*wrapped);
            subject.value = std::move(inner);
        }
    }
    if (!coerce(subject)) {
        return;
    }
    const bool checked_by_node = subject.node.checked_input == subject.input.name;
    if (subject.input.type == "COMBO" && !checked_by_node) {
        check_choice(subject);
    }
}

// False when an error was added. Limits are looked at here too, because a number may be too large
// to keep.
bool Validator::coerce(const Subject& subject) {
    const std::string& type = subject.input.type;
    if (type == "INT") {
        return coerce_int(subject);
    }
    if (type == "FLOAT") {
        return coerce_float(subject);
    }
    if (type == "STRING") {
        subject.value = json::value(python_str(subject.value));
    } else if (type == "BOOLEAN") {
        subject.value = python_bool(subject.value);
    }
    return true;
}

void Validator::add_value_error(
    const Subject& subject, std::string_view type, std::string_view message, json::value received
) const {
    json::object extra = input_facts(subject);
    extra["received_value"] = std::move(received);
    subject.judged.errors.emplace_back(
        make_error(type, message, subject.input.name, std::move(extra))
    );
}

bool Validator::coerce_int(const Subject& subject) {
    const auto converted = python_int(subject.value);
    if (!converted) {
        json::object extra = input_facts(subject);
        extra["received_value"] = subject.value;
        extra["exception_message"] = converted.error();
        subject.judged.errors.emplace_back(make_error(
            "invalid_input_type",
            "Failed to convert an input value to a INT value",
            subject.input.name + ", " + python_str(subject.value) + ", " + converted.error(),
            std::move(extra)
        ));
        return false;
    }
    if (converted->value) {
        subject.value = *converted->value;
        return !too_small_or_big(subject, converted->text, subject.value);
    }
    // Beyond 64 bits: out of any limit that a node can have.
    const bool negative = converted->negative;
    const json::object options = subject.input.options.value_or(json::object{});
    const json::value* limit = json::find(options, negative ? "min" : "max");
    add_value_error(
        subject,
        negative ? "value_smaller_than_min" : "value_bigger_than_max",
        "Value " + converted->text + (negative ? " smaller than min of " : " bigger than max of ") +
            (limit != nullptr ? python_str(*limit) : "64 bits"),
        subject.value
    );
    return false;
}

bool Validator::coerce_float(const Subject& subject) {
    auto converted = python_float(subject.value);
    if (converted && std::isnan(*converted)) {
        converted = tl::unexpected(std::string("NaN is not a usable number"));
    }
    if (!converted) {
        json::object extra = input_facts(subject);
        extra["received_value"] = subject.value;
        extra["exception_message"] = converted.error();
        subject.judged.errors.emplace_back(make_error(
            "invalid_input_type",
            "Failed to convert an input value to a FLOAT value",
            subject.input.name + ", " + python_str(subject.value) + ", " + converted.error(),
            std::move(extra)
        ));
        return false;
    }
    const json::value number(*converted);
    if (too_small_or_big(
            subject, python_str(number), std::isfinite(*converted) ? number : subject.value
        )) {
        return false;
    }
    if (!std::isfinite(*converted)) {
        add_value_error(
            subject,
            "value_bigger_than_max",
            "Value " + python_str(number) + " is not finite",
            subject.value
        );
        return false;
    }
    subject.value = number;
    return true;
}

bool Validator::too_small_or_big(
    const Subject& subject, const std::string& text, json::value received
) {
    if (!subject.input.options || subject.node.checked_input == subject.input.name) {
        return false;
    }
    const auto number = python_float(json::value(text)).value_or(0);
    const json::value* min = json::find(*subject.input.options, "min");
    const json::value* max = json::find(*subject.input.options, "max");
    if (min != nullptr && number < min->to_number<double>()) {
        add_value_error(
            subject,
            "value_smaller_than_min",
            "Value " + text + " smaller than min of " + python_str(*min),
            std::move(received)
        );
        return true;
    }
    if (max != nullptr && number > max->to_number<double>()) {
        add_value_error(
            subject,
            "value_bigger_than_max",
            "Value " + text + " bigger than max of " + python_str(*max),
            std::move(received)
        );
        return true;
    }
    return false;
}

void Validator::check_choice(const Subject& subject) {
    constexpr std::size_t kChoicesShown = 20;
    const std::vector<std::string> choices = choices_of(subject.input, folders_);
    const boost::json::string* chosen = subject.value.if_string();
    if (chosen != nullptr && std::ranges::find(choices, as_view(*chosen)) != choices.end()) {
        return;
    }
    json::object extra = input_facts(subject);
    std::string list;
    if (choices.size() > kChoicesShown) {
        extra["input_config"] = nullptr;
        list = "(list of length " + std::to_string(choices.size()) + ")";
    } else {
        list = python_repr(to_value(choices));
    }
    extra["received_value"] = subject.value;
    subject.judged.errors.emplace_back(make_error(
        "value_not_in_list",
        "Value not in list",
        subject.input.name + ": " + python_repr(subject.value) + " not in " + list,
        std::move(extra)
    ));
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
