// The functions of expressions, with Python's results and Python's exceptions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/nodes/values/expression_numbers.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kExponentMax = 4000;  // of pow()

tl::unexpected<ExpressionProblem> wrong_count(std::string_view name, std::size_t given) {
    return raise(
        "TypeError", std::string(name) + " expected 1 argument, got " + std::to_string(given)
    );
}

tl::unexpected<ExpressionProblem> not_real(const ExpressionValue& value) {
    return raise("TypeError", "must be real number, not " + std::string(type_name(value)));
}

Evaluated extreme(std::string_view name, const ExpressionList& arguments) {
    const ExpressionList* items = &arguments;
    if (arguments.size() == 1) {
        items = std::get_if<ExpressionList>(&arguments[0].content);
        if (items == nullptr) {
            return raise(
                "TypeError", "'" + std::string(type_name(arguments[0])) + "' object is not iterable"
            );
        }
        if (items->empty()) {
            return raise("ValueError", std::string(name) + "() iterable argument is empty");
        }
    }
    if (items->empty()) {
        return raise("TypeError", std::string(name) + " expected at least 1 argument, got 0");
    }
    const ExpressionValue* best = &items->front();
    for (const ExpressionValue& item : *items) {
        if (!is_number(item) || !is_number(*best)) {
            return raise(
                "TypeError",
                std::string("'") + (name == "min" ? "<" : ">") +
                    "' not supported between instances of " + quoted_types(item, *best)
            );
        }
        const int compared = order(item, *best);
        if (compared == (name == "min" ? -1 : 1)) {
            best = &item;
        }
    }
    return *best;
}

Evaluated sum(const ExpressionList& arguments) {
    const ExpressionList* items = &arguments;
    if (arguments.size() == 1) {
        if (const auto* list = std::get_if<ExpressionList>(&arguments[0].content)) {
            items = list;
        }
    }
    // Floats are added with compensation, as Python does since 3.12.
    ExpressionValue total{BigInt(0)};
    double compensation = 0.0;
    for (const ExpressionValue& item : *items) {
        if (is_float(total) && is_number(item)) {
            const auto number = to_float(item);
            if (!number) {
                return tl::unexpected(number.error());
            }
            double& current = std::get<double>(total.content);
            const double next = current + *number;
            compensation += std::abs(current) >= std::abs(*number) ? (current - next) + *number
                                                                   : (*number - next) + current;
            current = next;
            continue;
        }
        auto next = apply_binary("+", total, item);
        if (!next) {
            return next;
        }
        total = std::move(*next);
    }
    if (is_float(total) && compensation != 0.0 && std::isfinite(compensation)) {
        std::get<double>(total.content) += compensation;
    }
    return total;
}

Evaluated round_to(const ExpressionValue& value, const ExpressionValue* digits) {
    if (!is_number(value)) {
        return raise(
            "TypeError",
            "type " + std::string(type_name(value)) + " doesn't define __round__ method"
        );
    }
    if (digits == nullptr) {
        if (!is_float(value)) {
            return ExpressionValue{whole(value)};
        }
        auto rounded = to_integer({std::nearbyint(std::get<double>(value.content))});
        if (!rounded) {
            return tl::unexpected(std::move(rounded.error()));
        }
        return ExpressionValue{std::move(*rounded)};
    }
    if (is_float(*digits) || !is_number(*digits)) {
        return raise(
            "TypeError",
            "'" + std::string(type_name(*digits)) + "' object cannot be interpreted as an integer"
        );
    }
    const BigInt wanted = whole(*digits);
    const int places = wanted > 400 ? 400 : wanted < -400 ? -400 : wanted.convert_to<int>();
    if (!is_float(value)) {
        if (places >= 0) {
            return ExpressionValue{whole(value)};
        }
        const BigInt unit = boost::multiprecision::pow(BigInt(10), static_cast<unsigned>(-places));
        const BigInt number = whole(value);
        BigInt quotient = floor_divide(number, unit);
        const BigInt twice = (number - quotient * unit) * 2;
        if (twice > unit || (twice == unit && bit_test(abs(quotient), 0))) {
            ++quotient;
        }
        return ExpressionValue{BigInt(quotient * unit)};
    }
    const double number = std::get<double>(value.content);
    if (!std::isfinite(number)) {
        return value;
    }
    if (places >= 0) {
        std::string text(800, '\0');
        const int size = std::snprintf(text.data(), text.size(), "%.*f", places, number);
        return ExpressionValue{
            std::strtod(text.substr(0, static_cast<std::size_t>(size)).c_str(), nullptr)
        };
    }
    const double unit = std::pow(10.0, -places);
    return ExpressionValue{
        std::isfinite(unit) ? std::nearbyint(number / unit) * unit : std::copysign(0.0, number)
    };
}

// Functions of one float that give a float.
struct FloatFunction {
    std::string_view name;
    double (*function)(double);
    bool positive;  // only for numbers above 0
};
constexpr FloatFunction kFloatFunctions[] = {
    {"sqrt", &std::sqrt, false},
    {"log2", &std::log2, true},
    {"log10", &std::log10, true},
    {"sin", &std::sin, false},
    {"cos", &std::cos, false},
    {"tan", &std::tan, false},
};

