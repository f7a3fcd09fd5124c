#include "workflow/convert/ui/graph.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "workflow/convert/ui/reading.hpp"
#include "workflow/rules/check.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow::ui {
namespace {

constexpr std::size_t kLinksMax = 200'000;
constexpr std::size_t kSocketsMax = 10'000;  // of one node
constexpr std::size_t kSocketsTotalMax = 500'000;
constexpr std::size_t kSubgraphsMax = 2'000;

// Nodes that live in the editor alone; their packs have no class of that name.
constexpr std::array<std::string_view, 12> kEditorOnly = {
    "Note",
    "MarkdownNote",
    "Label (rgthree)",
    "Bookmark (rgthree)",
    "Fast Muter (rgthree)",
    "Fast Bypasser (rgthree)",
    "Fast Groups Muter (rgthree)",
    "Fast Groups Bypasser (rgthree)",
    "Fast Actions Button (rgthree)",
    "Mute / Bypass Repeater (rgthree)",
    "Mute / Bypass Relay (rgthree)",
    "Random Unmuter (rgthree)",
};

std::vector<Port> read_ports(const json::object& source, std::string_view key) {
    std::vector<Port> made;
    const json::array* ports = array_at(source, key);
    const std::size_t count = ports != nullptr ? std::min(ports->size(), kSocketsMax) : 0;
    for (std::size_t i = 0; i < count; ++i) {
        Port port;
        if (const json::object* from = (*ports)[i].if_object()) {
            port.name = text(*from, "name");
            port.type = type_text(*from);
            const json::array* links = array_at(*from, "linkIds");
            for (std::size_t at = 0; links != nullptr && at < links->size(); ++at) {
                if (const auto id = integer(&(*links)[at])) {
                    port.links.push_back(*id);
                }
            }
        }
        made.push_back(std::move(port));
    }
    return made;
}

class Reader {
public:
    explicit Reader(const PromptClasses& classes) : classes_(classes) {}

    Result<Document> read(const json::object& workflow) {
        if (auto listed = list_definitions(workflow); !listed) {
            return fail(std::move(listed.error()));
        }
        document_.graphs.resize(definitions_.size() + 1);
        for (std::size_t at = 1; at < document_.graphs.size(); ++at) {
            document_.graphs[at].inputs = read_ports(*definitions_[at - 1], "inputs");
            document_.graphs[at].outputs = read_ports(*definitions_[at - 1], "outputs");
        }
        start_ids(workflow);
        for (std::size_t at = 0; at < document_.graphs.size(); ++at) {
            auto read = read_graph(at == 0 ? workflow : *definitions_[at - 1], at);
            if (!read) {
                return fail(std::move(read.error()));
            }
        }
        return std::move(document_);
    }

private:
    // Definitions may be kept inside definitions; all have one space of names.
    Result<> list_definitions(const json::object& workflow) {
        std::vector<const json::object*> open{&workflow};
        for (std::size_t at = 0; at < open.size(); ++at) {
            const json::object* definitions = object_at(*open[at], "definitions");
            const json::array* subgraphs =
                definitions != nullptr ? array_at(*definitions, "subgraphs") : nullptr;
            if (subgraphs == nullptr) {
                continue;
            }
            for (const json::value& subgraph : *subgraphs) {
                const json::object* source = subgraph.if_object();
                const std::string id = source != nullptr ? text(*source, "id") : "";
                if (id.empty()) {
                    return fail(document_error("a subgraph definition has no id"));
                }
                if (definitions_.size() >= kSubgraphsMax) {
                    return fail(document_error(
                        "the workflow has more than " + std::to_string(kSubgraphsMax) +
                        " subgraph definitions"
                    ));
                }
                if (subgraphs_.emplace(id, definitions_.size() + 1).second) {
                    definitions_.push_back(source);
                    open.push_back(source);
                }
            }
        }
        return {};
    }

    // The editor gives inner nodes a new id where one is taken.
    void start_ids(const json::object& workflow) {
        const json::object* state = object_at(workflow, "state");
        const auto last = integer(
            state != nullptr ? json::find(*state, "lastNodeId")
                             : json::find(workflow, "last_node_id")
        );
        last_id_ = std::clamp<std::int64_t>(last.value_or(0), 0, kNumericIdMax);
    }

    std::string prompt_id(const json::value* given, const std::string& id, bool is_root) {
        const auto number = integer(given);
        if (!number || *number < 0 || *number > kNumericIdMax) {
            return id;
        }
        if (is_root || used_ids_.insert(*number).second) {
            used_ids_.insert(*number);
            if (!is_root) {
                last_id_ = std::max(last_id_, *number);
            }
            return id;
        }
        do {
            ++last_id_;
        } while (!used_ids_.insert(last_id_).second);
        return std::to_string(last_id_);
    }

