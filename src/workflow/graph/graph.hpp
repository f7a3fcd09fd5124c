// A workflow as a graph: nodes by position, their links, the order in which they can run, and which
// of them an output needs. Made once for a workflow and shared by whatever looks at its structure.
// Points into the workflow, which must outlive it unchanged. Pure; any thread. No recursion: a
// chain may be as long as the workflow. What is not in the form of a node is a node without class,
// inputs and links.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"

namespace comfyd::workflow {

class Graph {
public:
    using Position = std::size_t;
    static constexpr Position kNone = static_cast<Position>(-1);

    struct Link {
        std::string_view input;
        Position source;  // of the node that it comes from
        int slot;
    };
    struct Node {
        std::string_view id;
        std::string_view class_type;
        const json::object* inputs;  // never nullptr
        std::size_t first_link;
        std::size_t link_count;
    };

    explicit Graph(const json::object& workflow);

    const std::vector<Node>& nodes() const { return nodes_; }
    const Node& operator[](Position at) const { return nodes_[at]; }
    std::size_t size() const { return nodes_.size(); }
    std::span<const Link> links(Position of) const {
        return {links_.data() + nodes_[of].first_link, nodes_[of].link_count};
    }
    // kNone: there is none.
    Position find(std::string_view id) const;
    // The source of a linked input; kNone: it is not linked.
    const Link* link(Position of, std::string_view input) const;

    // Sources before those that need them. Nodes of a cycle, and those that need one, are not in
    // it.
    const std::vector<Position>& order() const { return order_; }
    bool has_cycle() const { return order_.size() != nodes_.size(); }
    // Of a node: how many steps its longest chain of sources has. 0 for those in a cycle.
    const std::vector<std::size_t>& levels() const { return levels_; }
    std::size_t depth() const;  // of the longest chain, in nodes
    // Nodes whose outputs no other node takes.
    std::vector<Position> ends() const;
    // True for those that one of `from` needs, themselves included.
    std::vector<bool> needed_by(const std::vector<Position>& from) const;

private:
    void read_links(const json::object& workflow);
    void sort();

    std::vector<Node> nodes_;
    std::vector<Link> links_;
    std::unordered_map<std::string_view, Position> index_;
    std::vector<Position> order_;
    std::vector<std::size_t> levels_;
};

// The title that an editor gave a node; empty: none.
std::string_view title_of(const json::value& node);

}  // namespace comfyd::workflow
