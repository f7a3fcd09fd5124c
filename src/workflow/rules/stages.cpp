#include "workflow/rules/stages.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/nearest.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

Issue schema_issue(std::string_view id, std::string message, std::string_view expected) {
    Issue issue;
    issue.code = "SCHEMA_VALIDATION_ERROR";
    issue.reason = "invalid_node";
    issue.message = std::move(message);
    issue.node_id = id;
    issue.expected = expected;
    return issue;
}

Issue unknown_class(
    std::string_view id, const std::string& class_type, const Catalogue& catalogue, Nearest& nearest
) {
    nearest.seek(class_type);
    for (const Catalogue::Entry& worker : catalogue.workers()) {
        for (const auto& known : worker.classes->all()) {
            // The same class of another worker is no other candidate.
            if (known->name() != nearest.best()) {
                nearest.consider(known->name());
            }
        }
    }
    Issue issue;
    issue.code = "UNKNOWN_NODE_TYPE";
    issue.message = "node " + std::string(id) + ": no worker has the node class '" +
                    std::string(view(shortened(json::value(class_type)).get_string())) + "'";
    issue.node_id = id;
    issue.class_type = class_type.substr(0, kNearestNameMax);
    issue.input = "class_type";
    issue.got = shortened(json::value(class_type));
    issue.reason = "missing_node_type";
    issue.suggestion = nearest.best();
    if (!issue.suggestion.empty()) {
        issue.message += "; did you mean '" + issue.suggestion + "'?";
    }
    return issue;
}

class SyntaxCheck {
public:
    explicit SyntaxCheck(const Catalogue& catalogue) : catalogue_(catalogue) {}

    SyntaxFindings run(const json::object& workflow) {
        if (is_ui_format(workflow)) {
            Issue issue = schema_issue(
                "",
                "this is the editor's own format, which cannot be executed as it is",
                "a map of node ids to {class_type, inputs}"
            );
            issue.suggestion = "export it in API format (Workflow, Export (API))";
            return refuse(std::move(issue));
        }
        if (workflow.empty()) {
            return refuse(schema_issue("", "the workflow has no nodes", "at least one node"));
        }
        if (workflow.size() > kNodesMax) {
            Issue issue = schema_issue(
                "",
                "the workflow has " + std::to_string(workflow.size()) + " nodes, at most " +
                    std::to_string(kNodesMax) + " can be read",
                ""
            );
            issue.code = "TOO_MANY_NODES";
            issue.expected = kNodesMax;
            issue.got = workflow.size();
            return refuse(std::move(issue));
        }
        for (const auto& entry : workflow) {
            check_node(view(entry.key()), entry.value());
        }
        return std::move(found_);
    }

private:
    SyntaxFindings refuse(Issue issue) {
        found_.issues.push_back(std::move(issue));
        found_.readable = false;
        return std::move(found_);
    }

    void add(Issue issue) {
        if (found_.issues.size() < kIssuesMax) {
            found_.issues.push_back(std::move(issue));
        }
    }

    void check_node(std::string_view id, const json::value& value) {
        const std::string where = "node " + std::string(id.substr(0, kNearestNameMax));
        const json::object* node = value.if_object();
        if (node == nullptr) {
            Issue issue =
                schema_issue(id, where + " is not an object", "{\"class_type\", \"inputs\"}");
            issue.got = shortened(value);
            add(std::move(issue));
            found_.has_unknown = true;
            return;
        }
        const json::value* type = node->if_contains("class_type");
        if (type == nullptr || !type->is_string() || type->get_string().empty()) {
            Issue issue =
                schema_issue(id, where + " has no class_type", "the name of a node class");
            issue.input = "class_type";
            issue.got = type != nullptr ? shortened(*type) : json::value();
            add(std::move(issue));
            found_.has_unknown = true;
        } else if (view(type->get_string()).find_first_of("\n\t") != std::string_view::npos) {
            // What a workflow needs of a worker is written down in lines.
            Issue issue = schema_issue(
                id, where + " has a line break or tab in its class_type", "the name of a node class"
            );
            issue.input = "class_type";
            add(std::move(issue));
            found_.has_unknown = true;
        } else if (catalogue_.knows_workers() &&
                   catalogue_.find(view(type->get_string())) == nullptr) {
            found_.has_unknown = true;
            if (found_.issues.size() < kIssuesMax) {
                add(unknown_class(id, std::string(type->get_string()), catalogue_, nearest_));
            }
        }
        const json::value* inputs = node->if_contains("inputs");
        if (inputs != nullptr && !inputs->is_object()) {
            Issue issue =
                schema_issue(id, "'inputs' of " + where + " is not an object", "an object");
            issue.input = "inputs";
            issue.got = shortened(*inputs);
            add(std::move(issue));
            found_.has_unknown = true;
        }
    }

