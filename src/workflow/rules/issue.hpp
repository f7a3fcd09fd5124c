// One thing that a validation stage has to say about a workflow: where, what, what would be right,
// and what to do. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

enum class Stage { syntax, semantic, security, resource, optimization };
std::string_view to_string(Stage stage);

enum class Severity {
    error,    // it cannot run, or may not
    warning,  // it runs, but perhaps not as it was meant
    info,     // it could run better
};
std::string_view to_string(Severity severity);

struct Issue {
    Stage stage = Stage::syntax;
    Severity severity = Severity::error;
    std::string_view code{};  // a word of this program's text: "UNKNOWN_NODE_TYPE"
    std::string message{};
    std::string node_id{};
    std::string class_type{};
    std::string input{};
    json::value expected{};    // null: nothing to say
    json::value got{};         // likewise; long texts are cut
    std::string suggestion{};  // a value that would be right; empty: none
    std::string reason{};      // ComfyUI's own word, where it has one: "value_not_in_list"
    json::object details{};

    json::object to_json() const;
};

// The word of the one catalogue for what ComfyUI calls `reason`: "TYPE_MISMATCH" for
// "return_type_mismatch". Findings of a submission and of a validation have the same.
std::string_view issue_code(std::string_view reason);

// Answers must not grow with what was sent.
inline constexpr std::size_t kIssuesMax = 1'000;

// The value, or what can be shown of it.
json::value shortened(const json::value& from);

// Code::invalid_workflow with the findings in Error::details, as those of check(). `issues` holds
// at least one.
Error issues_error(const std::vector<Issue>& issues);

}  // namespace comfyd::workflow
