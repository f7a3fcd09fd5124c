#include "workflow/check.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "workflow/asset_ref.hpp"
#include "workflow/check_errors.hpp"

namespace comfyd::workflow {
namespace {

bool is_link(const json::value& input) {
    const auto* items = input.if_array();
    return items != nullptr && items->size() == 2 && (*items)[0].is_string() &&
           (*items)[1].is_number();
}

// Collects findings over one workflow.
class Checker {
public:
    Checker(
        const json::object& nodes,
        const Catalogue& catalogue,
        const std::vector<MissingFile>& missing
    )
        : nodes_(nodes), catalogue_(catalogue), missing_(missing) {}

    Result<> run() {
        for (const auto& node : nodes_) {
            check_node(node.key(), node.value());
        }
        if (findings_.empty()) {
            check_cycles();
        }
        if (findings_.empty() && catalogue_.knows_workers() && !has_output_) {
            add(
                {"prompt_no_outputs",
                 "the workflow has no output node (such as SaveImage), so running it would produce "
                 "nothing",
                 "",
                 "",
                 ""}
            );
        }
        if (findings_.empty() && catalogue_.knows_workers()) {
            check_values();
        }
        if (!findings_.empty()) {
            return fail(findings_error(findings_, missing_classes_));
        }
        return {};
    }

private:
    void add(Finding finding) { findings_.push_back(std::move(finding)); }

    void check_node(std::string_view id, const json::value& value) {
        const auto* node = value.if_object();
        if (node == nullptr) {
            add(
                {"invalid_node",
                 "node " + std::string(id) + " is not an object",
                 std::string(id),
                 "",
                 ""}
            );
            return;
        }
        const json::value* type = json::find(*node, "class_type");
        if (type == nullptr || !type->is_string() || type->get_string().empty()) {
            add(
                {"missing_node_type",
                 "node " + std::string(id) + " has no class_type",
                 std::string(id),
                 "",
                 "class_type"}
            );
            return;
        }
        const std::string class_type(type->get_string());
        if (class_type.find_first_of("\n\t") != std::string::npos) {
            add(
                {"missing_node_type",
                 "node " + std::string(id) + " has a line break or tab in its class_type",
                 std::string(id),
                 "",
                 "class_type"}
            );
            return;
        }
        const NodeDefinition* known = catalogue_.find(class_type);
        if (known == nullptr && catalogue_.knows_workers()) {
            missing_classes_.insert(class_type);
            add(
                {"missing_node_type",
                 "no worker has the node class '" + class_type + "' (node " + std::string(id) + ")",
                 std::string(id),
                 class_type,
                 "class_type"}
            );
        }
        has_output_ = has_output_ || (known != nullptr && known->output_node());
        const json::value* inputs = json::find(*node, "inputs");
        if (inputs != nullptr && !inputs->is_object()) {
            add(
                {"invalid_node",
                 "'inputs' of node " + std::string(id) + " is not an object",
                 std::string(id),
                 class_type,
                 "inputs"}
            );
            return;
        }
        static const json::object kNone;
        check_inputs(id, class_type, known, inputs != nullptr ? inputs->get_object() : kNone);
    }

    void check_inputs(
        std::string_view id,
        const std::string& class_type,
        const NodeDefinition* known,
        const json::object& inputs
    ) {
        for (const auto& input : inputs) {
            const std::string name(input.key());
            if (const auto* items = input.value().if_array()) {
                check_link(id, class_type, name, *items, input.value());
            }
        }
        if (known == nullptr) {
            return;
        }
        for (const InputDefinition& input : known->inputs_for(inputs)) {
            if (input.need == Need::required && !inputs.contains(input.name)) {
                add(
                    {"required_input_missing",
                     "node " + std::string(id) + " (" + class_type +
                         ") lacks the required input '" + input.name + "'",
                     std::string(id),
                     class_type,
                     input.name}
                );
            }
        }
    }

    void check_link(
        std::string_view id,
        const std::string& class_type,
        const std::string& input,
        const json::array& items,
        const json::value& value
    ) {
        const std::string where =
            "input '" + input + "' of node " + std::string(id) + " (" + class_type + ")";
        if (!is_link(value)) {
            add(
                {"bad_linked_input",
                 where + " is a list but no link: a link is [\"node id\", output number]",
                 std::string(id),
                 class_type,
                 input}
            );
            return;
        }
        const auto found = nodes_.find(items[0].get_string());
        if (found == nodes_.end()) {
            add(
                {"bad_linked_input",
                 where + " is linked to node " + std::string(items[0].get_string()) +
                     ", which does not exist",
                 std::string(id),
                 class_type,
                 input}
            );
            return;
        }
        const auto* source = found->value().if_object();
        const json::value* type = source != nullptr ? json::find(*source, "class_type") : nullptr;
        const NodeDefinition* known =
            type != nullptr && type->is_string() ? catalogue_.find(type->get_string()) : nullptr;
        const double slot = items[1].to_number<double>();
        if (slot < 0 ||
            (known != nullptr && slot >= static_cast<double>(known->outputs().size()))) {
            add(
                {"bad_linked_input",
                 where + " is linked to output " + json::serialize(items[1]) + " of node " +
                     std::string(items[0].get_string()) + ", which does not exist",
                 std::string(id),
                 class_type,
                 input}
            );
        }
    }

