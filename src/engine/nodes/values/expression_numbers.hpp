// What the parts of the expression arithmetic share; nothing for others.
#pragma once

#include <string>
#include <utility>

#include "base/json.hpp"
#include "engine/nodes/values/expression.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {

inline tl::unexpected<ExpressionProblem> raise(std::string type, std::string text) {
    return tl::unexpected(ExpressionProblem{std::move(type), std::move(text)});
}

inline bool is_number(const ExpressionValue& value) {
    return value.content.index() <= 2;
}

inline bool is_float(const ExpressionValue& value) {
    return std::holds_alternative<double>(value.content);
}

// REQUIRES: whole number or bool.
inline BigInt whole(const ExpressionValue& value) {
    const auto* number = std::get_if<BigInt>(&value.content);
    return number != nullptr ? *number : BigInt(std::get<bool>(value.content) ? 1 : 0);
}

inline std::string float_text(double value) {
    return workflow::python_repr(json::value(value));
}

inline std::string quoted_types(const ExpressionValue& left, const ExpressionValue& right) {
    return "'" + std::string(type_name(left)) + "' and '" + std::string(type_name(right)) + "'";
}

// Python rounds down, C++ towards zero.
inline BigInt floor_divide(const BigInt& a, const BigInt& b) {
    BigInt quotient = a / b;
    if ((a % b != 0) && ((a < 0) != (b < 0))) {
        --quotient;
    }
    return quotient;
}

// -1, 0, 1, or 2 where one is NaN. REQUIRES: numbers.
int order(const ExpressionValue& left, const ExpressionValue& right);
// Without the limits of the ** operator. REQUIRES: numbers.
Evaluated power(const ExpressionValue& left, const ExpressionValue& right);
// Whether the number is further from 0 than `limit`.
bool is_beyond(const ExpressionValue& value, int limit);

}  // namespace comfyd::engine::nodes
