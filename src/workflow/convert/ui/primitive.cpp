#include "workflow/convert/ui/primitive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workflow/convert/ui/reading.hpp"

namespace comfyd::workflow::ui {
namespace {

constexpr int kFollowMax = 64;  // hosts inside hosts

// The widget that a host's input stands for, and where it is; nullptr: none.
const Widget* promoted_widget(const Document& document, std::size_t graph_at, std::size_t port_at) {
    for (int depth = 0; depth < kFollowMax; ++depth) {
        const Graph& graph = document.graphs[graph_at];
        if (port_at >= graph.inputs.size()) {
            return nullptr;
        }
        const Node* host = nullptr;
        for (const LinkId link : graph.inputs[port_at].links) {
            const Graph::Target* target = graph.find_target(link);
            if (target == nullptr) {
                continue;
            }
            const Node& node = graph.nodes[target->node];
            const Socket& input = node.inputs[target->input];
            if (input.widget != kNone) {
                return &node.widgets[input.widget];
            }
            if (node.kind == NodeKind::host) {
                host = &node;
                graph_at = node.subgraph;
                port_at = target->input;
                break;
            }
        }
        if (host == nullptr) {
            return nullptr;
        }
    }
    return nullptr;
}

struct Target {
    Node* node = nullptr;
    std::size_t input = 0;
    const Widget* widget = nullptr;
};

double clamp_to(double value, double low, double high) {
    return std::min(std::max(value, low), high);
}

// JavaScript's toFixed: the nearest, and of two the larger.
double to_fixed(double value, int places) {
    const long double scale = std::pow(10.0L, places);
    const long double scaled = std::floor(std::abs(static_cast<long double>(value)) * scale + 0.5L);
    return std::copysign(static_cast<double>(scaled / scale), value);
}

json::value rounded_float(const Widget& widget, double value) {
    const double step = std::max(widget.number("step").value_or(0.5), 1e-12);
    const int places = std::clamp(static_cast<int>(-std::floor(std::log10(step))), 0, 15);
    const double unit = widget.number("round").value_or(std::pow(10.0, -places));
    if (unit > 0) {
        value = std::round(value / unit) * unit;
    }
    value = to_fixed(value, places);
    return clamp_to(value, widget.number("min").value_or(0), widget.number("max").value_or(2048));
}

json::value rounded_int(const Widget& widget, const json::value& original, double value) {
    const double step = std::max(widget.number("step").value_or(1), 1.0);
    // Seeds go up to 2^64, where a double is no longer exact.
    if (step == 1 && !original.is_double() && original.to_number<double>() == value) {
        return original;
    }
    const double shift = std::fmod(widget.number("min").value_or(0), step);
    value = std::round((value - shift) / step) * step + shift;
    if (std::abs(value) < 9e15) {
        return static_cast<std::int64_t>(value);
    }
    return value;
}

bool is_number_kind(const Widget& widget) {
    return widget.kind == "INT" || widget.kind == "FLOAT";
}

void apply(const json::value& given, bool replaces_names, const std::vector<Target>& targets) {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    for (const Target& target : targets) {
        if (is_number_kind(*target.widget)) {
            low = std::max(low, target.widget->number("min").value_or(0));
            high = std::min(high, target.widget->number("max").value_or(2048));
        }
    }
    for (const Target& target : targets) {
        json::value value = given;
        if (given.is_number() && is_number_kind(*target.widget)) {
            const double limited = clamp_to(given.to_number<double>(), low, high);
            value = target.widget->kind == "INT" ? rounded_int(*target.widget, given, limited)
                                                 : rounded_float(*target.widget, limited);
        }
        const Socket& input = target.node->inputs[target.input];
        if (input.widget != kNone) {
            target.node->widgets[input.widget].value = std::move(value);
            target.node->widgets[input.widget].replaces_names = replaces_names;
        } else {
            target.node->given.emplace_back(target.input, std::move(value));
        }
    }
}

bool replaces_names(const Node& primitive) {
    const json::value* asked = property(*primitive.source, "Run widget replace on values");
    return asked != nullptr && asked->is_bool() && asked->get_bool();
}

}  // namespace

void apply_primitives(Document& document) {
    for (Graph& graph : document.graphs) {
        std::unordered_map<std::size_t, std::vector<Target>> targets;  // by the primitive node
        for (Node& node : graph.nodes) {
            for (std::size_t i = 0; i < node.inputs.size(); ++i) {
                const Link* link =
                    node.inputs[i].link ? graph.find_link(*node.inputs[i].link) : nullptr;
                if (link == nullptr || link->origin == kNone ||
                    graph.nodes[link->origin].kind != NodeKind::primitive) {
                    continue;
                }
                const Widget* widget =
                    node.inputs[i].widget != kNone ? &node.widgets[node.inputs[i].widget]
                    : node.kind == NodeKind::host  ? promoted_widget(document, node.subgraph, i)
                                                   : nullptr;
                if (widget != nullptr) {
                    targets[link->origin].push_back({&node, i, widget});
                    node.inputs[i].link.reset();
                }
            }
        }
        for (const auto& [primitive, linked] : targets) {
            if (graph.nodes[primitive].widgets.front().value) {
                const json::value given = *graph.nodes[primitive].widgets.front().value;
                apply(given, replaces_names(graph.nodes[primitive]), linked);
            }
        }
    }
}

}  // namespace comfyd::workflow::ui
