// The graphs of a workflow as often as they are used: one instance of the root, and one of a
// subgraph for every node that stands for it, with the values that this node gives. Pure; any
// thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "workflow/convert/ui/graph.hpp"

namespace comfyd::workflow::ui {

inline constexpr std::size_t kNestingMax = 64;

// What an input of a subgraph stands for.
struct Promotion {
    bool is_widget = false;
    std::optional<json::value> value;  // nullopt: none
};

struct Instance {
    const Graph* graph = nullptr;
    std::size_t parent = kNone;
    std::size_t host = kNone;  // the place of the node in the parent's graph
    std::string prefix;        // of the ids of its nodes: "4:7:"
    bool is_sent = true;       // false inside a root node that is muted or bypassed
    std::unordered_map<std::size_t, std::size_t> children;  // instances by the place of the host
    std::vector<Promotion> promoted;                        // for every input of the subgraph
    // Values of inner widgets that the host overrides, by node and widget.
    std::map<std::pair<std::size_t, std::size_t>, json::value> overrides;
};

class Instances {
public:
    // Code::invalid_workflow when there are too many nodes or levels, or a subgraph holds itself.
    static Result<Instances> make(const Document& document);

    const std::vector<Instance>& all() const { return all_; }  // the root first
    const Instance& operator[](std::size_t at) const { return all_[at]; }
    // The value of a widget of a node, overrides regarded; nullptr: none.
    const json::value* value_of(std::size_t instance, std::size_t node, std::size_t widget) const;

private:
    Result<> expand(const Document& document);
    void promote(std::size_t at);
    void apply_proxies(std::size_t at, const Node& host, const json::array& proxies);
    void override_inner(
        std::size_t at,
        const std::string& node_id,
        std::string_view widget,
        const json::value& value
    );
    Promotion initial_value(std::size_t at, const Port& port) const;

    std::vector<Instance> all_;
};

}  // namespace comfyd::workflow::ui
