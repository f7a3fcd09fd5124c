// A workflow in the editor's save format, read: the root graph and the definitions of its
// subgraphs. Points into the given document and the definitions of classes. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/convert/ui/widgets.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow::ui {

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);
using LinkId = std::int64_t;

enum class NodeKind {
    runs,       // a class of the workers
    host,       // stands for a subgraph
    reroute,    // gives on what it gets
    primitive,  // writes its value into the widgets it is linked to
    set,        // gives a link a name
    get,        // takes a link by its name
    note,       // only for people
    unknown,
};

// The editor's modes; all others run.
inline constexpr std::int64_t kMuted = 2;
inline constexpr std::int64_t kBypassed = 4;

struct Socket {
    std::string name;
    std::string type;
    std::optional<LinkId> link;
    std::size_t widget = kNone;  // the place in Node::widgets
};

struct Node {
    std::string id;  // as in the prompt, without those of hosts
    std::string type;
    std::string title;
    NodeKind kind = NodeKind::unknown;
    std::int64_t mode = 0;
    const NodeDefinition* definition = nullptr;
    std::size_t subgraph = kNone;  // of a host: the place in Document::graphs
    std::vector<Socket> inputs;
    std::vector<std::string> output_types;
    std::vector<Widget> widgets;
    // Of a host: values that a primitive node gives, by the place of the input.
    std::vector<std::pair<std::size_t, json::value>> given;
    const json::object* source = nullptr;

    bool is_active() const { return mode != kMuted && mode != kBypassed; }
    const json::value* saved_value(std::size_t at) const;  // of widgets_values; nullptr: none
};

struct Link {
    std::size_t origin = kNone;  // the place of the node; kNone: there is none such
    std::int64_t origin_slot = 0;
    bool from_outside = false;  // from the subgraph's own inputs: origin_slot is the place of one
    std::string origin_id;      // as given
};

// An input or output of a subgraph.
struct Port {
    std::string name;
    std::string type;
    std::vector<LinkId> links;
};

struct Graph {
    struct Target {
        std::size_t node = kNone;
        std::size_t input = kNone;
    };

    std::string id;
    std::vector<Node> nodes;
    std::unordered_map<std::string, std::size_t> index;  // by the id in the file
    std::unordered_map<LinkId, Link> links;
    std::unordered_map<LinkId, Target> targets;  // who names a link
    std::vector<Port> inputs;
    std::vector<Port> outputs;

    const Link* find_link(LinkId link) const;
    const Target* find_target(LinkId link) const;
};

struct Document {
    std::vector<Graph> graphs;  // the root first, then the definitions in the order of the file

    const Graph& root() const { return graphs.front(); }
};

// Code::invalid_workflow for what is not in that format or too large.
Result<Document> read_document(const json::object& workflow, const PromptClasses& classes);

// Code::invalid_workflow about one node or, without an id, about the whole.
Error document_error(std::string message, std::string node_id = {}, std::string class_type = {});

}  // namespace comfyd::workflow::ui
