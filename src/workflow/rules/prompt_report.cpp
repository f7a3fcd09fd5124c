#include "workflow/rules/prompt_report.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/python_text.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kFullErrorsMax = 1'000;
constexpr std::size_t kDependentsMax = 20'000;
constexpr std::size_t kVisitsMax = 2'000'000;
constexpr std::size_t kDetailsMax = 1U << 20U;

}  // namespace

PromptReport::PromptReport(const json::object& prompt)
    : prompt_(prompt), states_(prompt.size(), State::open), found_(prompt.size()) {}

void PromptReport::settle(std::size_t node, bool valid, json::array errors) {
    states_[node] = valid ? State::good : State::bad;
    found_[node] = std::move(errors);
}

void PromptReport::join(std::size_t node, json::array errors) {
    std::move(errors.begin(), errors.end(), std::back_inserter(found_[node]));
}

bool PromptReport::is_long() const {
    return errors_ >= kFullErrorsMax;
}

std::string_view PromptReport::id_of(std::size_t node) const {
    return view((prompt_.begin() + node)->key());
}

template <class Visit>
void PromptReport::each_source(std::size_t node, Visit visit) const {
    const json::value* inputs =
        json::find((prompt_.begin() + node)->value().get_object(), "inputs");
    if (inputs == nullptr) {
        return;
    }
    for (const auto& entry : inputs->get_object()) {
        const json::array* link = entry.value().if_array();
        if (link == nullptr || link->size() != 2 || !link->front().is_string()) {
            continue;
        }
        const auto source = prompt_.find(link->front().get_string());
        if (source != prompt_.end()) {
            visit(static_cast<std::size_t>(source - prompt_.begin()));
        }
    }
}

// An output may have been told of already, as a node that another output needs.
const json::array& PromptReport::errors_of(std::size_t node) const {
    const json::value* told = node_errors_.if_contains(id_of(node));
    return told != nullptr ? told->get_object().at("errors").get_array() : found_[node];
}

void PromptReport::add_failed_output(std::size_t output) {
    for (const json::value& error : errors_of(output)) {
        if (details_.size() < kDetailsMax) {
            details_ += details_.empty() ? "" : "\n";
            details_ += view(error.at("message").get_string());
            details_ += ": ";
            details_ += view(error.at("details").get_string());
        }
    }
    seen_by_.resize(prompt_.size());
    const std::size_t mark = output + 1;
    std::vector<std::size_t> pending{output};
    seen_by_[output] = mark;
    while (!pending.empty()) {
        const std::size_t node = pending.back();
        pending.pop_back();
        if (states_[node] == State::bad && !errors_of(node).empty()) {
            add_dependent(node, id_of(output));
        }
        // Beyond the limit an output is still listed where it is itself wrong.
        if (++visits_ > kVisitsMax || dependents_ > kDependentsMax) {
            break;
        }
        each_source(node, [&](std::size_t source) {
            if (seen_by_[source] != mark) {
                seen_by_[source] = mark;
                pending.push_back(source);
            }
        });
    }
}

void PromptReport::add_dependent(std::size_t node, std::string_view output) {
    json::value& entry = node_errors_[id_of(node)];
    if (entry.is_null()) {
        json::object fresh;
        fresh["errors"] = std::exchange(found_[node], {});
        fresh["dependent_outputs"] = json::array();
        fresh["class_type"] = (prompt_.begin() + node)->value().at("class_type");
        entry = std::move(fresh);
    }
    ++dependents_;
    entry.at("dependent_outputs").as_array().emplace_back(output);
}

json::object make_prompt_error(
    std::string_view type,
    std::string_view message,
    std::string_view details,
    json::object extra_info
) {
    json::object error;
    error.reserve(4);
    error["type"] = type;
    error["message"] = message;
    error["details"] = details;
    error["extra_info"] = std::move(extra_info);
    return error;
}

json::object malformed_node(std::string_view id, std::string_view what) {
    json::object extra;
    extra["node_id"] = id;
    return make_prompt_error(
        "invalid_prompt",
        "Node '" + std::string(id) + "' " + std::string(what) + ".",
        "Node ID '#" + std::string(id) + "'",
        std::move(extra)
    );
}

json::object missing_class(std::string_view id, const json::object& node) {
    json::value title;
    if (const json::value* meta = json::find(node, "_meta"); meta != nullptr && meta->is_object()) {
        const json::value* found = json::find(meta->get_object(), "title");
        title = found != nullptr ? *found : json::value();
    }
    const json::value* class_type = node.if_contains("class_type");
    std::string message;
    if (class_type == nullptr) {
        message = "Node '" + (title.is_null() ? "ID #" + std::string(id) : python_str(title)) +
                  "' has no class_type. The workflow may be corrupted or a custom node is missing.";
    } else {
        title = title.is_null() ? *class_type : title;
        message =
            "Node '" + python_str(title) + "' not found. The custom node may not be installed.";
    }
    json::object extra;
    extra["node_id"] = id;
    extra["class_type"] = class_type != nullptr ? *class_type : json::value();
    extra["node_title"] = std::move(title);
    return make_prompt_error(
        "missing_node_type", message, "Node ID '#" + std::string(id) + "'", std::move(extra)
    );
}

json::object cycle_error(
    const std::string& text, const std::string& node_id, const json::array& nodes, bool brief
) {
    json::object extra;
    extra["node_id"] = node_id;
    extra["cycle_nodes"] = brief ? json::value(json::array()) : json::value(nodes);
    return make_prompt_error(
        "dependency_cycle",
        "Dependency cycle detected",
        brief ? "a cycle through node " + node_id : text,
        std::move(extra)
    );
}

}  // namespace comfyd::workflow
