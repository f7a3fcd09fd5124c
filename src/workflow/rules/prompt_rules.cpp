#include "workflow/rules/prompt_rules.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"
#include "workflow/rules/input_rules.hpp"
#include "workflow/rules/link_rules.hpp"
#include "workflow/rules/prompt_repair.hpp"
#include "workflow/rules/prompt_report.hpp"

namespace comfyd::workflow {
namespace {

using Position = std::size_t;  // of a node in the prompt

// A node whose inputs are being looked at. Those below it on the stack wait for it.
struct Frame {
    Position node;
    const OwnCheck* own_check;
    bool told;  // own_check is all that there is
    InputList inputs;
    std::size_t next = 0;  // the input to look at
    bool valid = true;
    json::array errors{};
    std::map<std::string, std::string> received{};  // types of links, for the class's own check
};

class Judge {
public:
    Judge(json::object& prompt, const PromptClasses& classes, const PromptOptions& options)
        : prompt_(prompt), classes_(classes), options_(options), report_(prompt) {}

    PromptVerdict run();

private:
    enum class Step { again, done };

    std::optional<json::object> find_classes();

    std::optional<Raised> judge(Position root);
    std::optional<Raised> open(Position node);
    tl::expected<Step, Raised> step();
    std::optional<Raised> close(Frame& frame);
    void blame_source(const Raised& raised);
    void record_cycle(Position node);

    std::optional<Raised> judge_link(Frame& frame, const InputSubject& subject);

    InputSubject subject(Frame& frame, const InputDefinition& input, json::value& value) const;
    json::object& inputs_of(Position node) const;
    std::string id_of(Position node) const;
    bool is_on_path(Position node) const { return on_path_[node]; }

