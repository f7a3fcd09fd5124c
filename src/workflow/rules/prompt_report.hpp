// Collects what is found while a prompt is judged, and makes ComfyUI's answer of it. Owned by one
// judging; the size of the answer is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::workflow {

// An error of a cycle repeats the whole cycle, so it counts for more.
inline constexpr std::size_t kCycleNodesPerError = 16;

class PromptReport {
public:
    explicit PromptReport(const json::object& prompt);

    // A node is settled once; what is found later about the same node replaces it.
    void settle(std::size_t node, bool valid, json::array errors);
    // More about a node that is settled and not valid.
    void join(std::size_t node, json::array errors);
    bool is_settled(std::size_t node) const { return states_[node] != State::open; }
    bool is_valid(std::size_t node) const { return states_[node] == State::good; }
    // So many errors that they are reported without what can be long.
    bool is_long() const;
    void count_error(std::size_t weight = 1) { errors_ += weight; }

    // `output` is settled and not valid: it depends on whatever is wrong among the nodes that it
    // needs.
    void add_failed_output(std::size_t output);
    const std::string& details() const { return details_; }
    json::object take_node_errors() { return std::move(node_errors_); }

private:
    enum class State : unsigned char { open, good, bad };

    std::string_view id_of(std::size_t node) const;
    template <class Visit>
    void each_source(std::size_t node, Visit visit) const;
    const json::array& errors_of(std::size_t node) const;
    void add_dependent(std::size_t node, std::string_view output);

    const json::object& prompt_;
    std::vector<State> states_;
    std::vector<json::array> found_;  // by node, until it is told of in node_errors_
    std::size_t errors_ = 0;
    std::size_t dependents_ = 0;
    std::size_t visits_ = 0;
    std::vector<std::size_t> seen_by_;  // the failed output that came to a node last, plus one
    std::string details_;
    json::object node_errors_;
};

// Errors about the shape of a node.
json::object malformed_node(std::string_view id, std::string_view what);
json::object missing_class(std::string_view id, const json::object& node);
json::object cycle_error(
    const std::string& text, const std::string& node_id, const json::array& nodes, bool brief
);

}  // namespace comfyd::workflow
