#include "workflow/convert/ui/instances.hpp"

#include "workflow/convert/ui/reading.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow::ui {
namespace {

const json::array* property_list(const Node& node, std::string_view key) {
    const json::value* list = property(*node.source, key);
    return list != nullptr ? list->if_array() : nullptr;
}

// Every subgraph ends: none holds itself, however many steps away. Depth first, without
// recursion.
Result<> check_nesting(const Document& document) {
    enum class Mark : char { fresh, open, done };
    std::vector<Mark> marks(document.graphs.size(), Mark::fresh);
    std::vector<std::pair<std::size_t, std::size_t>> stack{{0, 0}};
    marks[0] = Mark::open;
    while (!stack.empty()) {
        auto& [at, next] = stack.back();
        const std::vector<Node>& nodes = document.graphs[at].nodes;
        while (next < nodes.size() && nodes[next].subgraph == kNone) {
            ++next;
        }
        if (next == nodes.size()) {
            marks[at] = Mark::done;
            stack.pop_back();
            continue;
        }
        const Node& host = nodes[next++];
        if (marks[host.subgraph] == Mark::open) {
            return fail(document_error(
                "node " + host.id + ": the subgraph " + host.type + " contains itself",
                host.id,
                host.type
            ));
        }
        if (marks[host.subgraph] == Mark::fresh) {
            marks[host.subgraph] = Mark::open;
            stack.emplace_back(host.subgraph, 0);
        }
    }
    return {};
}

// Values that the editor put aside when it could not tell which input they belong to.
void apply_quarantine(const Node& host, Instance& instance) {
    const json::array* entries = property_list(host, "proxyWidgetErrorQuarantine");
    if (entries == nullptr) {
        return;
    }
    for (const json::value& entry : *entries) {
        const json::object* members = entry.if_object();
        const json::value* original =
            members != nullptr ? json::find(*members, "originalEntry") : nullptr;
        const json::value* value = members != nullptr ? json::find(*members, "hostValue") : nullptr;
        const json::array* pair = original != nullptr ? original->if_array() : nullptr;
        if (value == nullptr || pair == nullptr || pair->size() < 2 || (*pair)[0] != "-1" ||
            !(*pair)[1].is_string()) {
            continue;
        }
        const std::vector<Port>& ports = instance.graph->inputs;
        for (std::size_t i = 0; i < ports.size(); ++i) {
            if (instance.promoted[i].is_widget && ports[i].name == view((*pair)[1].get_string())) {
                instance.promoted[i].value = *value;
            }
        }
    }
}

}  // namespace

Result<Instances> Instances::make(const Document& document) {
    if (auto nesting = check_nesting(document); !nesting) {
        return fail(std::move(nesting.error()));
    }
    Instances made;
    if (auto expanded = made.expand(document); !expanded) {
        return fail(std::move(expanded.error()));
    }
    // The inner ones first: an outer one starts with their values.
    for (std::size_t at = made.all_.size(); at-- > 1;) {
        made.promote(at);
    }
    return made;
}

// Breadth first, so that a parent always comes before its children.
Result<> Instances::expand(const Document& document) {
    std::vector<std::size_t> depths{0};
    Instance root;
    root.graph = &document.root();
    all_.push_back(std::move(root));
    std::size_t nodes = document.root().nodes.size();
    for (std::size_t at = 0; at < all_.size(); ++at) {
        const Graph& graph = *all_[at].graph;
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const Node& node = graph.nodes[i];
            if (node.kind != NodeKind::host) {
                continue;
            }
            if (depths[at] >= kNestingMax) {
                return fail(document_error(
                    "the subgraphs of the workflow are nested more than " +
                        std::to_string(kNestingMax) + " deep",
                    all_[at].prefix + node.id,
                    node.type
                ));
            }
            Instance child;
            child.graph = &document.graphs[node.subgraph];
            child.parent = at;
            child.host = i;
            child.prefix = all_[at].prefix + node.id + ":";
            child.is_sent = all_[at].is_sent && (at != 0 || node.is_active());
            nodes += child.graph->nodes.size() + 1;
            if (nodes > kNodesMax) {
                return fail(document_error(
                    "the workflow has more than " + std::to_string(kNodesMax) +
                    " nodes when its subgraphs are unfolded"
                ));
            }
            all_[at].children.emplace(i, all_.size());
            all_.push_back(std::move(child));
            depths.push_back(depths[at] + 1);
        }
    }
    return {};
}

