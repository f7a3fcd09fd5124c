// The operators of expressions, with Python's results and Python's exceptions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "engine/nodes/values/expression_numbers.hpp"

namespace comfyd::engine::nodes {
namespace {

using boost::multiprecision::cpp_rational;

constexpr std::size_t kBitsMax = 1U << 17;  // so that each step takes milliseconds at most
constexpr int kOperandMax = 4'000'000;      // of **
constexpr int kShiftMax = 10'000;
constexpr double kExactMax = 9007199254740992.0;  // 2^53: whole numbers up to here are floats too

Evaluated checked_size(BigInt value) {
    if (!value.is_zero() && boost::multiprecision::msb(abs(value)) > kBitsMax) {
        return raise("MemoryError", "The number is too long.");
    }
    return ExpressionValue{std::move(value)};
}

double float_modulo(double a, double b) {
    double rest = std::fmod(a, b);
    if (rest != 0.0) {
        if ((b < 0) != (rest < 0)) {
            rest += b;
        }
    } else {
        rest = std::copysign(0.0, b);
    }
    return rest;
}

double float_floor_divide(double a, double b) {
    const double rest = float_modulo(a, b);
    const double quotient = (a - rest) / b;
    if (quotient == 0.0) {
        return std::copysign(0.0, a / b);
    }
    const double down = std::floor(quotient);
    return quotient - down > 0.5 ? down + 1.0 : down;
}

Evaluated divide(const ExpressionValue& left, const ExpressionValue& right) {
    if (is_float(left) || is_float(right)) {
        const auto a = to_float(left);
        const auto b = to_float(right);
        if (!a || !b) {
            return tl::unexpected((a ? b : a).error());
        }
        if (*b == 0.0) {
            return raise("ZeroDivisionError", "division by zero");
        }
        return ExpressionValue{*a / *b};
    }
    const BigInt a = whole(left);
    const BigInt b = whole(right);
    if (b == 0) {
        return raise("ZeroDivisionError", "division by zero");
    }
    if (abs(a) <= BigInt(kExactMax) && abs(b) <= BigInt(kExactMax)) {
        return ExpressionValue{a.convert_to<double>() / b.convert_to<double>()};
    }
    const auto quotient = cpp_rational(a, b).convert_to<double>();
    if (!std::isfinite(quotient)) {
        return raise("OverflowError", "integer division result too large for a float");
    }
    return ExpressionValue{quotient};
}

Evaluated float_power(double base, double exponent) {
    if (base == 0.0 && exponent < 0.0) {
        return raise("ZeroDivisionError", "zero to a negative power");
    }
    if (base < 0.0 && std::isfinite(base) && std::isfinite(exponent) &&
        exponent != std::floor(exponent)) {
        return raise("ValueError", "The result would be a complex number.");
    }
    const double result = std::pow(base, exponent);
    if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
        return raise("OverflowError", "(34, 'Numerical result out of range')");
    }
    return ExpressionValue{result};
}

Evaluated guarded_power(const ExpressionValue& left, const ExpressionValue& right) {
    if (is_beyond(left, kOperandMax) || is_beyond(right, kOperandMax)) {
        return raise(
            "simpleeval.NumberTooHigh",
            "Sorry! I don't want to evaluate " + show(left) + " ** " + show(right)
        );
    }
    return power(left, right);
}

Evaluated combine_floats(std::string_view operation, double a, double b) {
    if (operation == "+") {
        return ExpressionValue{a + b};
    }
    if (operation == "-") {
        return ExpressionValue{a - b};
    }
    if (operation == "*") {
        return ExpressionValue{a * b};
    }
    if (b == 0.0) {
        return raise("ZeroDivisionError", "division by zero");
    }
    return ExpressionValue{operation == "//" ? float_floor_divide(a, b) : float_modulo(a, b)};
}

Evaluated shift(std::string_view operation, const BigInt& a, const BigInt& by) {
    if (by < 0) {
        return raise("ValueError", "negative shift count");
    }
    if (operation == ">>") {
        if (by > kBitsMax) {
            return ExpressionValue{BigInt(a < 0 ? -1 : 0)};
        }
        return ExpressionValue{floor_divide(a, BigInt(1) << by.convert_to<unsigned>())};
    }
    if (by > kShiftMax) {
        return raise(
            "simpleeval.NumberTooHigh",
            "Sorry! I don't want to evaluate " + a.str() + " << " + by.str()
        );
    }
    return checked_size(BigInt(a << by.convert_to<unsigned>()));
}

// Two's complement of any length, which boost only has for positive numbers.
BigInt combine_bits(std::string_view operation, BigInt a, BigInt b) {
    const bool a_negative = a < 0;
    const bool b_negative = b < 0;
    a = a_negative ? BigInt(-a - 1) : a;
    b = b_negative ? BigInt(-b - 1) : b;
    BigInt result;
    const auto bit = [&](bool x, bool y) {
        return operation == "&" ? x && y : operation == "|" ? x || y : x != y;
    };
    const std::size_t bits = std::max(
        a.is_zero() ? 0 : boost::multiprecision::msb(a) + 1,
        b.is_zero() ? 0 : boost::multiprecision::msb(b) + 1
    );
    const bool negative = bit(a_negative, b_negative);
    for (std::size_t i = 0; i < bits; ++i) {
        const auto at = static_cast<unsigned>(i);
        if (bit(bit_test(a, at) != a_negative, bit_test(b, at) != b_negative) != negative) {
            bit_set(result, at);
        }
    }
    return negative ? BigInt(-result - 1) : result;
}

Evaluated combine_wholes(std::string_view operation, const BigInt& a, const BigInt& b) {
    if (operation == "+") {
        return checked_size(BigInt(a + b));
    }
    if (operation == "-") {
        return checked_size(BigInt(a - b));
    }
    if (operation == "*") {
        return checked_size(BigInt(a * b));
    }
    if (operation == "<<" || operation == ">>") {
        return shift(operation, a, b);
    }
    if (operation == "&" || operation == "|" || operation == "^") {
        return ExpressionValue{combine_bits(operation, a, b)};
    }
    if (b == 0) {
        return raise("ZeroDivisionError", "division by zero");
    }
    BigInt quotient = floor_divide(a, b);
    return ExpressionValue{operation == "//" ? std::move(quotient) : BigInt(a - quotient * b)};
}

bool equal(const ExpressionValue& left, const ExpressionValue& right) {
    if (is_number(left) && is_number(right)) {
        return order(left, right) == 0;
    }
    const auto* a = std::get_if<std::string>(&left.content);
    const auto* b = std::get_if<std::string>(&right.content);
    if (a != nullptr && b != nullptr) {
        return *a == *b;
    }
    const auto* list_a = std::get_if<ExpressionList>(&left.content);
    const auto* list_b = std::get_if<ExpressionList>(&right.content);
    return list_a != nullptr && list_b != nullptr && std::ranges::equal(*list_a, *list_b, equal);
}

}  // namespace