Evaluated call_float(const FloatFunction& known, const ExpressionValue& argument) {
    if (!is_number(argument)) {
        return not_real(argument);
    }
    const auto x = to_float(argument);
    if (!x) {
        return tl::unexpected(x.error());
    }
    if (known.positive && *x <= 0.0) {
        return raise(
            "ValueError",
            is_float(argument) ? "expected a positive input, got " + float_text(*x)
                               : "expected a positive input"
        );
    }
    if (known.name == "sqrt" && *x < 0.0) {
        return raise("ValueError", "expected a nonnegative input, got " + float_text(*x));
    }
    if (std::isinf(*x) && known.name.size() == 3) {
        return raise("ValueError", "expected a finite input, got " + float_text(*x));
    }
    return ExpressionValue{known.function(*x)};
}

Evaluated logarithm(const ExpressionList& arguments) {
    static constexpr FloatFunction kLog{"log", &std::log, true};
    if (arguments.empty() || arguments.size() > 2) {
        return raise(
            "TypeError", "log expected 1 to 2 arguments, got " + std::to_string(arguments.size())
        );
    }
    if (is_float(arguments[0]) && std::isinf(std::get<double>(arguments[0].content)) &&
        std::get<double>(arguments[0].content) > 0) {
        return arguments[0];
    }
    const auto value = call_float(kLog, arguments[0]);
    if (!value || arguments.size() == 1) {
        return value;
    }
    const auto base = call_float(kLog, arguments[1]);
    if (!base) {
        return base;
    }
    return apply_binary("/", *value, *base);
}

Evaluated whole_part(std::string_view name, const ExpressionValue& value) {
    if (!is_number(value)) {
        return not_real(value);
    }
    if (!is_float(value)) {
        return ExpressionValue{whole(value)};
    }
    const double number = std::get<double>(value.content);
    auto result = to_integer({name == "ceil" ? std::ceil(number) : std::floor(number)});
    if (!result) {
        return tl::unexpected(std::move(result.error()));
    }
    return ExpressionValue{std::move(*result)};
}

Evaluated magnitude(const ExpressionValue& value) {
    if (!is_number(value)) {
        return raise(
            "TypeError", "bad operand type for abs(): '" + std::string(type_name(value)) + "'"
        );
    }
    return is_float(value) ? ExpressionValue{std::abs(std::get<double>(value.content))}
                           : ExpressionValue{BigInt(abs(whole(value)))};
}

Evaluated capped_power(const ExpressionList& arguments) {
    if (arguments.size() != 2) {
        return raise("TypeError", "pow() takes 2 arguments");
    }
    if (!is_number(arguments[0]) || !is_number(arguments[1])) {
        return raise(
            "TypeError",
            "unsupported operand type(s) for ** or pow(): " +
                quoted_types(arguments[0], arguments[1])
        );
    }
    if (is_beyond(arguments[1], kExponentMax)) {
        return raise(
            "ValueError",
            "Exponent " + show(arguments[1]) + " exceeds maximum allowed (" +
                std::to_string(kExponentMax) + ")"
        );
    }
    return power(arguments[0], arguments[1]);
}

Evaluated convert(std::string_view name, const ExpressionValue& value) {
    if (name == "float") {
        const auto number = to_float(value);
        if (!number) {
            return tl::unexpected(number.error());
        }
        return ExpressionValue{*number};
    }
    auto number = to_integer(value);
    if (!number) {
        return tl::unexpected(std::move(number.error()));
    }
    return ExpressionValue{std::move(*number)};
}

constexpr std::array<std::string_view, 17> kFunctions = {
    "sum",
    "min",
    "max",
    "abs",
    "round",
    "pow",
    "sqrt",
    "ceil",
    "floor",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "int",
    "float"
};

}  // namespace

bool is_expression_function(std::string_view name) {
    return std::ranges::find(kFunctions, name) != kFunctions.end();
}

Evaluated call_function(std::string_view name, const ExpressionList& arguments) {
    if (name == "sum") {
        return sum(arguments);
    }
    if (name == "min" || name == "max") {
        return extreme(name, arguments);
    }
    if (name == "log") {
        return logarithm(arguments);
    }
    if (name == "pow") {
        return capped_power(arguments);
    }
    if (name == "round" && arguments.size() == 2) {
        return round_to(arguments[0], &arguments[1]);
    }
    if (arguments.size() != 1) {
        return wrong_count(name, arguments.size());
    }
    if (name == "round") {
        return round_to(arguments[0], nullptr);
    }
    if (name == "abs") {
        return magnitude(arguments[0]);
    }
    if (name == "ceil" || name == "floor") {
        return whole_part(name, arguments[0]);
    }
    if (name == "int" || name == "float") {
        return convert(name, arguments[0]);
    }
    return call_float(
        *std::ranges::find(kFloatFunctions, name, &FloatFunction::name), arguments[0]
    );
}

}  // namespace comfyd::engine::nodes
