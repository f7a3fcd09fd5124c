#include "workflow/convert/ui/resolve.hpp"

#include <algorithm>
#include <cctype>

namespace comfyd::workflow::ui {
namespace {

constexpr std::size_t kStepsMax = 50'000;          // of one link
constexpr std::size_t kStepsTotalMax = 2'000'000;  // of a workflow

bool is_any(std::string_view type) {
    return type.empty() || type == "*";
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

// Types may be lists: "IMAGE,MASK".
bool fits(std::string_view a, std::string_view b) {
    if (is_any(a) || is_any(b) || equal_ignoring_case(a, b)) {
        return true;
    }
    if (a.find(',') == std::string_view::npos && b.find(',') == std::string_view::npos) {
        return false;
    }
    while (!a.empty()) {
        const std::string_view part = a.substr(0, a.find(','));
        for (std::string_view rest = b; !rest.empty();) {
            const std::string_view other = rest.substr(0, rest.find(','));
            if (equal_ignoring_case(part, other)) {
                return true;
            }
            rest.remove_prefix(std::min(rest.size(), other.size() + 1));
        }
        a.remove_prefix(std::min(a.size(), part.size() + 1));
    }
    return false;
}

// The input whose link a bypassed node gives on at `slot` to one who wants `type`.
std::size_t bypass_input(const Node& node, std::int64_t slot, const std::string& type) {
    const auto at = static_cast<std::size_t>(slot);
    if (is_any(type)) {
        return at < node.inputs.size() ? at : 0;
    }
    const std::string_view given =
        at < node.output_types.size() ? std::string_view(node.output_types[at]) : "*";
    const auto suits = [&](const Socket& input) {
        return fits(input.type, given) && fits(input.type, type);
    };
    if (at < node.inputs.size() && suits(node.inputs[at])) {
        return at;
    }
    auto found = std::ranges::find(node.inputs, type, &Socket::type);
    if (found == node.inputs.end()) {
        found = std::ranges::find_if(node.inputs, suits);
    }
    return found != node.inputs.end() ? static_cast<std::size_t>(found - node.inputs.begin())
                                      : kNone;
}

std::string setter_key(const Graph& graph, const Node& node) {
    const json::value* name = node.saved_value(0);
    return name != nullptr && name->is_string()
               ? graph.id + '\n' + std::string(name->get_string().data(), name->get_string().size())
               : std::string();
}

}  // namespace

// Either an input of a node, or an output that somebody wants.
struct Resolver::Place {
    std::size_t instance = 0;
    std::size_t node = 0;
    std::size_t input = kNone;  // kNone: an output
    std::int64_t slot = 0;
    std::string type;  // that of the input which asks
    bool has_type = false;
};

Resolver::Resolver(const Document& document, const Instances& instances)
    : document_(document), instances_(instances), steps_left_(kStepsTotalMax) {
    for (const Graph& graph : document_.graphs) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            if (graph.nodes[i].kind == NodeKind::set) {
                setters_.try_emplace(setter_key(graph, graph.nodes[i]), i);
            }
        }
    }
}

Resolved Resolver::resolve(std::size_t instance, std::size_t node, std::size_t input) {
    Resolved resolved;
    Place at;
    at.instance = instance;
    at.node = node;
    at.input = input;
    for (std::size_t steps = 0; steps < kStepsMax && steps_left_ > 0; ++steps, --steps_left_) {
        if (!step(at, resolved)) {
            return resolved;
        }
    }
    resolved.kind = Resolved::Kind::endless;
    return resolved;
}

// False: it ended, `into` says where.
bool Resolver::step(Place& at, Resolved& into) const {
    if (at.input != kNone) {
        return from_input(at, into);
    }
    const Node& node = instances_[at.instance].graph->nodes[at.node];
    if (node.mode == kMuted) {
        return false;
    }
    if (node.mode == kBypassed) {
        at.input = bypass_input(node, at.slot, at.type);
        at.has_type = false;
        return at.input != kNone && at.input < node.inputs.size();
    }
    switch (node.kind) {
        case NodeKind::host:
            return into_host(at, into);
        case NodeKind::reroute:
        case NodeKind::set:
            at.input = 0;
            return !node.inputs.empty();
        case NodeKind::get:
            return to_setter(at);
        case NodeKind::primitive:
        case NodeKind::note:
            return false;
        case NodeKind::runs:
        case NodeKind::unknown:
            break;
    }
    into.kind = Resolved::Kind::output;
    into.instance = at.instance;
    into.node = at.node;
    into.slot = at.slot;
    return false;
}

bool Resolver::from_input(Place& at, Resolved& into) const {
    const Graph& graph = *instances_[at.instance].graph;
    const Socket& input = graph.nodes[at.node].inputs[at.input];
    if (!input.link) {
        return false;
    }
    const Link* link = graph.find_link(*input.link);
    if (link == nullptr) {
        into.kind = Resolved::Kind::no_link;
        return false;
    }
    if (link->from_outside) {
        return from_host_input(at, into, static_cast<std::size_t>(link->origin_slot));
    }
    if (link->origin == kNone) {
        into.kind = Resolved::Kind::no_origin;
        return false;
    }
    if (!at.has_type) {
        at.type = input.type;
        at.has_type = true;
    }
    at.node = link->origin;
    at.slot = link->origin_slot;
    at.input = kNone;
    return true;
}

// Out of a subgraph, to the input of the node that stands for it.
bool Resolver::from_host_input(Place& at, Resolved& into, std::size_t port) const {
    const Instance& inner = instances_[at.instance];
    const Node& host = instances_[inner.parent].graph->nodes[inner.host];
    if (port >= inner.graph->inputs.size() || port >= host.inputs.size()) {
        return false;
    }
    if (!host.inputs[port].link) {
        if (inner.promoted[port].is_widget) {
            into.kind = Resolved::Kind::value;
            const auto& value = inner.promoted[port].value;
            into.value = value ? &*value : nullptr;
        }
        return false;
    }
    at.instance = inner.parent;
    at.node = inner.host;
    at.input = port;
    at.has_type = false;
    return true;
}

// Into a subgraph, to the node behind one of its outputs.
bool Resolver::into_host(Place& at, Resolved& into) const {
    const std::size_t child = instances_[at.instance].children.at(at.node);
    const Graph& graph = *instances_[child].graph;
    const auto port = static_cast<std::size_t>(at.slot);
    if (port >= graph.outputs.size() || graph.outputs[port].links.empty()) {
        return false;
    }
    const Link* link = graph.find_link(graph.outputs[port].links.front());
    if (link == nullptr) {
        return false;
    }
    at.instance = child;
    if (link->from_outside) {
        return from_host_input(at, into, static_cast<std::size_t>(link->origin_slot));
    }
    if (link->origin == kNone) {
        into.kind = Resolved::Kind::no_origin;
        return false;
    }
    at.node = link->origin;
    at.slot = link->origin_slot;
    return true;
}

// The node that gave the link its name: in the same graph, or in one around it.
bool Resolver::to_setter(Place& at) const {
    const Node& getter = instances_[at.instance].graph->nodes[at.node];
    for (std::size_t i = at.instance; i != kNone; i = instances_[i].parent) {
        const Graph& graph = *instances_[i].graph;
        const std::string key = setter_key(graph, getter);
        const auto found = setters_.find(key);
        if (!key.empty() && found != setters_.end()) {
            at.instance = i;
            at.node = found->second;
            at.slot = 0;
            return true;
        }
    }
    return false;
}

}  // namespace comfyd::workflow::ui
