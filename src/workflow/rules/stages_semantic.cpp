// The semantic stage: what ComfyUI says about a prompt, with what was expected, what came and what
// is nearest to it.
#include <algorithm>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "base/text.hpp"
#include "workflow/catalogue/models.hpp"
#include "workflow/catalogue/nearest.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/rules/loose_ends.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::workflow {
namespace {

// A class of which nothing is known: takes and gives anything. So the rest of a workflow can be
// judged though some of its nodes cannot.
const NodeDefinition& stand_in() {
    static const std::shared_ptr<const NodeDefinition> made = [] {
        json::array outputs;
        for (int i = 0; i < 64; ++i) {
            outputs.emplace_back("*");
        }
        json::object info{{"input", json::object()}, {"output", std::move(outputs)}};
        return NodeDefinition::from_object_info("?", std::move(info)).value();
    }();
    return *made;
}

class TolerantClasses final : public PromptClasses {
public:
    explicit TolerantClasses(const Catalogue& catalogue) : catalogue_(catalogue) {}
    const NodeDefinition* find(std::string_view class_type) const override {
        const NodeDefinition* known = catalogue_.find(class_type);
        return known != nullptr ? known : &stand_in();
    }
    const OwnCheck* own_check(const NodeDefinition& definition) const override {
        return catalogue_.own_check(definition);
    }
    bool tells_own_checks(const NodeDefinition& definition) const override {
        return catalogue_.tells_own_checks(definition);
    }

private:
    const Catalogue& catalogue_;
};

// Nodes that are not in the form of one become nodes of which nothing is known.
json::object readable_copy(const json::object& workflow) {
    json::object copy(
        workflow,
        boost::json::make_shared_resource<boost::json::monotonic_resource>(
            std::min<std::size_t>(workflow.size() * 512 + 1024, 1 << 20)
        )
    );
    for (auto& entry : copy) {
        json::object* node = entry.value().if_object();
        if (node == nullptr) {
            node = &entry.value().emplace_object();
            (*node)["inputs"].emplace_object();
        }
        json::value& type = (*node)["class_type"];
        if (!type.is_string()) {
            type = "";
        }
        if (json::value* inputs = node->if_contains("inputs");
            inputs != nullptr && !inputs->is_object()) {
            inputs->emplace_object();
        }
    }
    return copy;
}

bool holds_asset_ref(const json::value& value) {
    bool found = false;
    each_asset_ref_in(value, [&found](const json::value&) { found = true; });
    return found;
}

// A worker may have said it.
std::string text_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_string() ? std::string(view(found->get_string())) : "";
}

// Makes findings of ComfyUI's errors, perhaps of a worker's: what is not in their form is left out.
class Teller {
public:
    Teller(const json::object& workflow, const Catalogue& catalogue, bool accepted)
        : workflow_(workflow), catalogue_(catalogue), accepted_(accepted) {}

    void tell_node(std::string_view id, const json::object& about) {
        const auto found = workflow_.find(boost::json::string_view(id.data(), id.size()));
        const json::object* node = found == workflow_.end() ? nullptr : found->value().if_object();
        const json::value* inputs = node != nullptr ? node->if_contains("inputs") : nullptr;
        inputs_ = inputs != nullptr && inputs->is_object() ? &inputs->get_object() : nullptr;
        id_ = id;
        class_type_ = text_of(about, "class_type");
        definition_ = catalogue_.find(class_type_);
        const json::value* errors = json::find(about, "errors");
        if (errors == nullptr || !errors->is_array()) {
            return;
        }
        for (const json::value& error : errors->get_array()) {
            if (issues_.size() >= kIssuesMax) {
                return;
            }
            if (error.is_object()) {
                tell_error(error.get_object());
            }
        }
    }
    void add(Issue issue) { issues_.push_back(std::move(issue)); }
    std::vector<Issue> take() { return std::move(issues_); }

private:
    Issue start(std::string_view reason, std::string_view input, std::string message) const {
        Issue issue;
        issue.stage = Stage::semantic;
        // ComfyUI runs the outputs that are good and leaves the others.
        issue.severity = accepted_ ? Severity::warning : Severity::error;
        issue.code = issue_code(reason);
        issue.reason = reason;
        issue.node_id = id_;
        issue.class_type = class_type_;
        issue.input = input;
        issue.message = "node " + id_ + " (" + class_type_ + ")" +
                        (input.empty() ? "" : ", input '" + std::string(input) + "'") + ": " +
                        std::move(message);
        return issue;
    }

