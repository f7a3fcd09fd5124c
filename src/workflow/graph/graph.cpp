#include "workflow/graph/graph.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

const json::object kEmpty;

// A link is [node id, slot].
const json::array* as_link(const json::value& input) {
    const json::array* items = input.if_array();
    return items != nullptr && items->size() == 2 && (*items)[0].is_string() &&
                   (*items)[1].is_int64()
               ? items
               : nullptr;
}

}  // namespace

Graph::Graph(const json::object& workflow) {
    nodes_.reserve(workflow.size());
    index_.reserve(workflow.size());
    for (const auto& entry : workflow) {
        Node node{view(entry.key()), {}, &kEmpty, 0, 0};
        if (const json::object* members = entry.value().if_object()) {
            const json::value* type = members->if_contains("class_type");
            if (type != nullptr && type->is_string()) {
                node.class_type = view(type->get_string());
            }
            const json::value* inputs = members->if_contains("inputs");
            if (inputs != nullptr && inputs->is_object()) {
                node.inputs = &inputs->get_object();
            }
        }
        index_.emplace(node.id, nodes_.size());
        nodes_.push_back(node);
    }
    read_links(workflow);
    sort();
}

void Graph::read_links(const json::object& workflow) {
    links_.reserve(workflow.size() * 3);
    for (Node& node : nodes_) {
        node.first_link = links_.size();
        for (const auto& input : *node.inputs) {
            const json::array* link = as_link(input.value());
            if (link == nullptr) {
                continue;
            }
            const Position source = find(view((*link)[0].get_string()));
            const std::int64_t slot = (*link)[1].get_int64();
            if (source != kNone && slot >= 0 && slot < 1'000'000) {
                links_.push_back({view(input.key()), source, static_cast<int>(slot)});
            }
        }
        node.link_count = links_.size() - node.first_link;
    }
}

void Graph::sort() {
    const std::size_t count = nodes_.size();
    levels_.assign(count, 0);
    std::vector<std::size_t> open(count);          // links whose source is not in order_ yet
    std::vector<std::size_t> first(count + 1, 0);  // of a node's users, in `users`
    for (const Link& link : links_) {
        ++first[link.source + 1];
    }
    for (Position at = 0; at < count; ++at) {
        first[at + 1] += first[at];
        open[at] = nodes_[at].link_count;
    }
    std::vector<Position> users(links_.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (Position at = 0; at < count; ++at) {
        for (const Link& link : links(at)) {
            users[next[link.source]++] = at;
        }
    }
    order_.reserve(count);
    for (Position at = 0; at < count; ++at) {
        if (open[at] == 0) {
            order_.push_back(at);
        }
    }
    for (std::size_t done = 0; done < order_.size(); ++done) {
        const Position source = order_[done];
        for (std::size_t i = first[source]; i < first[source + 1]; ++i) {
            const Position user = users[i];
            levels_[user] = std::max(levels_[user], levels_[source] + 1);
            if (--open[user] == 0) {
                order_.push_back(user);
            }
        }
    }
    for (Position at = 0; at < count; ++at) {
        levels_[at] = open[at] == 0 ? levels_[at] : 0;
    }
}

Graph::Position Graph::find(std::string_view id) const {
    const auto found = index_.find(id);
    return found == index_.end() ? kNone : found->second;
}

const Graph::Link* Graph::link(Position of, std::string_view input) const {
    for (const Link& candidate : links(of)) {
        if (candidate.input == input) {
            return &candidate;
        }
    }
    return nullptr;
}

std::size_t Graph::depth() const {
    std::size_t deepest = 0;
    for (const Position at : order_) {
        deepest = std::max(deepest, levels_[at] + 1);
    }
    return deepest;
}

std::vector<Graph::Position> Graph::ends() const {
    std::vector<bool> used(nodes_.size());
    for (const Link& link : links_) {
        used[link.source] = true;
    }
    std::vector<Position> found;
    for (Position at = 0; at < nodes_.size(); ++at) {
        if (!used[at]) {
            found.push_back(at);
        }
    }
    return found;
}

std::vector<bool> Graph::needed_by(const std::vector<Position>& from) const {
    std::vector<bool> needed(nodes_.size());
    std::vector<Position> open;
    for (const Position at : from) {
        if (!needed[at]) {
            needed[at] = true;
            open.push_back(at);
        }
    }
    while (!open.empty()) {
        const Position at = open.back();
        open.pop_back();
        for (const Link& link : links(at)) {
            if (!needed[link.source]) {
                needed[link.source] = true;
                open.push_back(link.source);
            }
        }
    }
    return needed;
}

std::string_view title_of(const json::value& node) {
    const json::object* members = node.if_object();
    const json::value* meta = members != nullptr ? members->if_contains("_meta") : nullptr;
    if (meta == nullptr || !meta->is_object()) {
        return {};
    }
    const json::value* title = meta->get_object().if_contains("title");
    return title != nullptr && title->is_string() ? view(title->get_string()) : std::string_view();
}

}  // namespace comfyd::workflow
