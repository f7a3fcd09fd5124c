#include "workflow/rules/loose_ends.hpp"

#include <set>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/graph.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

constexpr std::size_t kOutputsOfUnknown = 64;

// ComfyUI takes these for numbers of outputs too; whatever else reads the links here does not.
bool is_odd_slot(const json::value& slot) {
    return slot.is_bool() || (slot.is_int64() && slot.get_int64() < 0);
}

class LooseEnds {
public:
    LooseEnds(
        const json::object& workflow, const Catalogue& catalogue, const std::vector<Issue>& told
    )
        : workflow_(workflow), catalogue_(catalogue), graph_(workflow), judged_(graph_.size()) {
        for (const Issue& issue : told) {
            told_.emplace(issue.node_id, issue.input);
        }
        if (told.empty()) {
            find_judged();
        }
    }

    std::vector<Issue> find() {
        for (Position at = 0; at < graph_.size(); ++at) {
            look_at(at);
        }
        if (told_.empty() && issues_.empty() && graph_.has_cycle()) {
            add_cycle();
        }
        return std::move(issues_);
    }

private:
    const NodeDefinition* class_of(Position at) const {
        return catalogue_.find(graph_[at].class_type);
    }
    bool knows(Position at, std::string_view input) const {
        const NodeDefinition* definition = class_of(at);
        return definition != nullptr &&
               definition->find_input(input, *graph_[at].inputs) != nullptr;
    }

    // From the outputs along the inputs that the classes know, as ComfyUI goes.
    void find_judged() {
        std::vector<Position> open;
        for (Position at = 0; at < graph_.size(); ++at) {
            const NodeDefinition* definition = class_of(at);
            if (definition != nullptr && definition->output_node()) {
                open.push_back(at);
            }
        }
        while (!open.empty()) {
            const Position at = open.back();
            open.pop_back();
            if (judged_[at]) {
                continue;
            }
            judged_[at] = true;
            for (const Graph::Link& link : graph_.links(at)) {
                if (knows(at, link.input)) {
                    open.push_back(link.source);
                }
            }
        }
    }

    void look_at(Position at) {
        const NodeDefinition* definition = class_of(at);
        if (!judged_[at] && definition != nullptr) {
            for (const InputDefinition& input : definition->inputs_for(*graph_[at].inputs)) {
                if (input.need == Need::required && !graph_[at].inputs->contains(input.name)) {
                    add(at, input.name, "required_input_missing", "Required input is missing");
                }
            }
        }
        for (const auto& input : *graph_[at].inputs) {
            const json::array* link = input.value().if_array();
            if (link == nullptr) {
                continue;
            }
            const std::string_view name = view(input.key());
            std::string problem;
            if (!judged_[at] || !knows(at, name)) {
                problem = link_problem(*link, workflow_, catalogue_);
            }
            if (problem.empty() && link->size() == 2 && is_odd_slot((*link)[1])) {
                problem = "the number of an output is 0 or more";
            }
            if (!problem.empty()) {
                add(at, name, "bad_linked_input", std::move(problem), &input.value());
            }
        }
    }

    void add(
        Position at,
        std::string_view input,
        std::string_view reason,
        std::string message,
        const json::value* link = nullptr
    ) {
        if (issues_.size() == kIssuesMax ||
            told_.contains({std::string(graph_[at].id), std::string(input)})) {
            return;
        }
        Issue issue;
        issue.stage = Stage::semantic;
        issue.code = issue_code(reason);
        issue.reason = reason;
        issue.node_id = graph_[at].id;
        issue.class_type = graph_[at].class_type;
        issue.input = input;
        issue.message = "node " + issue.node_id + " (" + issue.class_type + ")" +
                        (input.empty() ? "" : ", input '" + issue.input + "'") + ": " +
                        std::move(message);
        if (link != nullptr) {
            issue.expected = "[\"node id\", output number]";
            issue.got = shortened(*link);
        }
        issues_.push_back(std::move(issue));
    }

    // Goes back along links inside of the cycles until it comes to a node again.
    void add_cycle() {
        std::vector<bool> is_outside(graph_.size());
        for (const Position at : graph_.order()) {
            is_outside[at] = true;
        }
        Position at = 0;
        while (is_outside[at]) {
            ++at;
        }
        std::vector<bool> seen(graph_.size());
        Position from = at;
        while (!seen[at]) {
            seen[at] = true;
            for (const Graph::Link& link : graph_.links(at)) {
                if (!is_outside[link.source]) {
                    from = std::exchange(at, link.source);
                    break;
                }
            }
        }
        add(at,
            "",
            "dependency_cycle",
            "it depends on itself through node " + std::string(graph_[from].id));
    }

    const json::object& workflow_;
    const Catalogue& catalogue_;
    const Graph graph_;
    std::vector<bool> judged_;                            // by ComfyUI's rules, elsewhere
    std::set<std::pair<std::string, std::string>> told_;  // node and input
    std::vector<Issue> issues_;
};

}  // namespace

std::vector<Issue> find_loose_ends(
    const json::object& workflow, const Catalogue& catalogue, const std::vector<Issue>& told
) {
    return LooseEnds(workflow, catalogue, told).find();
}

std::string link_problem(
    const json::array& link, const json::object& workflow, const PromptClasses& classes
) {
    if (link.size() != 2) {
        return "it is a list but no link: a link is [\"node id\", output number]";
    }
    if (!link[0].is_string()) {
        return "the first part of a link must be the id of a node as text";
    }
    const auto source = workflow.find(link[0].get_string());
    if (source == workflow.end()) {
        return "it is linked to node " + json::serialize(shortened(link[0])) +
               ", which does not exist";
    }
    const json::object* node = source->value().if_object();
    const json::value* type = node != nullptr ? node->if_contains("class_type") : nullptr;
    const NodeDefinition* known =
        type != nullptr && type->is_string() ? classes.find(view(type->get_string())) : nullptr;
    const std::size_t outputs = known != nullptr ? known->outputs().size() : kOutputsOfUnknown;
    if (!slot_index(link[1], outputs)) {
        return "it is linked to output " + json::serialize(shortened(link[1])) + " of node " +
               std::string(link[0].get_string()) + ", which has " + std::to_string(outputs);
    }
    return {};
}

}  // namespace comfyd::workflow
