#include "workflow/check_errors.hpp"

#include <utility>

namespace comfyd::workflow {

Error findings_error(
    const std::vector<Finding>& findings, const std::set<std::string, std::less<>>& missing_classes
) {
    json::array listed;
    json::object node_errors;
    json::array invalid_connections;
    for (const Finding& finding : findings) {
        listed.emplace_back(json::object{
            {"code", finding.code},
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
    return Error(
        Code::invalid_workflow,
        std::move(message),
        {{"findings", std::move(listed)},
         {"node_errors", std::move(node_errors)},
         {"missing_nodes", json::array(missing_classes.begin(), missing_classes.end())},
         {"invalid_connections", std::move(invalid_connections)}}
    );
}

}  // namespace comfyd::workflow