    // What a worker itself would say about types, limits and choices.
    void check_values() {
        json::object copy = nodes_;  // judging coerces values
        PromptOptions options;
        options.own_checks_known = false;
        const PromptVerdict verdict =
            judge_prompt(copy, FileCheckedClasses(catalogue_, missing_), options);
        for (Finding& finding : findings_of(verdict.node_errors)) {
            if (!is_asset(finding.node_id, finding.input)) {
                add(std::move(finding));
            }
        }
    }

    // The file will be put in its place before the workflow runs.
    bool is_asset(const std::string& id, const std::string& input) const {
        const json::value* inputs = json::find(nodes_.at(id).get_object(), "inputs");
        const json::value* value =
            inputs != nullptr ? json::find(inputs->get_object(), input) : nullptr;
        bool found = false;
        if (value != nullptr) {
            each_asset_ref_in(*value, [&found](const json::value&) { found = true; });
        }
        return found;
    }

    // Iterative depth-first search: a workflow may be a chain of thousands of nodes.
    void check_cycles() {
        enum class Mark { open, done };
        std::unordered_map<std::string_view, Mark> marks;
        struct Frame {
            std::string_view id;
            std::vector<std::string_view> sources;
            std::size_t next = 0;
        };
        for (const auto& root : nodes_) {
            if (marks.contains(root.key())) {
                continue;
            }
            std::vector<Frame> stack;
            stack.push_back({root.key(), sources_of(root.value())});
            marks[root.key()] = Mark::open;
            while (!stack.empty()) {
                Frame& top = stack.back();
                if (top.next == top.sources.size()) {
                    marks[top.id] = Mark::done;
                    stack.pop_back();
                    continue;
                }
                const std::string_view source = top.sources[top.next++];
                const auto mark = marks.find(source);
                if (mark == marks.end()) {
                    marks[source] = Mark::open;
                    stack.push_back({source, sources_of(nodes_.at(source))});
                } else if (mark->second == Mark::open) {
                    add(
                        {"dependency_cycle",
                         "node " + std::string(source) + " depends on itself through node " +
                             std::string(stack.back().id),
                         std::string(source),
                         "",
                         ""}
                    );
                    return;
                }
            }
        }
    }

    static std::vector<std::string_view> sources_of(const json::value& node) {
        std::vector<std::string_view> sources;
        const json::value* inputs = json::find(node.get_object(), "inputs");
        if (inputs != nullptr) {
            for (const auto& input : inputs->get_object()) {
                if (is_link(input.value())) {
                    sources.push_back(input.value().get_array()[0].get_string());
                }
            }
        }
        return sources;
    }

    const json::object& nodes_;
    const Catalogue& catalogue_;
    const std::vector<MissingFile>& missing_;
    std::set<std::string, std::less<>> missing_classes_;
    std::vector<Finding> findings_;
    bool has_output_ = false;
};

}  // namespace

bool is_ui_format(const json::object& workflow) {
    const json::value* nodes = json::find(workflow, "nodes");
    return nodes != nullptr && nodes->is_array();
}

const json::object& unwrap(const json::object& workflow) {
    for (const char* wrapper : {"prompt", "workflow", "output"}) {
        const json::value* inner = json::find(workflow, wrapper);
        if (inner != nullptr && inner->is_object() && !inner->get_object().contains("class_type")) {
            return inner->get_object();
        }
    }
    return workflow;
}

Result<> check_nodes(
    const json::object& workflow,
    const Catalogue& catalogue,
    const std::vector<MissingFile>& missing
) {
    if (is_ui_format(workflow)) {
        return fail(
            Code::workflow_format_ui,
            "this is the editor's save format, which cannot be executed as it is; "
            "export it with \"Export (API)\" and send that"
        );
    }
    if (workflow.empty()) {
        return fail(
            Code::invalid_workflow,
            "the workflow is empty",
            {{"missing_nodes", json::array()}, {"invalid_connections", json::array()}}
        );
    }
    if (workflow.size() > kNodesMax) {
        return fail(
            Code::invalid_workflow,
            "the workflow has " + std::to_string(workflow.size()) + " nodes; at most " +
                std::to_string(kNodesMax) + " are allowed",
            {{"missing_nodes", json::array()}, {"invalid_connections", json::array()}}
        );
    }
    return Checker(workflow, catalogue, missing).run();
}

tl::expected<std::string, WorkerLack> find_requirement(
    const json::object& workflow, const Catalogue& catalogue, std::string_view pool
) {
    std::string requirement = with_pool(catalogue.requirement_of(workflow), pool);
    if (auto lack = find_lack(catalogue, requirement)) {
        return tl::unexpected(std::move(*lack));
    }
    return requirement;
}

Result<Checked> check(
    const json::object& workflow,
    const Catalogue& catalogue,
    std::string_view pool,
    const std::vector<MissingFile>& missing
) {
    if (auto checked = check_nodes(workflow, catalogue, missing); !checked) {
        return fail(std::move(checked.error()));
    }
    auto requirement = find_requirement(workflow, catalogue, pool);
    if (!requirement) {
        return fail(requirement.error().to_error());
    }
    return Checked{std::move(*requirement), static_cast<int>(workflow.size())};
}

}  // namespace comfyd::workflow
