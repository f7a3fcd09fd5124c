#include "workflow/check_errors.hpp"

#include <algorithm>
#include <utility>

#include "workflow/issue.hpp"
#include "workflow/models.hpp"

namespace comfyd::workflow {
namespace {

std::string text_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

Finding finding_of(
    const std::string& node_id, const std::string& class_type, const json::object& error
) {
    const json::value* extra = json::find(error, "extra_info");
    return {
        text_of(error, "type"),
        "node " + node_id + " (" + class_type + "): " + text_of(error, "message") + ": " +
            text_of(error, "details"),
        node_id,
        class_type,
        extra != nullptr && extra->is_object() ? text_of(extra->get_object(), "input_name") : ""
    };
}

bool names_unknown_model(const Finding& finding) {
    return finding.code == "value_not_in_list" &&
           model_kind(finding.class_type, finding.input).has_value();
}

}  // namespace

std::vector<Finding> findings_of(const json::object& node_errors) {
    std::vector<Finding> findings;
    for (const auto& entry : node_errors) {
        const json::object* node = entry.value().if_object();
        const json::value* errors = node != nullptr ? json::find(*node, "errors") : nullptr;
        if (errors == nullptr || !errors->is_array()) {
            continue;
        }
        for (const json::value& error : errors->get_array()) {
            if (error.is_object()) {
                findings.push_back(finding_of(
                    std::string(entry.key()), text_of(*node, "class_type"), error.get_object()
                ));
            }
        }
    }
    return findings;
}

Error findings_error(
    const std::vector<Finding>& findings, const std::set<std::string, std::less<>>& missing_classes
) {
    json::array listed;
    json::object node_errors;
    json::array invalid_connections;
    for (const Finding& finding : findings) {
        listed.emplace_back(json::object{
            {"code", issue_code(finding.code)},
            {"reason", finding.code},
            {"message", finding.message},
            {"node_id", finding.node_id},
            {"class_type", finding.class_type},
            {"input", finding.input}
        });
        if (!finding.node_id.empty()) {
            json::value& errors = node_errors[finding.node_id];
            if (!errors.is_array()) {
                errors.emplace_array();
            }
            errors.get_array().emplace_back(
                json::object{{"field", finding.input}, {"reason", finding.code}}
            );
        }
        if (finding.code == "bad_linked_input" || finding.code == "required_input_missing" ||
            finding.code == "return_type_mismatch" || finding.code == "dependency_cycle") {
            invalid_connections.emplace_back(json::object{
                {"node_id", finding.node_id}, {"input", finding.input}, {"reason", finding.message}
            });
        }
    }
    std::string message = "the workflow cannot run: " + findings.front().message;
    if (findings.size() > 1) {
        message += " (and " + std::to_string(findings.size() - 1) + " more)";
    }
    Error error(
        Code::invalid_workflow,
        std::move(message),
        {{"findings", std::move(listed)},
         {"node_errors", std::move(node_errors)},
         {"missing_nodes", json::array(missing_classes.begin(), missing_classes.end())},
         {"invalid_connections", std::move(invalid_connections)}}
    );
    if (std::ranges::all_of(findings, names_unknown_model)) {
        error.details["suggested_action"] = "check_model_availability";
    }
    return error;
}

}  // namespace comfyd::workflow