    json::object& prompt_;
    const PromptClasses& classes_;
    const PromptOptions& options_;
    std::vector<const NodeDefinition*> definitions_;  // by position
    std::vector<Position> outputs_;
    std::vector<bool> on_path_;
    std::vector<Frame> path_;  // from the output down to the node being judged
    PromptReport report_;
};

PromptVerdict Judge::run() {
    PromptVerdict verdict;
    if (prompt_.size() > kPromptNodesMax) {
        verdict.error = make_prompt_error(
            "invalid_prompt",
            "Prompt has too many nodes",
            std::to_string(prompt_.size()) + " nodes, at most " + std::to_string(kPromptNodesMax)
        );
        return verdict;
    }
    if (auto error = find_classes()) {
        verdict.error = std::move(*error);
        return verdict;
    }
    if (outputs_.empty()) {
        verdict.error = make_prompt_error("prompt_no_outputs", "Prompt has no outputs", "");
        return verdict;
    }
    on_path_.resize(prompt_.size());
    for (const Position output : outputs_) {
        if (auto raised = judge(output)) {
            report_.settle(
                output,
                false,
                {make_prompt_error(
                    "exception_during_validation",
                    "Exception when validating node",
                    raised->text,
                    {{"exception_type", raised->type}, {"traceback", json::array()}}
                )}
            );
        }
        if (report_.is_valid(output)) {
            verdict.outputs_to_execute.push_back(id_of(output));
        } else {
            report_.add_failed_output(output);
        }
    }
    verdict.accepted = !verdict.outputs_to_execute.empty();
    if (verdict.accepted) {
        verdict.repairs = repair(prompt_, verdict.outputs_to_execute);
    } else {
        verdict.error = make_prompt_error(
            "prompt_outputs_failed_validation",
            "Prompt outputs failed validation",
            report_.details()
        );
    }
    verdict.node_errors = report_.take_node_errors();
    return verdict;
}

// Fills definitions_ and outputs_; what is wrong with the first node that is.
std::optional<json::object> Judge::find_classes() {
    definitions_.reserve(prompt_.size());
    std::unordered_set<std::string_view> targets;
    if (options_.targets != nullptr) {
        targets.insert(options_.targets->begin(), options_.targets->end());
    }
    for (const auto& entry : prompt_) {
        const std::string_view id = view(entry.key());
        const json::object* node = entry.value().if_object();
        if (node == nullptr) {
            return malformed_node(
                id,
                "is not an object. A prompt maps node ids to {class_type, inputs}; export the "
                "workflow in API format"
            );
        }
        const json::value* class_type = node->if_contains("class_type");
        if (class_type != nullptr && (class_type->is_array() || class_type->is_object())) {
            return malformed_node(id, "has a class_type that is not a string");
        }
        const NodeDefinition* definition = class_type != nullptr && class_type->is_string()
                                               ? classes_.find(view(class_type->get_string()))
                                               : nullptr;
        if (definition == nullptr) {
            return missing_class(id, *node);
        }
        const json::value* inputs = node->if_contains("inputs");
        if (inputs != nullptr && !inputs->is_object()) {
            return malformed_node(id, "has inputs that are not an object");
        }
        if (definition->output_node() && (options_.targets == nullptr || targets.contains(id))) {
            outputs_.push_back(definitions_.size());
        }
        definitions_.push_back(definition);
    }
    return std::nullopt;
}

json::object& Judge::inputs_of(Position node) const {
    return (prompt_.begin() + node)->value().get_object().at("inputs").get_object();
}

std::string Judge::id_of(Position node) const {
    return std::string(view((prompt_.begin() + node)->key()));
}

InputSubject Judge::subject(Frame& frame, const InputDefinition& input, json::value& value) const {
    return {
        .node = *definitions_[frame.node],
        .input = input,
        .value = value,
        .own_check = frame.own_check,
        .options = options_,
        .told = frame.told,
        .brief = report_.is_long(),
    };
}

// Afterwards `root` and all that it needs are settled, unless it raised.
std::optional<Raised> Judge::judge(Position root) {
    if (report_.is_settled(root)) {
        return std::nullopt;
    }
    std::optional<Raised> raised = open(root);
    while (!path_.empty()) {
        if (!raised) {
            auto stepped = step();
            if (stepped && *stepped == Step::again) {
                continue;
            }
            raised = stepped ? close(path_.back()) : std::optional(std::move(stepped.error()));
        }
        // The node at the end of the path is finished, one way or the other.
        const Position finished = path_.back().node;
        on_path_[finished] = false;
        path_.pop_back();
        if (path_.empty()) {
            break;
        }
        if (raised) {
            blame_source(*raised);
            raised.reset();
        } else if (!report_.is_valid(finished)) {
            path_.back().valid = false;
        }
    }
    return raised;
}

// Puts the node at the end of the path, even when it raises.
std::optional<Raised> Judge::open(Position node) {
    const NodeDefinition& definition = *definitions_[node];
    const json::object& entry = (prompt_.begin() + node)->value().get_object();
    const bool has_inputs = entry.contains("inputs");
    static const json::object kNone;
    path_.push_back(
        {.node = node,
         .own_check = classes_.own_check(definition),
         .told = classes_.tells_own_checks(definition),
         .inputs = definition.inputs_for(has_inputs ? inputs_of(node) : kNone)}
    );
    on_path_[node] = true;
    if (!has_inputs) {
        return Raised{"KeyError", "'inputs'"};
    }
    return std::nullopt;
}

// Looks at one input of the node at the end of the path, which may put another node there.
tl::expected<Judge::Step, Raised> Judge::step() {
    Frame& frame = path_.back();
    if (frame.next == frame.inputs.size()) {
        return Step::done;
    }
    const InputDefinition& input = frame.inputs[frame.next++];
    json::value* value = inputs_of(frame.node).if_contains(input.name);
    if (value == nullptr) {
        if (input.need == Need::required) {
            const auto dot = input.nested ? input.name.rfind('.') : std::string::npos;
            frame.errors.push_back(make_prompt_error(
                "required_input_missing",
                "Required input is missing",
                dot == std::string::npos ? input.name : input.name.substr(dot + 1),
                {{"input_name", input.name}}
            ));
            report_.count_error();
        }
        return Step::again;
    }
    const InputSubject about = subject(frame, input, *value);
    if (value->is_array()) {
        if (auto raised = judge_link(frame, about)) {
            return tl::unexpected(std::move(*raised));
        }
        return Step::again;
    }
    auto finding = judge_literal(about);
    if (!finding) {
        return tl::unexpected(std::move(finding.error()));
    }
    if (*finding) {
        frame.errors.push_back(std::move(**finding));
        report_.count_error();
    }
    return Step::again;
}

// All inputs of the node have been looked at.
std::optional<Raised> Judge::close(Frame& frame) {
    if (frame.own_check != nullptr) {
        const std::size_t before = frame.errors.size();
        auto raised = run_own_check(
            *frame.own_check, frame.inputs, inputs_of(frame.node), frame.received, frame.errors
        );
        if (raised) {
            return raised;
        }
        report_.count_error(frame.errors.size() - before);
    }
    if (report_.is_settled(frame.node)) {
        // A cycle through this node has been recorded below it already.
        report_.join(frame.node, std::move(frame.errors));
    } else {
        const bool valid = frame.valid && frame.errors.empty();
        report_.settle(frame.node, valid, std::move(frame.errors));
    }
    return std::nullopt;
}

// The source of the link that the node at the end of the path was looking at has raised.
void Judge::blame_source(const Raised& raised) {
    Frame& frame = path_.back();
    frame.valid = false;
    const InputDefinition& input = frame.inputs[frame.next - 1];
    json::value& link = inputs_of(frame.node).at(input.name);
    json::object extra = input_facts(subject(frame, input, link));
    extra["exception_message"] = raised.text;
    extra["exception_type"] = raised.type;
    extra["traceback"] = json::array();
    extra["linked_node"] = link;
    const auto source = prompt_.find(link.get_array().front().get_string());
    report_.settle(
        static_cast<Position>(source - prompt_.begin()),
        false,
        {make_prompt_error(
            "exception_during_inner_validation",
            "Exception when validating inner node",
            raised.text,
            std::move(extra)
        )}
    );
    report_.count_error();
}

std::optional<Raised> Judge::judge_link(Frame& frame, const InputSubject& about) {
    const json::array& link = about.value.get_array();
    if (link.size() != 2) {
        json::object extra = input_facts(about);
        extra["received_value"] = link;
        frame.errors.push_back(make_prompt_error(
            "bad_linked_input",
            "Bad linked input, must be a length-2 list of [node_id, slot_index]",
            about.input.name,
            std::move(extra)
        ));
        report_.count_error();
        return std::nullopt;
    }
    const auto source = find_source(prompt_, definitions_, link);
    if (!source) {
        return source.error();
    }
    if (frame.own_check != nullptr) {
        frame.received[about.input.name] = type_text(source->type);
    }
    if (auto error = judge_type(about, source->type)) {
        frame.errors.push_back(std::move(*error));
        report_.count_error();
        return std::nullopt;
    }
    const Position node = source->node;
    if (report_.is_settled(node)) {
        frame.valid = frame.valid && report_.is_valid(node);
    } else if (is_on_path(node)) {
        record_cycle(node);
        frame.valid = false;
    } else if (auto raised = open(node)) {
        // `frame` is no longer a good reference: the path has grown.
        on_path_[node] = false;
        path_.pop_back();
        blame_source(*raised);
    }
    return std::nullopt;
}

void Judge::record_cycle(Position node) {
    const auto begin =
        std::ranges::find_if(path_, [&](const Frame& frame) { return frame.node == node; });
    const auto show = [&](Position at) {
        return id_of(at) + " (" + definitions_[at]->name() + ")";
    };
    std::string text;
    json::array nodes;
    for (auto at = begin; at != path_.end() && !report_.is_long(); ++at) {
        text += show(at->node) + " -> ";
        nodes.emplace_back(id_of(at->node));
    }
    text += show(node);
    for (auto at = begin; at != path_.end(); ++at) {
        if (!report_.is_settled(at->node)) {
            report_.settle(
                at->node, false, {cycle_error(text, id_of(at->node), nodes, report_.is_long())}
            );
            report_.count_error(1 + nodes.size() / kCycleNodesPerError);
        }
    }
}

}  // namespace

PromptVerdict judge_prompt(
    json::object& prompt, const PromptClasses& classes, const PromptOptions& options
) {
    return Judge(prompt, classes, options).run();
}

}  // namespace comfyd::workflow