    Result<> read_graph(const json::object& source, std::size_t at) {
        Graph& graph = document_.graphs[at];
        graph.id = at == 0 ? "" : text(source, "id");
        const json::array* nodes = array_at(source, "nodes");
        if (nodes == nullptr) {
            return fail(document_error("the workflow has no list of nodes"));
        }
        node_count_ += nodes->size();
        if (node_count_ > kNodesMax) {
            return fail(
                document_error("the workflow has more than " + std::to_string(kNodesMax) + " nodes")
            );
        }
        graph.nodes.reserve(nodes->size());
        for (const json::value& node : *nodes) {
            auto read = read_node(graph, node, at == 0);
            if (!read) {
                return read;
            }
        }
        return read_links(graph, source, at != 0);
    }

    Result<> read_node(Graph& graph, const json::value& from, bool is_root) {
        const json::object* source = from.if_object();
        const auto id = source != nullptr ? id_text(json::find(*source, "id")) : std::nullopt;
        if (!id) {
            return fail(document_error("a node of the workflow is not an object with an id"));
        }
        Node node;
        node.source = source;
        node.type = text(*source, "type");
        if (!graph.index.emplace(*id, graph.nodes.size()).second) {
            return fail(document_error("two nodes have the id " + *id, *id, node.type));
        }
        node.id = prompt_id(json::find(*source, "id"), *id, is_root);
        node.mode = integer(json::find(*source, "mode")).value_or(0);
        classify(node);
        node.title = title_of(node);
        read_layout(node);
        read_outputs(node);
        socket_count_ += node.inputs.size() + node.output_types.size();
        if (socket_count_ > kSocketsTotalMax) {
            return fail(document_error("the nodes of the workflow have too many inputs and outputs")
            );
        }
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i].link) {
                graph.targets.try_emplace(
                    *node.inputs[i].link, Graph::Target{graph.nodes.size(), i}
                );
            }
        }
        graph.nodes.push_back(std::move(node));
        return {};
    }

    void classify(Node& node) const {
        const auto subgraph = subgraphs_.find(node.type);
        if (subgraph != subgraphs_.end()) {
            node.kind = NodeKind::host;
            node.subgraph = subgraph->second;
            return;
        }
        node.definition = classes_.find(node.type);
        if (node.definition != nullptr) {
            node.kind = NodeKind::runs;
        } else if (node.type == "Reroute" || node.type == "Reroute (rgthree)") {
            node.kind = NodeKind::reroute;
        } else if (node.type == "PrimitiveNode") {
            node.kind = NodeKind::primitive;
        } else if (node.type == "SetNode") {
            node.kind = NodeKind::set;
        } else if (node.type == "GetNode") {
            node.kind = NodeKind::get;
        } else if (std::ranges::find(kEditorOnly, node.type) != kEditorOnly.end()) {
            node.kind = NodeKind::note;
        }
    }

    static std::string title_of(const Node& node) {
        std::string title = text(*node.source, "title");
        if (title.empty() && node.definition != nullptr) {
            title = text(node.definition->info(), "display_name");
        }
        return title.empty() ? node.type : title;
    }

    void read_layout(Node& node) {
        std::vector<const json::object*> given;
        if (const json::array* inputs = array_at(*node.source, "inputs")) {
            for (const json::value& input : *inputs) {
                if (input.is_object() && given.size() < kSocketsMax) {
                    given.push_back(&input.get_object());
                }
            }
        }
        NodeLayout layout;
        if (node.kind == NodeKind::runs) {
            layout = lay_out(
                node.type, specs_of(*node.definition), json::find(*node.source, "widgets_values")
            );
        } else if (node.kind == NodeKind::host) {
            for (const Port& port : document_.graphs[node.subgraph].inputs) {
                layout.sockets.push_back({port.name, port.type, kNone, false});
            }
        } else if (node.kind == NodeKind::primitive) {
            Widget widget;
            widget.name = "value";
            if (const json::value* first = node.saved_value(0)) {
                widget.value = *first;
            }
            layout.widgets.push_back(std::move(widget));
        }
        node.widgets = std::move(layout.widgets);
        join_sockets(node, layout.sockets, given);
    }

    // Those of the class in its order, then those that only the file knows.
    static void join_sockets(
        Node& node,
        const std::vector<SocketSpec>& own,
        const std::vector<const json::object*>& given
    ) {
        std::unordered_map<std::string_view, std::size_t> by_name;
        std::vector<bool> used(given.size());
        for (std::size_t i = 0; i < given.size(); ++i) {
            by_name.try_emplace(name_of(*given[i]), i);
        }
        const auto add_given = [&](std::size_t at) {
            node.inputs.push_back(
                {text(*given[at], "name"),
                 type_text(*given[at]),
                 integer(json::find(*given[at], "link")),
                 kNone}
            );
            used[at] = true;
        };
        for (const SocketSpec& spec : own) {
            if (spec.grows) {
                const std::string prefix = spec.name + ".";
                for (std::size_t i = 0; i < given.size(); ++i) {
                    if (!used[i] && name_of(*given[i]).starts_with(prefix)) {
                        add_given(i);
                    }
                }
                continue;
            }
            Socket socket{spec.name, spec.type, std::nullopt, spec.widget};
            if (const auto found = by_name.find(spec.name); found != by_name.end()) {
                used[found->second] = true;
                socket.link = integer(json::find(*given[found->second], "link"));
            }
            node.inputs.push_back(std::move(socket));
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (!used[i]) {
                add_given(i);
            }
        }
    }

    static std::string_view name_of(const json::object& input) {
        const json::value* name = json::find(input, "name");
        return name != nullptr && name->is_string() ? view(name->get_string()) : std::string_view();
    }

    void read_outputs(Node& node) const {
        if (node.kind == NodeKind::host) {
            for (const Port& port : document_.graphs[node.subgraph].outputs) {
                node.output_types.push_back(port.type);
            }
            return;
        }
        if (node.definition != nullptr) {
            node.output_types = node.definition->outputs();
        }
        const json::array* given = array_at(*node.source, "outputs");
        const std::size_t count = given != nullptr ? std::min(given->size(), kSocketsMax) : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const json::object* output = (*given)[i].if_object();
            std::string type = output != nullptr ? type_text(*output) : "*";
            if (i >= node.output_types.size()) {
                node.output_types.push_back(std::move(type));
            } else if (node.output_types[i] == "COMFY_MATCHTYPE_V3") {
                node.output_types[i] = std::move(type);
            }
        }
    }

    // Lists in version 0.4, where the editor does not understand objects, and objects in version 1,
    // where lists are understood too.
    Result<> read_links(Graph& graph, const json::object& source, bool is_subgraph) const {
        const json::value* version = is_subgraph ? nullptr : json::find(source, "version");
        const bool only_lists =
            version != nullptr && version->is_double() && version->get_double() == 0.4;
        const json::array* links = array_at(source, "links");
        if (links == nullptr) {
            return {};
        }
        if (links->size() > kLinksMax) {
            return fail(
                document_error("the workflow has more than " + std::to_string(kLinksMax) + " links")
            );
        }
        graph.links.reserve(links->size());
        for (const json::value& from : *links) {
            const json::array* items = from.if_array();
            const json::object* members = from.if_object();
            const json::value* id = nullptr;
            const json::value* origin = nullptr;
            const json::value* slot = nullptr;
            if (items != nullptr && items->size() >= 5) {
                id = &(*items)[0];
                origin = &(*items)[1];
                slot = &(*items)[2];
            } else if (members != nullptr && only_lists) {
                return fail(document_error(
                    "a link of the workflow is an object; in a document of version 0.4 links are "
                    "[id, from node, from slot, to node, to slot, type]"
                ));
            } else if (members != nullptr) {
                id = json::find(*members, "id");
                origin = json::find(*members, "origin_id");
                slot = json::find(*members, "origin_slot");
            } else if (!from.is_null()) {
                return fail(document_error(
                    "a link of the workflow is neither an object nor [id, from node, from slot, to "
                    "node, to slot, type]"
                ));
            }
            const auto number = integer(id);
            if (!number) {
                continue;
            }
            Link link;
            link.origin_id = id_text(origin).value_or("");
            link.origin_slot = std::max<std::int64_t>(integer(slot).value_or(0), 0);
            link.from_outside = is_subgraph && link.origin_id == "-10";
            const auto node = graph.index.find(link.origin_id);
            link.origin = node != graph.index.end() ? node->second : kNone;
            graph.links.insert_or_assign(*number, std::move(link));
        }
        return {};
    }

    const std::vector<InputSpec>& specs_of(const NodeDefinition& definition) {
        const auto [found, is_new] = specs_.try_emplace(&definition);
        if (is_new) {
            found->second = read_specs(definition);
        }
        return found->second;
    }

    const PromptClasses& classes_;
    Document document_;
    std::vector<const json::object*> definitions_;
    std::unordered_map<std::string, std::size_t> subgraphs_;
    std::unordered_map<const NodeDefinition*, std::vector<InputSpec>> specs_;
    std::unordered_set<std::int64_t> used_ids_;
    std::int64_t last_id_ = 0;
    std::size_t node_count_ = 0;
    std::size_t socket_count_ = 0;
};

}  // namespace

const json::value* Node::saved_value(std::size_t at) const {
    const json::value* saved = json::find(*source, "widgets_values");
    if (saved == nullptr) {
        return nullptr;
    }
    if (const json::array* values = saved->if_array()) {
        return at < values->size() ? &(*values)[at] : nullptr;
    }
    const json::object* values = saved->if_object();
    return values != nullptr ? values->if_contains(std::to_string(at)) : nullptr;
}

const Link* Graph::find_link(LinkId link) const {
    const auto found = links.find(link);
    return found != links.end() ? &found->second : nullptr;
}

const Graph::Target* Graph::find_target(LinkId link) const {
    const auto found = targets.find(link);
    return found != targets.end() ? &found->second : nullptr;
}

Result<Document> read_document(const json::object& workflow, const PromptClasses& classes) {
    return Reader(classes).read(workflow);
}

Error document_error(std::string message, std::string node_id, std::string class_type) {
    Issue issue;
    issue.reason = "invalid_workflow";
    issue.code = issue_code(issue.reason);
    issue.message = std::move(message);
    issue.node_id = std::move(node_id);
    issue.class_type = std::move(class_type);
    return issues_error({std::move(issue)});
}

}  // namespace comfyd::workflow::ui
