// Values of expressions and Python's conversions between them.
#include <array>
#include <cmath>

#include "engine/nodes/values/expression_numbers.hpp"

namespace comfyd::engine::nodes {

std::string show(const ExpressionValue& value) {
    if (const auto* number = std::get_if<BigInt>(&value.content)) {
        return number->str();
    }
    if (const auto* number = std::get_if<double>(&value.content)) {
        return float_text(*number);
    }
    if (const auto* flag = std::get_if<bool>(&value.content)) {
        return *flag ? "True" : "False";
    }
    if (const auto* text = std::get_if<std::string>(&value.content)) {
        return workflow::python_repr(json::value(*text));
    }
    std::string out = "[";
    for (const ExpressionValue& item : std::get<ExpressionList>(value.content)) {
        out += (out.size() > 1 ? ", " : "") + show(item);
    }
    return out + "]";
}

bool is_true(const ExpressionValue& value) {
    if (const auto* text = std::get_if<std::string>(&value.content)) {
        return !text->empty();
    }
    if (const auto* list = std::get_if<ExpressionList>(&value.content)) {
        return !list->empty();
    }
    return is_float(value) ? std::get<double>(value.content) != 0.0 : whole(value) != 0;
}

std::string_view type_name(const ExpressionValue& value) {
    static constexpr std::array<std::string_view, 5> kNames = {
        "int", "float", "bool", "str", "list"
    };
    return kNames[value.content.index()];
}

tl::expected<double, ExpressionProblem> to_float(const ExpressionValue& value) {
    if (const auto* number = std::get_if<double>(&value.content)) {
        return *number;
    }
    if (const auto* text = std::get_if<std::string>(&value.content)) {
        const auto parsed = workflow::python_float(json::value(*text));
        if (!parsed) {
            return raise("ValueError", parsed.error());
        }
        return *parsed;
    }
    if (!is_number(value)) {
        return raise(
            "TypeError",
            "float() argument must be a string or a real number, not '" +
                std::string(type_name(value)) + "'"
        );
    }
    const auto number = whole(value).convert_to<double>();
    if (!std::isfinite(number)) {
        return raise("OverflowError", "int too large to convert to float");
    }
    return number;
}

tl::expected<BigInt, ExpressionProblem> to_integer(const ExpressionValue& value) {
    if (const auto* number = std::get_if<double>(&value.content)) {
        if (!std::isfinite(*number)) {
            return std::isnan(*number)
                       ? raise("ValueError", "cannot convert float NaN to integer")
                       : raise("OverflowError", "cannot convert float infinity to integer");
        }
        return BigInt(std::trunc(*number));
    }
    if (const auto* text = std::get_if<std::string>(&value.content)) {
        const auto parsed = workflow::python_int(json::value(*text));
        if (!parsed) {
            return raise("ValueError", parsed.error());
        }
        return BigInt(parsed->text);
    }
    if (!is_number(value)) {
        return raise(
            "TypeError",
            "int() argument must be a string, a bytes-like object or a real number, not '" +
                std::string(type_name(value)) + "'"
        );
    }
    return whole(value);
}

}  // namespace comfyd::engine::nodes
