#include "engine/run/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/nodes/text/python_value.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::engine {
namespace {

std::string_view as_view(const boost::json::string& text) {
    return {text.data(), text.size()};
}

// The inputs that a node of the class has with these values.
std::vector<const workflow::InputDefinition*> inputs_of(
    Plan& plan, const RegisteredClass& type, const json::object& values
) {
    std::vector<const workflow::InputDefinition*> inputs;
    std::unordered_set<std::string_view> names;
    for (const workflow::InputDefinition& input : type.definition->inputs_for(values)) {
        inputs.push_back(&input);
        names.insert(input.name);
    }
    if (type.node.takes_any_input) {
        for (const auto& [name, value] : values) {
            if (!names.contains(std::string_view(name.data(), name.size()))) {
                workflow::InputDefinition& input = plan.unnamed.emplace_back();
                input.name = std::string(name);
                input.type = "*";
                input.need = workflow::Need::optional;
                inputs.push_back(&input);
            }
        }
    }
    return inputs;
}

class Planner {
public:
    Planner(const json::object& prompt, const Registry& registry, const Owner& owner)
        : prompt_(prompt), registry_(registry), owner_(owner) {}

    // The node and what it needs, without recursion, since a chain may be as long as the prompt.
    // nullopt: the node could not run, which validation excludes for what outputs need.
    std::optional<std::size_t> visit(std::string_view id);
    Plan take() { return std::move(plan_); }

private:
    struct Frame {
        std::string_view id;
        PlannedNode planned;
        const json::object* values = nullptr;
        std::size_t next_link = 0;  // into planned.links
    };

    std::optional<Frame> open(std::string_view id);
    void add_inputs(Frame& frame);
    const json::array& link_of(const Frame& frame, std::size_t index) const;
    std::optional<std::size_t> close(Frame frame);
    void take_fingerprint(PlannedNode& planned, const json::object& values) const;
    Digest key_of(const PlannedNode& planned, const json::object& values) const;

    const json::object& prompt_;
    const Registry& registry_;
    const Owner& owner_;
    Plan plan_;
    // nullopt: cannot run, or is under way; what meets it again then is part of a cycle.
    std::unordered_map<std::string_view, std::optional<std::size_t>> places_;
};

std::optional<std::size_t> Planner::visit(std::string_view id) {
    std::vector<Frame> frames;
    const auto enter = [&](std::string_view node) {
        if (!places_.emplace(node, std::nullopt).second) {
            return;
        }
        if (auto frame = open(node)) {
            frames.push_back(std::move(*frame));
        }
    };
    enter(id);
    while (!frames.empty()) {
        Frame& frame = frames.back();
        if (frame.next_link < frame.planned.links.size()) {
            const json::array& link = link_of(frame, frame.planned.links[frame.next_link++]);
            enter(as_view(link[0].get_string()));
            continue;
        }
        Frame complete = std::move(frame);
        frames.pop_back();
        const std::string_view done = complete.id;
        places_[done] = close(std::move(complete));
    }
    return places_[id];
}

std::optional<Planner::Frame> Planner::open(std::string_view id) {
    const auto found = prompt_.find(id);
    const json::object* entry = found != prompt_.end() ? found->value().if_object() : nullptr;
    const json::value* class_type = entry != nullptr ? entry->if_contains("class_type") : nullptr;
    const json::value* values = entry != nullptr ? entry->if_contains("inputs") : nullptr;
    if (class_type == nullptr || !class_type->is_string() || values == nullptr ||
        !values->is_object()) {
        return std::nullopt;
    }
    Frame frame{.id = id, .planned = {}, .values = &values->get_object()};
    frame.planned.id = id;
    frame.planned.position = static_cast<std::size_t>(found - prompt_.begin());
    frame.planned.type = registry_.find(as_view(class_type->get_string()));
    if (frame.planned.type == nullptr) {
        return std::nullopt;
    }
    add_inputs(frame);
    return frame;
}

void Planner::add_inputs(Frame& frame) {
    std::map<std::size_t, std::size_t> by_position;  // in the prompt, of links
    for (const workflow::InputDefinition* input :
         inputs_of(plan_, *frame.planned.type, *frame.values)) {
        const auto value = frame.values->find(input->name);
        if (value == frame.values->end()) {
            continue;
        }
        PlannedInput given{.input = input};
        if (is_link(value->value())) {
            const auto position = static_cast<std::size_t>(value - frame.values->begin());
            by_position.emplace(position, frame.planned.inputs.size());
        } else {
            given.literal = &value->value();
        }
        frame.planned.inputs.push_back(given);
    }
    for (const auto& [position, index] : by_position) {
        frame.planned.links.push_back(index);
    }
}

const json::array& Planner::link_of(const Frame& frame, std::size_t index) const {
    return frame.values->at(frame.planned.inputs[index].input->name).get_array();
}

// All sources have been visited.
std::optional<std::size_t> Planner::close(Frame frame) {
    PlannedNode& planned = frame.planned;
    for (const std::size_t index : planned.links) {
        const json::array& link = link_of(frame, index);
        const std::optional<std::size_t> source = places_[as_view(link[0].get_string())];
        if (!source) {
            return std::nullopt;
        }
        const auto slot =
            workflow::slot_index(link[1], plan_.nodes[*source].type->definition->outputs().size());
        if (!slot) {
            return std::nullopt;
        }
        planned.inputs[index].link = PlannedLink{*source, *slot};
    }
    take_fingerprint(planned, *frame.values);
    planned.key = key_of(planned, *frame.values);
    plan_.nodes.push_back(std::move(planned));
    return plan_.nodes.size() - 1;
}

void Planner::take_fingerprint(PlannedNode& planned, const json::object& values) const {
    if (planned.type->node.fingerprint == nullptr) {
        return;
    }
    auto fingerprint = planned.type->node.fingerprint(values, owner_.folders);
    if (fingerprint) {
        planned.fingerprint = std::move(*fingerprint);
        return;
    }
    std::array<char, 16> unlike_any_other{};
    random_bytes(unlike_any_other.data(), unlike_any_other.size());
    planned.fingerprint = to_hex(unlike_any_other.data(), unlike_any_other.size());
}

Digest Planner::key_of(const PlannedNode& planned, const json::object& values) const {
    // Every part is preceded by its length, so that no two nodes can spell the same text.
    std::string text;
    const auto add = [&text](char kind, std::string_view part) {
        text += kind;
        text += std::to_string(part.size());
        text += ':';
        text += part;
    };
    add('o', owner_.name);
    add('c', planned.type->node.name);
    add('f', planned.fingerprint);
    if (planned.type->definition->hides_unique_id()) {
        add('u', planned.id);
    }
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& [name, value] : values) {
        sorted.emplace(std::string_view(name.data(), name.size()), &value);
    }
    for (const PlannedInput& given : planned.inputs) {
        if (given.is_linked()) {
            sorted.erase(given.input->name);
            const Digest& source = plan_.nodes[given.link.source].key;
            add('n', given.input->name);
            add('l', to_hex(source) + '/' + std::to_string(given.link.slot));
        }
    }
    // Inputs that the class does not know count too, as in ComfyUI.
    for (const auto& [name, value] : sorted) {
        add('n', name);
        add('v', json::serialize_canonical(*value));
    }
    return sha256(text);
}