int order(const ExpressionValue& left, const ExpressionValue& right) {
    const auto sign = [](const auto& a, const auto& b) { return a < b ? -1 : b < a ? 1 : 0; };
    if (is_float(left) && is_float(right)) {
        const double a = std::get<double>(left.content);
        const double b = std::get<double>(right.content);
        return std::isnan(a) || std::isnan(b) ? 2 : sign(a, b);
    }
    if (!is_float(left) && !is_float(right)) {
        return sign(whole(left), whole(right));
    }
    if (is_float(right)) {
        const int reversed = order(right, left);
        return reversed == 2 ? 2 : -reversed;
    }
    const double a = std::get<double>(left.content);
    if (!std::isfinite(a)) {
        return std::isnan(a) ? 2 : a < 0 ? -1 : 1;
    }
    return sign(cpp_rational(a), cpp_rational(whole(right)));
}

Evaluated power(const ExpressionValue& left, const ExpressionValue& right) {
    if (!is_float(left) && !is_float(right) && whole(right) >= 0) {
        const BigInt base = whole(left);
        const BigInt exponent = whole(right);
        const std::size_t bits = base.is_zero() ? 0 : boost::multiprecision::msb(abs(base)) + 1;
        if (bits > 1 && exponent * (bits - 1) > kBitsMax) {
            return raise("MemoryError", "The number is too long.");
        }
        if (bits <= 1) {
            const bool odd = bit_test(exponent, 0);
            return ExpressionValue{
                exponent == 0 ? BigInt(1) : (base < 0 && !odd ? BigInt(1) : base)
            };
        }
        return ExpressionValue{
            BigInt(boost::multiprecision::pow(base, exponent.convert_to<unsigned>()))
        };
    }
    const auto base = to_float(left);
    const auto exponent = to_float(right);
    if (!base || !exponent) {
        return tl::unexpected((base ? exponent : base).error());
    }
    return float_power(*base, *exponent);
}

