#include "workflow/rules/issue.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "workflow/catalogue/models.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kTextShown = 200;
constexpr std::size_t kItemsShown = 20;

struct CodeWord {
    std::string_view reason;
    std::string_view code;
};
constexpr std::array kCodes{
    CodeWord{"required_input_missing", "MISSING_REQUIRED_INPUT"},
    CodeWord{"bad_linked_input", "BAD_LINK"},
    CodeWord{"return_type_mismatch", "TYPE_MISMATCH"},
    CodeWord{"invalid_input_type", "INVALID_INPUT_VALUE"},
    CodeWord{"value_smaller_than_min", "VALUE_OUT_OF_RANGE"},
    CodeWord{"value_bigger_than_max", "VALUE_OUT_OF_RANGE"},
    CodeWord{"value_not_in_list", "VALUE_NOT_IN_LIST"},
    CodeWord{"dependency_cycle", "CIRCULAR_DEPENDENCY"},
    CodeWord{"prompt_no_outputs", "NO_OUTPUT_NODE"},
    CodeWord{"missing_node_type", "UNKNOWN_NODE_TYPE"},
    CodeWord{"invalid_node", "SCHEMA_VALIDATION_ERROR"},
    CodeWord{"custom_validation_failed", "CUSTOM_VALIDATION_FAILED"},
};

constexpr std::string_view kMissingClass = "missing_node_type";
constexpr std::array<std::string_view, 4> kAboutLinks{
    "bad_linked_input", "required_input_missing", "return_type_mismatch", "dependency_cycle"
};

bool names_unknown_model(const Issue& issue) {
    return issue.reason == "value_not_in_list" &&
           model_kind(issue.class_type, issue.input).has_value();
}

}  // namespace

std::string_view issue_code(std::string_view reason) {
    const auto found = std::ranges::find(kCodes, reason, &CodeWord::reason);
    return found == kCodes.end() ? "VALIDATION_EXCEPTION" : found->code;
}

std::string_view to_string(Stage stage) {
    switch (stage) {
        case Stage::syntax:
            return "syntax";
        case Stage::semantic:
            return "semantic";
        case Stage::security:
            return "security";
        case Stage::resource:
            return "resource";
        case Stage::optimization:
            return "optimization";
    }
    return "";
}

std::string_view to_string(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "error";
        case Severity::warning:
            return "warning";
        case Severity::info:
            return "info";
    }
    return "";
}

json::value shortened(const json::value& from) {
    if (const auto* text = from.if_string(); text != nullptr && text->size() > kTextShown) {
        std::size_t end = kTextShown;
        while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xC0) == 0x80) {
            --end;  // not in the middle of a character
        }
        return json::value(std::string(text->data(), end) + "…");
    }
    if (const auto* items = from.if_array()) {
        json::array shown;
        for (const json::value& item : *items) {
            if (shown.size() == kItemsShown) {
                shown.emplace_back("… " + std::to_string(items->size() - kItemsShown) + " more");
                break;
            }
            shown.push_back(item.is_structured() ? json::value("…") : shortened(item));
        }
        return shown;
    }
    if (const auto* members = from.if_object()) {
        json::object shown;
        for (const auto& member : *members) {
            if (shown.size() == kItemsShown) {
                break;
            }
            shown[member.key()] =
                member.value().is_structured() ? json::value("…") : shortened(member.value());
        }
        return shown;
    }
    return from;
}

json::object Issue::to_json() const {
    json::object made;
    made["stage"] = to_string(stage);
    made["severity"] = to_string(severity);
    made["code"] = code;
    made["message"] = message;
    const auto add = [&made](const char* key, const std::string& text) {
        if (!text.empty()) {
            made[key] = text;
        }
    };
    add("node_id", node_id);
    add("class_type", class_type);
    add("input", input);
    if (!expected.is_null()) {
        made["expected"] = expected;
    }
    if (!got.is_null()) {
        made["got"] = got;
    }
    add("suggestion", suggestion);
    add("reason", reason);
    if (!details.empty()) {
        made["details"] = details;
    }
    return made;
}

Error issues_error(const std::vector<Issue>& issues) {
    json::array findings;
    json::object node_errors;
    std::set<std::string> missing_classes;
    json::array invalid_connections;
    for (const Issue& issue : issues) {
        findings.emplace_back(issue.to_json());
        if (issue.reason == kMissingClass && !issue.class_type.empty()) {
            missing_classes.insert(issue.class_type);
        }
        if (std::ranges::find(kAboutLinks, issue.reason) != kAboutLinks.end()) {
            invalid_connections.emplace_back(json::object{
                {"node_id", issue.node_id}, {"input", issue.input}, {"reason", issue.message}
            });
        }
        if (!issue.node_id.empty()) {
            json::value& errors = node_errors[issue.node_id];
            if (!errors.is_array()) {
                errors.emplace_array();
            }
            errors.get_array().emplace_back(json::object{
                {"field", issue.input},
                {"reason", issue.reason.empty() ? issue.code : std::string_view(issue.reason)}
            });
        }
    }
    const bool is_forbidden = issues.front().stage == Stage::security;
    std::string message =
        (is_forbidden ? "the workflow is refused: " : "the workflow cannot run: ") +
        issues.front().message;
    if (issues.size() > 1) {
        message += " (and " + std::to_string(issues.size() - 1) + " more)";
    }
    Error error(
        Code::invalid_workflow,
        std::move(message),
        {{"findings", std::move(findings)},
         {"node_errors", std::move(node_errors)},
         {"missing_nodes", json::array(missing_classes.begin(), missing_classes.end())},
         {"invalid_connections", std::move(invalid_connections)}}
    );
    if (std::ranges::all_of(issues, names_unknown_model)) {
        error.details["suggested_action"] = "check_model_availability";
    }
    return error;
}

}  // namespace comfyd::workflow