// What decides which inputs a node has: texts and numbers. Pictures and the like are null.
json::object plain_values(const AddedNode& node) {
    json::object values;
    for (const auto& [name, input] : node.inputs) {
        const Value* value = std::get_if<Value>(&input);
        values[name] = value != nullptr ? nodes::to_json(*value).value_or(nullptr)
                                        : json::value(json::array{"", 0});
    }
    return values;
}

// The node that an input of an added one is linked to, if it can be.
std::optional<PlannedLink> find_added(const Plan& plan, std::size_t first, const AddedLink& link) {
    const std::size_t source = first + link.node;
    if (link.node >= plan.nodes.size() - first ||
        link.slot >= plan.nodes[source].type->definition->outputs().size()) {
        return std::nullopt;
    }
    return PlannedLink{source, link.slot};
}

Result<> add_inputs(Plan& plan, PlannedNode& planned, AddedNode node, std::size_t first) {
    std::map<std::string_view, std::size_t> places;  // in node.inputs
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        places[node.inputs[i].first] = i;
    }
    std::map<std::size_t, std::size_t> links;
    for (const workflow::InputDefinition* input :
         inputs_of(plan, *planned.type, plain_values(node))) {
        const auto place = places.find(input->name);
        if (place == places.end()) {
            continue;
        }
        PlannedInput given{.input = input};
        AddedInput& from = node.inputs[place->second].second;
        if (const auto* link = std::get_if<AddedLink>(&from)) {
            const auto source = find_added(plan, first, *link);
            if (!source) {
                return node_error("IndexError", "an added node is linked to one that is not there");
            }
            given.link = *source;
            links.emplace(place->second, planned.inputs.size());
        } else {
            given.value = &plan.values.emplace_back(std::move(std::get<Value>(from)));
        }
        planned.inputs.push_back(given);
    }
    for (const auto& [place, index] : links) {
        planned.links.push_back(index);
    }
    return {};
}

}  // namespace

Result<> add_node(
    Plan& plan,
    std::size_t parent,
    std::string id,
    AddedNode node,
    std::size_t first,
    const Registry& registry
) {
    PlannedNode planned;
    planned.type = registry.find(node.class_type);
    if (planned.type == nullptr) {
        return node_error("KeyError", "'" + node.class_type + "'");
    }
    planned.parent = parent;
    planned.depth = plan.nodes[parent].depth + 1;
    if (planned.depth > kAddedDepthMax) {
        return node_error(
            "RecursionError",
            "more than " + std::to_string(kAddedDepthMax) + " nodes have added one another"
        );
    }
    planned.key = sha256("added " + to_hex(plan.nodes[parent].key) + ' ' + id);
    planned.id = std::move(id);
    if (auto added = add_inputs(plan, planned, std::move(node), first); !added) {
        return added;
    }
    plan.nodes.push_back(std::move(planned));
    return {};
}

std::optional<Plan> make_plan(
    const json::object& prompt,
    const std::vector<std::string>& outputs,
    const Registry& registry,
    const Owner& owner
) {
    Planner planner(prompt, registry, owner);
    std::vector<std::size_t> places;
    for (const std::string& output : outputs) {
        const auto place = planner.visit(output);
        if (!place) {
            return std::nullopt;
        }
        places.push_back(*place);
    }
    for (const auto& [id, entry] : prompt) {
        planner.visit(std::string_view(id.data(), id.size()));
    }
    Plan plan = planner.take();
    plan.outputs = std::move(places);
    return plan;
}

bool is_link(const json::value& value) {
    const json::array* link = value.if_array();
    return link != nullptr && link->size() == 2 && link->front().is_string() &&
           ((*link)[1].is_number() || (*link)[1].is_bool());
}

}  // namespace comfyd::engine
