#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "engine/nodes/values/expression.hpp"
#include "engine/nodes/values/values.hpp"

namespace comfyd::engine::nodes {
namespace {

ExpressionValue from_value(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        return {BigInt(*number)};
    }
    if (const auto* number = std::get_if<std::uint64_t>(&value)) {
        return {BigInt(*number)};
    }
    if (const auto* flag = std::get_if<bool>(&value)) {
        return {*flag};
    }
    const auto* number = std::get_if<double>(&value);
    return {number != nullptr ? *number : std::numeric_limits<double>::quiet_NaN()};
}

Result<NodeResult> compute(Call& call) {
    const std::string& expression = call.text("expression");
    if (strip(expression).empty()) {
        return node_error("ValueError", "Expression cannot be empty.");
    }
    ExpressionNames names;
    ExpressionList all;
    for (const Call::Grown& grown : call.grown("values")) {
        names.emplace_back(grown.name, from_value(grown.value));
        all.push_back(names.back().second);
    }
    names.emplace_back("values", ExpressionValue{std::move(all)});
    const auto result = evaluate_expression(expression, names, [&call] { return call.stopped(); });
    if (auto going = call.check_stopped(); !going) {
        return fail(std::move(going.error()));
    }
    if (!result) {
        return node_error(result.error().exception_type, result.error().text);
    }
    const std::string of = "Math Expression '" + expression + "' ";
    if (result->content.index() > 2) {
        return node_error(
            "ValueError",
            of + "must evaluate to a numeric result, got " + std::string(type_name(*result)) +
                ": " + show(*result)
        );
    }
    const auto number = to_float(*result);
    if (!number) {
        return node_error(
            "ValueError",
            of + "produced a result too large to represent as a float: " + show(*result)
        );
    }
    if (!std::isfinite(*number)) {
        return node_error("ValueError", of + "produced a non-finite result: " + show(*result));
    }
    const BigInt whole = to_integer(*result).value_or(BigInt(0));
    Value integer = std::int64_t{0};
    if (whole >= std::numeric_limits<std::int64_t>::min() &&
        whole <= std::numeric_limits<std::int64_t>::max()) {
        integer = whole.convert_to<std::int64_t>();
    } else if (whole > 0 && whole <= std::numeric_limits<std::uint64_t>::max()) {
        integer = whole.convert_to<std::uint64_t>();
    } else {
        return node_error(
            "OverflowError", of + "produced a whole number beyond 64 bits: " + whole.str()
        );
    }
    return NodeResult{.outputs = {*number, std::move(integer), is_true(*result)}};
}

}  // namespace

NodeClass math_expression() {
    return {
        .name = "ComfyMathExpression",
        .description = "Computes an expression over its inputs, such as max(a, b) * 2.",
        .execute = &compute
    };
}

}  // namespace comfyd::engine::nodes