const json::value* Instances::value_of(std::size_t instance, std::size_t node, std::size_t widget)
    const {
    const Instance& in = all_[instance];
    if (const auto found = in.overrides.find({node, widget}); found != in.overrides.end()) {
        return &found->second;
    }
    const auto& value = in.graph->nodes[node].widgets[widget].value;
    return value ? &*value : nullptr;
}

Promotion Instances::initial_value(std::size_t at, const Port& port) const {
    const Instance& instance = all_[at];
    for (const LinkId link : port.links) {
        const Graph::Target* target = instance.graph->find_target(link);
        if (target == nullptr) {
            continue;
        }
        const Node& node = instance.graph->nodes[target->node];
        const Socket& input = node.inputs[target->input];
        if (input.widget != kNone) {
            const json::value* value = value_of(at, target->node, input.widget);
            return {true, value != nullptr ? std::optional<json::value>(*value) : std::nullopt};
        }
        if (node.kind == NodeKind::host) {
            const Instance& child = all_[instance.children.at(target->node)];
            if (target->input < child.promoted.size() && child.promoted[target->input].is_widget) {
                return child.promoted[target->input];
            }
        }
    }
    return {};
}

void Instances::promote(std::size_t at) {
    const Node& host = all_[all_[at].parent].graph->nodes[all_[at].host];
    const json::array* proxies = property_list(host, "proxyWidgets");
    const bool has_proxies = proxies != nullptr && !proxies->empty();
    if (has_proxies) {
        apply_proxies(at, host, *proxies);
    }
    Instance& instance = all_[at];
    const std::vector<Port>& ports = instance.graph->inputs;
    instance.promoted.resize(ports.size());
    std::size_t saved_at = 0;
    for (std::size_t i = 0; i < ports.size(); ++i) {
        instance.promoted[i] = initial_value(at, ports[i]);
        if (!instance.promoted[i].is_widget || has_proxies) {
            continue;
        }
        if (const json::value* saved = host.saved_value(saved_at)) {
            instance.promoted[i].value = *saved;
        }
        ++saved_at;
    }
    apply_quarantine(host, instance);
    for (const auto& [port, value] : host.given) {
        if (port < instance.promoted.size() && instance.promoted[port].is_widget) {
            instance.promoted[port].value = value;
        }
    }
}

void Instances::apply_proxies(std::size_t at, const Node& host, const json::array& proxies) {
    for (std::size_t i = 0; i < proxies.size(); ++i) {
        const json::array* pair = proxies[i].if_array();
        const json::value* value = host.saved_value(i);
        if (pair == nullptr || pair->size() < 2 || !(*pair)[1].is_string() || value == nullptr ||
            value->is_null()) {
            continue;
        }
        override_inner(
            at, id_text(&(*pair)[0]).value_or(""), view((*pair)[1].get_string()), *value
        );
    }
}

void Instances::override_inner(
    std::size_t at, const std::string& node_id, std::string_view widget, const json::value& value
) {
    Instance& instance = all_[at];
    const auto found = instance.graph->index.find(node_id);
    if (found == instance.graph->index.end() || widget.starts_with("$$")) {
        return;
    }
    const Node& node = instance.graph->nodes[found->second];
    if (node.kind == NodeKind::host) {
        Instance& child = all_[instance.children.at(found->second)];
        for (std::size_t i = 0; i < child.promoted.size(); ++i) {
            if (child.promoted[i].is_widget && child.graph->inputs[i].name == widget) {
                child.promoted[i].value = value;
            }
        }
        return;
    }
    for (std::size_t i = 0; i < node.widgets.size(); ++i) {
        if (node.widgets[i].name == widget) {
            instance.overrides.insert_or_assign({found->second, i}, value);
        }
    }
}

}  // namespace comfyd::workflow::ui
