#include "engine/run/schedule.hpp"

#include <algorithm>

namespace comfyd::engine {

bool is_lazy(const PlannedNode& node, const PlannedInput& input) {
    return input.input->lazy && node.type->node.needed != nullptr;
}

Schedule::Schedule(const Plan& plan, const std::vector<std::size_t>& units)
    : plan_(plan), units_(units), settled_(plan.nodes.size()), entries_(plan.nodes.size()) {}

void Schedule::grow() {
    settled_.resize(plan_.nodes.size());
    entries_.resize(plan_.nodes.size());
}

std::vector<std::size_t> Schedule::add(std::size_t node) {
    std::vector<std::size_t> added;
    std::vector<std::pair<std::size_t, std::size_t>> links;
    std::vector<std::size_t> to_add{node};
    while (!to_add.empty()) {
        const std::size_t current = to_add.back();
        to_add.pop_back();
        Entry& entry = entries_[current];
        if (entry.pending) {
            continue;
        }
        const PlannedNode& planned = plan_.nodes[current];
        entry = Entry();
        entry.pending = true;
        entry.position = by_position_.size();
        entry.rank = is_output(current) || planned.type->node.is_async ? first : other;
        by_position_.push_back(current);
        ready_.insert(place(current));
        added.push_back(current);
        for (const std::size_t index : planned.links) {
            const PlannedInput& input = planned.inputs[index];
            if (!is_lazy(planned, input) && !is_settled(units_[input.link.source])) {
                to_add.push_back(input.link.source);
                links.emplace_back(input.link.source, current);
            }
        }
    }
    for (const auto& [source, waiting] : links) {
        link(source, waiting);
    }
    return added;
}

std::vector<std::size_t> Schedule::require(std::size_t node, std::size_t source) {
    if (is_settled(units_[source])) {
        return {};
    }
    std::vector<std::size_t> added = add(source);
    link(source, node);
    return added;
}

std::optional<std::size_t> Schedule::next() const {
    if (!ready_.empty()) {
        return by_position_[ready_.begin()->second];
    }
    return aside_.empty() ? std::nullopt : std::optional(aside_.front());
}

void Schedule::set_aside(std::size_t node) {
    ready_.erase(place(node));
    aside_.push_back(node);
}

void Schedule::take_back(std::size_t node) {
    if (std::erase(aside_, node) != 0) {
        ready_.insert(place(node));
    }
}

void Schedule::remove(std::size_t node) {
    ready_.erase(place(node));
    std::erase(aside_, node);
    entries_[node].pending = false;
    for (const std::size_t blocked : entries_[node].blocks) {
        if (--entries_[blocked].waits_for == 0) {
            ready_.insert(place(blocked));
        }
    }
}

void Schedule::link(std::size_t source, std::size_t node) {
    Entry& from = entries_[source];
    if (std::ranges::find(entries_[node].blocked_by, source) != entries_[node].blocked_by.end()) {
        return;
    }
    from.blocks.push_back(node);
    entries_[node].blocked_by.push_back(source);
    if (entries_[node].waits_for++ == 0) {
        ready_.erase(place(node));
    }
    if (is_output(node)) {
        raise(source, before_output);
    } else if (entries_[node].rank == before_output) {
        raise(source, two_before_output);
    }
}

void Schedule::raise(std::size_t node, Rank rank) {
    Entry& entry = entries_[node];
    if (entry.rank <= rank) {
        return;
    }
    const bool is_ready = ready_.erase(place(node)) != 0;
    entry.rank = rank;
    if (is_ready) {
        ready_.insert(place(node));
    }
    if (rank == before_output) {
        for (const std::size_t source : entry.blocked_by) {
            raise(source, two_before_output);
        }
    }
}

bool Schedule::is_output(std::size_t node) const {
    return plan_.nodes[node].type->definition->output_node();
}

std::pair<Schedule::Rank, std::size_t> Schedule::place(std::size_t node) const {
    return {entries_[node].rank, entries_[node].position};
}

}  // namespace comfyd::engine