    void tell_error(const json::object& error) {
        static const json::object kNothing;
        const std::string reason = text_of(error, "type");
        const json::value* more = json::find(error, "extra_info");
        const json::object& extra =
            more != nullptr && more->is_object() ? more->get_object() : kNothing;
        const std::string input = text_of(extra, "input_name");
        if (reason.starts_with("exception_during")) {
            tell_exception(reason, error);
            return;
        }
        const json::value* given = inputs_ != nullptr ? inputs_->if_contains(input) : nullptr;
        if (given != nullptr && holds_asset_ref(*given)) {
            return;  // the file will be put in its place before it runs
        }
        const std::string details = text_of(error, "details");
        Issue issue = start(
            reason,
            input,
            text_of(error, "message") + (details.empty() || details == input ? "" : ": " + details)
        );
        if (given != nullptr) {
            issue.got = shortened(*given);
        }
        if (const json::value* received = json::find(extra, "received_type")) {
            issue.got = shortened(*received);
            issue.details["linked_node"] = given != nullptr ? *given : json::value();
        }
        if (definition_ != nullptr && inputs_ != nullptr) {
            if (const auto* known = definition_->find_input(input, *inputs_)) {
                explain(issue, *known, given);
            }
        }
        if (!issue.suggestion.empty()) {
            issue.message += "; use " + issue.suggestion;
        }
        issues_.push_back(std::move(issue));
    }

    // Says what would be right.
    void explain(Issue& issue, const InputDefinition& known, const json::value* given) {
        const auto option = [&known](const char* name) -> const json::value* {
            return known.options != nullptr ? json::find(*known.options, name) : nullptr;
        };
        issue.expected = known.type;
        if (issue.code == "MISSING_REQUIRED_INPUT") {
            if (const json::value* otherwise = option("default")) {
                issue.details["default"] = shortened(*otherwise);
            }
            suggest_rename(issue);
        } else if (issue.code == "VALUE_OUT_OF_RANGE") {
            json::object range{{"type", known.type}};
            for (const char* limit : {"min", "max"}) {
                if (const json::value* found = option(limit)) {
                    range[limit] = *found;
                }
            }
            const json::value* nearest =
                option(issue.reason == "value_smaller_than_min" ? "min" : "max");
            issue.suggestion = nearest != nullptr ? json::serialize(*nearest) : "";
            issue.expected = std::move(range);
        } else if (issue.code == "VALUE_NOT_IN_LIST" && known.choices != nullptr) {
            issue.expected = shortened(*known.choices);
            if (const auto kind = model_kind(class_type_, known.name)) {
                issue.details["model_kind"] = to_string(*kind);
                issue.details["suggested_action"] = "check_model_availability";
            }
            suggest_choice(issue, known, given);
        }
    }

    void suggest_choice(Issue& issue, const InputDefinition& known, const json::value* given) {
        const auto* wanted = given != nullptr ? given->if_string() : nullptr;
        if (wanted == nullptr) {
            return;
        }
        nearest_.seek(view(*wanted));
        for (const json::value& choice : *known.choices) {
            if (const auto* text = choice.if_string()) {
                nearest_.consider(view(*text));
            }
        }
        issue.suggestion = nearest_.best();
        issue.details["edit_distance"] =
            issue.suggestion.empty() ? json::value() : json::value(nearest_.distance());
        issue.details["is_sure"] = !issue.suggestion.empty() && !nearest_.is_tied();
    }

