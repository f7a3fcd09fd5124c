#include "workflow/parameters.hpp"

#include <string>
#include <vector>

namespace comfyd::workflow {
namespace {

std::string title_of(const json::object& node) {
    const json::value* meta = json::find(node, "_meta");
    if (meta == nullptr || !meta->is_object()) {
        return {};
    }
    const json::value* title = json::find(meta->get_object(), "title");
    return title != nullptr && title->is_string() ? std::string(title->get_string())
                                                  : std::string();
}

// By id first, then by title where exactly one node has it.
Result<json::object*> find_node(json::object& workflow, std::string_view name) {
    const auto by_id = workflow.find(boost::json::string_view(name.data(), name.size()));
    if (by_id != workflow.end() && by_id->value().is_object()) {
        return &by_id->value().get_object();
    }
    json::object* found = nullptr;
    std::string known;
    for (auto& entry : workflow) {
        if (!entry.value().is_object()) {
            continue;
        }
        json::object& node = entry.value().get_object();
        const std::string title = title_of(node);
        if (title == name) {
            if (found != nullptr) {
                return fail(
                    Code::invalid_argument,
                    "several nodes have the title '" + std::string(name) + "': use the node's id"
                );
            }
            found = &node;
        }
        if (known.size() < 400) {
            known += (known.empty() ? "" : ", ") + std::string(entry.key()) +
                     (title.empty() ? "" : " ('" + title + "')");
        }
    }
    if (found == nullptr) {
        return fail(
            Code::invalid_argument,
            "no node has the id or title '" + std::string(name) + "'; there are " + known
        );
    }
    return found;
}

}  // namespace

Result<> bind_parameters(json::object& workflow, const json::object& parameters) {
    for (const auto& parameter : parameters) {
        const std::string_view name = parameter.key();
        const auto dot = name.find('.');
        if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) {
            return fail(
                Code::invalid_argument,
                "parameter '" + std::string(name) +
                    "' must be named node.input, for example 6.text",
                {{"field", parameter.key()}}
            );
        }
        const auto node = find_node(workflow, name.substr(0, dot));
        if (!node) {
            return fail(node.error());
        }
        json::value& inputs = (**node)["inputs"];
        if (!inputs.is_object()) {
            inputs.emplace_object();
        }
        const std::string input(name.substr(dot + 1));
        if (!inputs.get_object().contains(input)) {
            std::string known;
            for (const auto& entry : inputs.get_object()) {
                known += (known.empty() ? "" : ", ") + std::string(entry.key());
            }
            return fail(
                Code::invalid_argument,
                "node " + std::string(name.substr(0, dot)) + " has no input '" + input +
                    "'; it has " + known,
                {{"field", parameter.key()}}
            );
        }
        inputs.get_object()[input] = parameter.value();
    }
    return {};
}

Result<> bind_parameter(
    json::object& workflow, std::string_view name, std::string_view value_text
) {
    auto parsed = json::parse(value_text);
    json::object one;
    one[boost::json::string_view(name.data(), name.size())] =
        parsed ? std::move(*parsed)
               : json::value(boost::json::string_view(value_text.data(), value_text.size()));
    return bind_parameters(workflow, one);
}

}  // namespace comfyd::workflow