bool is_beyond(const ExpressionValue& value, int limit) {
    return is_float(value) ? std::abs(std::get<double>(value.content)) > limit
                           : abs(whole(value)) > limit;
}

Evaluated apply_binary(
    std::string_view operation, const ExpressionValue& left, const ExpressionValue& right
) {
    const auto* a = std::get_if<std::string>(&left.content);
    const auto* b = std::get_if<std::string>(&right.content);
    if (operation == "+" && a != nullptr && b != nullptr) {
        return ExpressionValue{*a + *b};
    }
    const bool bitwise = operation == "&" || operation == "|" || operation == "^" ||
                         operation == "<<" || operation == ">>";
    const bool floating = is_float(left) || is_float(right);
    if (!is_number(left) || !is_number(right) || (bitwise && floating)) {
        return raise(
            "TypeError",
            "unsupported operand type(s) for " +
                std::string(operation == "**" ? "** or pow()" : operation) + ": " +
                quoted_types(left, right)
        );
    }
    if (operation == "/") {
        return divide(left, right);
    }
    if (operation == "**") {
        return guarded_power(left, right);
    }
    if (!floating) {
        return combine_wholes(operation, whole(left), whole(right));
    }
    const auto x = to_float(left);
    const auto y = to_float(right);
    if (!x || !y) {
        return tl::unexpected((x ? y : x).error());
    }
    return combine_floats(operation, *x, *y);
}

Evaluated apply_unary(std::string_view operation, const ExpressionValue& value) {
    if (!is_number(value) || (operation == "~" && is_float(value))) {
        return raise(
            "TypeError",
            "bad operand type for unary " + std::string(operation) + ": '" +
                std::string(type_name(value)) + "'"
        );
    }
    if (is_float(value)) {
        const double number = std::get<double>(value.content);
        return ExpressionValue{operation == "-" ? -number : number};
    }
    const BigInt number = whole(value);
    return ExpressionValue{
        operation == "-"   ? BigInt(-number)
        : operation == "~" ? BigInt(-number - 1)
                           : number
    };
}

Evaluated compare_values(
    std::string_view operation, const ExpressionValue& left, const ExpressionValue& right
) {
    if (operation == "==" || operation == "is") {
        return ExpressionValue{equal(left, right)};
    }
    if (operation == "!=" || operation == "is not") {
        return ExpressionValue{!equal(left, right)};
    }
    if (operation == "in" || operation == "not in") {
        const auto* list = std::get_if<ExpressionList>(&right.content);
        if (list == nullptr) {
            return raise(
                "TypeError",
                "argument of type '" + std::string(type_name(right)) +
                    "' is not a container or iterable"
            );
        }
        const bool found = std::ranges::any_of(*list, [&](const ExpressionValue& item) {
            return equal(item, left);
        });
        return ExpressionValue{found == (operation == "in")};
    }
    if (!is_number(left) || !is_number(right)) {
        return raise(
            "TypeError",
            "'" + std::string(operation) + "' not supported between instances of " +
                quoted_types(left, right)
        );
    }
    const int compared = order(left, right);
    const bool result = operation == "<"    ? compared == -1
                        : operation == ">"  ? compared == 1
                        : operation == "<=" ? compared <= 0
                                            : compared == 0 || compared == 1;
    return ExpressionValue{result};
}

}  // namespace comfyd::engine::nodes