    // The input may be there under a name that nobody knows.
    void suggest_rename(Issue& issue) {
        nearest_.seek(issue.input);
        for (const auto& input : *inputs_) {
            if (definition_->find_input(view(input.key()), *inputs_) == nullptr) {
                nearest_.consider(view(input.key()));
            }
        }
        if (!nearest_.best().empty()) {
            issue.details["given_as"] = nearest_.best();
            issue.message += " (it has '" + nearest_.best() + "', which the class does not know)";
        }
    }

    // Most exceptions are links that lead nowhere; say which.
    void tell_exception(const std::string& reason, const json::object& error) {
        if (inputs_ == nullptr) {
            Issue issue = start(reason, "inputs", "the node has no inputs");
            issue.code = "SCHEMA_VALIDATION_ERROR";
            issue.expected = "an object";
            issues_.push_back(std::move(issue));
            return;
        }
        bool told = false;
        for (const auto& input : *inputs_) {
            const json::array* link = input.value().if_array();
            const bool is_known = definition_ != nullptr &&
                                  definition_->find_input(view(input.key()), *inputs_) != nullptr;
            if (link == nullptr || !is_known) {
                continue;
            }
            const std::string problem = link_problem(*link, workflow_, catalogue_);
            if (!problem.empty() && issues_.size() < kIssuesMax) {
                Issue issue = start("bad_linked_input", view(input.key()), problem);
                issue.expected = "[\"node id\", output number]";
                issue.got = shortened(input.value());
                issues_.push_back(std::move(issue));
                told = true;
            }
        }
        if (!told) {
            Issue issue =
                start(reason, "", text_of(error, "message") + ": " + text_of(error, "details"));
            issues_.push_back(std::move(issue));
        }
    }

    const json::object& workflow_;
    const Catalogue& catalogue_;
    bool accepted_;
    Nearest nearest_;
    std::vector<Issue> issues_;
    // Of the node that is told about.
    std::string id_;
    std::string class_type_;
    const json::object* inputs_ = nullptr;
    const NodeDefinition* definition_ = nullptr;
};

}  // namespace

std::vector<Issue> find_semantic_issues(
    const json::object& workflow,
    const Catalogue& catalogue,
    bool has_unknown,
    const std::vector<MissingFile>& missing_files
) {
    if (!catalogue.knows_workers()) {
        return find_loose_ends(workflow, catalogue);
    }
    json::object copy = readable_copy(workflow);
    PromptOptions options;
    options.own_checks_known = false;
    const TolerantClasses classes(catalogue);
    const FileCheckedClasses checked(classes, missing_files);
    const PromptVerdict verdict = judge_prompt(copy, checked, options);
    Teller teller(workflow, catalogue, verdict.accepted);
    const json::value* type = json::find(verdict.error, "type");
    if (type != nullptr && *type == "prompt_no_outputs" && !has_unknown) {
        Issue issue;
        issue.stage = Stage::semantic;
        issue.code = "NO_OUTPUT_NODE";
        issue.reason = "prompt_no_outputs";
        issue.message =
            "the workflow has no output node, so running it would produce nothing; add one such as "
            "SaveImage";
        issue.expected = "an output node";
        teller.add(std::move(issue));
    }
    for (const auto& node : verdict.node_errors) {
        teller.tell_node(view(node.key()), node.value().as_object());
    }
    return teller.take();
}

std::vector<Issue> issues_of(
    const PromptVerdict& verdict, const json::object& workflow, const Catalogue& catalogue
) {
    Teller teller(workflow, catalogue, verdict.accepted);
    for (const auto& node : verdict.node_errors) {
        if (const json::object* errors = node.value().if_object()) {
            teller.tell_node(view(node.key()), *errors);
        }
    }
    return teller.take();
}

}  // namespace comfyd::workflow
