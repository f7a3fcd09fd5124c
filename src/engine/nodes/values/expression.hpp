// Arithmetic as Python computes it: whole numbers of any length, floats, yes and no, and the
// operators and functions that ComfyUI's expressions may use. Bounded in depth and size.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <tl/expected.hpp>

namespace comfyd::engine::nodes {

using BigInt = boost::multiprecision::cpp_int;

struct ExpressionValue;
using ExpressionList = std::vector<ExpressionValue>;
struct ExpressionValue {
    std::variant<BigInt, double, bool, std::string, ExpressionList> content;
};

// A Python exception.
struct ExpressionProblem {
    std::string exception_type;
    std::string text;
};
using Evaluated = tl::expected<ExpressionValue, ExpressionProblem>;

using ExpressionNames = std::vector<std::pair<std::string, ExpressionValue>>;

// Asks `stopped` before each step; when it says so, the answer does not matter.
Evaluated evaluate_expression(
    std::string_view expression,
    const ExpressionNames& names,
    const std::function<bool()>& stopped = [] { return false; }
);

// How the functions and operators of an expression are called. In expression_operators.cpp and
// expression_functions.cpp.
Evaluated apply_binary(
    std::string_view operation, const ExpressionValue& left, const ExpressionValue& right
);
Evaluated apply_unary(std::string_view operation, const ExpressionValue& value);
Evaluated compare_values(
    std::string_view operation, const ExpressionValue& left, const ExpressionValue& right
);
bool is_expression_function(std::string_view name);
Evaluated call_function(std::string_view name, const ExpressionList& arguments);

// str(), bool() and the name of the type.
std::string show(const ExpressionValue& value);
bool is_true(const ExpressionValue& value);
std::string_view type_name(const ExpressionValue& value);
// float(); OverflowError where it is too large.
tl::expected<double, ExpressionProblem> to_float(const ExpressionValue& value);
tl::expected<BigInt, ExpressionProblem> to_integer(const ExpressionValue& value);

}  // namespace comfyd::engine::nodes
