#include "workflow/graph/node_links.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace comfyd::workflow {
namespace {

constexpr std::size_t kComplaintsMax = 100;

struct Link {
    std::string from;
    std::int64_t from_slot = 0;
    std::string to;
    std::string input;
};

bool is_link(const json::value& input) {
    const json::array* items = input.if_array();
    return items != nullptr && items->size() == 2 && (*items)[0].is_string() &&
           (*items)[1].is_int64();
}

// Node ids are text in the API format and often numbers elsewhere.
std::optional<std::string> node_id(const json::value* from) {
    if (from != nullptr && from->is_string()) {
        return std::string(from->get_string());
    }
    if (from != nullptr && from->is_int64()) {
        return std::to_string(from->get_int64());
    }
    return std::nullopt;
}

std::optional<std::int64_t> slot_of(const json::value* from) {
    if (from != nullptr && from->is_int64() && from->get_int64() >= 0) {
        return from->get_int64();
    }
    return std::nullopt;
}

std::optional<std::string> name_of(const json::value* from) {
    if (from != nullptr && from->is_string() && !from->get_string().empty()) {
        return std::string(from->get_string());
    }
    return std::nullopt;
}

std::optional<Link> make_link(
    std::optional<std::string> from,
    std::optional<std::int64_t> slot,
    std::optional<std::string> to,
    std::optional<std::string> input
) {
    if (!from || !slot || !to || !input) {
        return std::nullopt;
    }
    return Link{std::move(*from), *slot, std::move(*to), std::move(*input)};
}

const json::value* first_of(const json::object& in, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
        if (const json::value* found = json::find(in, key); found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

std::optional<Link> parse_object_link(const json::object& link) {
    const json::value* from = first_of(link, {"from", "from_node", "source"});
    const json::value* slot = first_of(link, {"from_slot", "from_output", "source_output"});
    const json::value* to = first_of(link, {"to", "to_node", "target"});
    const json::value* input = first_of(link, {"to_input", "target_input", "input"});
    if (from != nullptr && from->is_array() && from->get_array().size() == 2) {
        slot = &from->get_array()[1];
        from = &from->get_array()[0];
    }
    if (to != nullptr && to->is_array() && to->get_array().size() == 2) {
        input = &to->get_array()[1];
        to = &to->get_array()[0];
    }
    return make_link(
        node_id(from),
        slot == nullptr ? std::optional<std::int64_t>(0) : slot_of(slot),
        node_id(to),
        name_of(input)
    );
}

std::optional<Link> parse_link(const json::value& link) {
    if (link.is_object()) {
        return parse_object_link(link.get_object());
    }
    if (!link.is_array() || link.get_array().size() != 4) {
        return std::nullopt;
    }
    const json::array& items = link.get_array();
    return make_link(
        node_id(&items[0]), slot_of(&items[1]), node_id(&items[2]), name_of(&items[3])
    );
}

json::object* find_inputs(json::object& nodes, const std::string& id) {
    json::value* node = nodes.if_contains(id);
    if (node == nullptr || !node->is_object()) {
        return nullptr;
    }
    json::value& inputs = node->get_object()["inputs"];
    if (inputs.is_null()) {
        inputs.emplace_object();
    }
    return inputs.if_object();
}

bool any_linked(const json::object& nodes) {
    for (const auto& node : nodes) {
        const json::object* object = node.value().if_object();
        const json::value* inputs = object != nullptr ? json::find(*object, "inputs") : nullptr;
        if (inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        for (const auto& input : inputs->get_object()) {
            if (is_link(input.value())) {
                return true;
            }
        }
    }
    return false;
}

// Why the link could not be set; nullopt when it was.
std::optional<std::string> apply(const json::value& from, json::object& nodes) {
    const auto link = parse_link(from);
    if (!link) {
        return "a link must be [from node, output number, to node, input name]";
    }
    if (!nodes.contains(link->from)) {
        return "there is no node " + link->from;
    }
    json::object* inputs = find_inputs(nodes, link->to);
    if (inputs == nullptr) {
        return "there is no node " + link->to + " with inputs";
    }
    json::value& input = (*inputs)[link->input];
    if (!is_link(input)) {
        input = json::array{json::value(link->from), json::value(link->from_slot)};
    }
    return std::nullopt;
}

}  // namespace

Result<json::object> merge_links(json::object workflow) {
    json::value* wrapped = workflow.if_contains("nodes");
    if (wrapped == nullptr || !wrapped->is_object() ||
        wrapped->get_object().contains("class_type")) {
        return workflow;
    }
    const json::value* listed = json::find(workflow, "links");
    const bool has_links = listed != nullptr && listed->is_array() && !listed->get_array().empty();
    if (listed != nullptr && !listed->is_array() && !listed->is_object()) {
        return fail(
            Code::invalid_argument, "'workflow.links' must be a list", {{"field", "workflow.links"}}
        );
    }
    json::object& nodes = wrapped->get_object();
    if (!has_links) {
        return json::object(std::move(nodes));
    }
    const bool linked = any_linked(nodes);
    json::array invalid;
    std::string first;
    for (std::size_t index = 0; index < listed->get_array().size(); ++index) {
        auto reason = apply(listed->get_array()[index], nodes);
        if (!reason || linked) {
            continue;
        }
        if (first.empty()) {
            first = "link " + std::to_string(index) + ": " + *reason;
        }
        if (invalid.size() < kComplaintsMax) {
            invalid.emplace_back(json::object{{"link", index}, {"reason", std::move(*reason)}});
        }
    }
    if (!invalid.empty()) {
        return fail(
            Code::invalid_workflow,
            "the workflow's links cannot be used: " + first,
            {{"missing_nodes", json::array()}, {"invalid_connections", std::move(invalid)}}
        );
    }
    return json::object(std::move(nodes));
}

}  // namespace comfyd::workflow