    const Catalogue& catalogue_;
    Nearest nearest_;
    SyntaxFindings found_;
};

}  // namespace

bool StageReport::valid() const {
    return std::ranges::none_of(issues, [](const Issue& issue) {
        return issue.severity == Severity::error;
    });
}

bool Validation::valid() const {
    return std::ranges::all_of(stages, &StageReport::valid);
}

std::vector<Issue> Validation::errors() const {
    std::vector<Issue> found;
    for (const StageReport& stage : stages) {
        std::ranges::copy_if(stage.issues, std::back_inserter(found), [](const Issue& issue) {
            return issue.severity == Severity::error;
        });
    }
    return found;
}

json::object Validation::to_json() const {
    json::object made;
    std::size_t errors = 0;
    std::size_t warnings = 0;
    json::array listed;
    for (const StageReport& stage : stages) {
        json::object shown{{"stage", to_string(stage.stage)}, {"valid", stage.valid()}};
        if (!stage.skipped.empty()) {
            shown["skipped"] = stage.skipped;
        }
        json::array findings;
        for (const Issue& issue : stage.issues) {
            errors += issue.severity == Severity::error ? 1 : 0;
            warnings += issue.severity == Severity::warning ? 1 : 0;
            findings.emplace_back(issue.to_json());
        }
        shown["findings"] = std::move(findings);
        listed.emplace_back(std::move(shown));
    }
    made["valid"] = valid();
    made["node_count"] = node_count;
    made["error_count"] = errors;
    made["warning_count"] = warnings;
    made["stages"] = std::move(listed);
    return made;
}

SyntaxFindings find_syntax_issues(const json::object& workflow, const Catalogue& catalogue) {
    return SyntaxCheck(catalogue).run(workflow);
}

Validation validate(
    const json::object& workflow, const Catalogue& catalogue, const ValidationOptions& options
) {
    Validation made;
    for (const Stage stage :
         {Stage::syntax, Stage::semantic, Stage::security, Stage::resource, Stage::optimization}) {
        made.at(stage).stage = stage;
    }
    made.node_count = static_cast<int>(std::min<std::size_t>(workflow.size(), 1'000'000'000));
    SyntaxFindings syntax = find_syntax_issues(workflow, catalogue);
    made.at(Stage::syntax).issues = std::move(syntax.issues);
    if (!syntax.readable) {
        for (StageReport& stage : made.stages) {
            stage.skipped = stage.stage == Stage::syntax ? "" : "the workflow cannot be read";
        }
        return made;
    }
    const Graph graph(workflow);
    made.at(Stage::semantic).issues =
        find_semantic_issues(workflow, catalogue, syntax.has_unknown, options.missing_files);
    made.at(Stage::security).issues = find_security_issues(graph, options.security, catalogue);
    if (!made.valid()) {
        for (const Stage stage : {Stage::resource, Stage::optimization}) {
            made.at(stage).skipped = "the workflow has errors";
        }
        return made;
    }
    made.plan = make_plan(graph, catalogue, options.plan);
    made.at(Stage::resource).issues =
        find_resource_issues(workflow, *made.plan, catalogue, options);
    made.at(Stage::optimization).issues = find_optimizations(graph, *made.plan);
    return made;
}

}  // namespace comfyd::workflow
