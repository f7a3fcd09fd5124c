// Declarations of parameters, as a stored workflow keeps them:
//   name -> {"target": ["node.input", …], "title"?, "description"?, "type"?, "default"?,
//   "minimum"?,
//            "maximum"?, "enum"?, "required"?}
// Only what somebody said is in it; parameters_schema.hpp adds what the node classes say. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kDeclaredMax = 200;
inline constexpr std::size_t kDeclaredNameBytesMax = 100;
inline constexpr std::size_t kDeclaredBytesMax = 256 * 1024;  // of all together, as JSON

enum class ParameterType {
    any,
    string,
    integer,
    number,
    boolean,
    file,  // the name of a file, or where to take it from
};
constexpr bool is_numeric(ParameterType type) {
    return type == ParameterType::integer || type == ParameterType::number;
}
std::string_view to_string(ParameterType type);
std::optional<ParameterType> parse_parameter_type(std::string_view name);

// Checks declarations and writes them in the form above. A declaration may also be what
// BindOptions::declared takes, with nodes named by id, title or class. `graph` is in API format.
// Code::invalid_argument names the parameter and says what would be right.
Result<json::object> read_declarations(const json::object& declared, const json::object& graph);

// What can be set without being declared: the words that parameters_roles.hpp finds, then the nodes
// to which a person gave a title.
json::object offer_parameters(const json::object& graph, const PromptClasses& classes);

}  // namespace comfyd::workflow
