// What the parameters of a stored workflow take: declarations (parameters_declared.hpp) completed
// with the types, limits and choices of the node classes that there are now. So a model file is a
// choice as soon as a worker has it. Makes a JSON schema of them and judges values. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/parameters/parameters_declared.hpp"
#include "workflow/parameters/parameters_names.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kParameterChoicesShown = 1'000;  // longer lists are not spelled out

// -1, 0 or 1; exact for whole numbers.
int compare_numbers(const json::value& left, const json::value& right);

class ParameterSchema {
public:
    // `declared` as read_declarations() gave it; `graph` in API format. All three outlive this.
    // Code::invalid_argument where a type does not fit what a node takes.
    static Result<ParameterSchema> make(
        const json::object& declared, const json::object& graph, const PromptClasses& classes
    );

    // For objects of values by name, in the words that JSON Schema and OpenAPI 3.0 share.
    json::object to_json() const;
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    // A value that was written as text, such as a cell of a table, as what the parameter takes.
    // Texts that say nothing of that kind stay texts, which accept() refuses.
    json::value read_text(std::string_view name, std::string_view text) const;

    // The values as they are to be set: whole numbers written as 5.0 are integers, null is as if
    // not given. Code::invalid_argument with every finding in details["parameters"]:
    //   {"parameter", "reason", "message", "expected"?, "suggestion"?}, where reason is
    //   unknown_parameter, missing_parameter, wrong_type, out_of_range or not_in_enum.
    Result<json::object> accept(const json::object& values) const;
    // The defaults that were declared must be values that could be given.
    Result<> check_defaults() const;

private:
    struct Parameter {
        std::string name;
        const json::object* declared = nullptr;
        ParameterType type = ParameterType::any;
        bool required = false;
        bool may_be_random = false;
        json::value minimum;                   // null: none
        json::value maximum;                   // likewise
        const json::array* choices = nullptr;  // nullptr: any value
        const json::value* value = nullptr;    // that the workflow has
    };
    struct Problem {
        std::string parameter;
        std::string_view reason;
        std::string message;
        json::value expected{};    // null: nothing to say
        std::string suggestion{};  // empty: none

        json::object to_json() const;
    };

    ParameterSchema() = default;
    static Result<> complete(
        const ParameterNames& names,
        const ParameterNames::Target& target,
        const PromptClasses& classes,
        Parameter& parameter
    );
    const Parameter* find(std::string_view name) const;
    static std::optional<Problem> judge(const Parameter& parameter, json::value& value);
    static std::optional<Problem> judge_range(const Parameter& parameter, const json::value& value);
    Problem unknown(std::string_view name) const;
    static json::object describe(const Parameter& parameter);

    std::vector<Parameter> parameters_;
};

}  // namespace comfyd::workflow
