#include "engine/nodes/values/expression.hpp"

#include <gtest/gtest.h>

namespace comfyd::engine::nodes {
namespace {

std::string computed(std::string_view expression) {
    const ExpressionNames names = {
        {"a", {BigInt(7)}},
        {"b", {2.5}},
        {"values", {ExpressionList{{BigInt(7)}, {2.5}}}},
    };
    const auto value = evaluate_expression(expression, names);
    return value ? show(*value) : value.error().exception_type + ": " + value.error().text;
}

// Expected values are Python's own.
TEST(Expression, PrecedenceAsInPython) {
    EXPECT_EQ(computed("2 + 3 * 4 ** 2 // 5"), "11");
    EXPECT_EQ(computed("-2 ** 2"), "-4");
    EXPECT_EQ(computed("2 ** -1"), "0.5");
    EXPECT_EQ(computed("2 ** 3 ** 2"), "512");
    EXPECT_EQ(computed("not 1 == 2"), "True");
    EXPECT_EQ(computed("1 < 2 < 3 != 4"), "True");
    EXPECT_EQ(computed("1 if 0 else 2 if 0 else 3"), "3");
    EXPECT_EQ(computed("(1 if a > 5 else 2) + 10"), "11");
    EXPECT_EQ(computed("a or b / 0"), "7");
    EXPECT_EQ(computed("0 and b / 0"), "0");
    EXPECT_EQ(computed("1 / 0 if a < 5 else 3"), "3");
    EXPECT_EQ(computed("6 | 1 ^ 3 & 2 << 1"), "7");
    EXPECT_EQ(computed("~5 + (-8 >> 1)"), "-10");
    EXPECT_EQ(computed("a in values and 3 not in values"), "True");
    EXPECT_EQ(computed("values[-1] + values[0]"), "9.5");
}

TEST(Expression, NumbersAsInPython) {
    EXPECT_EQ(computed("-7 // 2"), "-4");
    EXPECT_EQ(computed("-7 % 3"), "2");
    EXPECT_EQ(computed("7.5 // -2"), "-4.0");
    EXPECT_EQ(computed("7.5 % -2"), "-0.5");
    EXPECT_EQ(computed("2 ** 100"), "1267650600228229401496703205376");
    EXPECT_EQ(computed("10 ** 20 / 3"), "3.333333333333333e+19");
    EXPECT_EQ(computed("9007199254740993 == 9007199254740992.0"), "False");
    EXPECT_EQ(computed("0x1F + 1_000 + .5e1"), "1036.0");
    EXPECT_EQ(computed("round(2.5)"), "2");
    EXPECT_EQ(computed("round(2.675, 2)"), "2.67");
    EXPECT_EQ(computed("round(1250, -2)"), "1200");
    EXPECT_EQ(computed("sum(values) + sum(1, 2)"), "12.5");
    EXPECT_EQ(computed("max(1, 1.0)"), "1");
    EXPECT_EQ(computed("min(values)"), "2.5");
    EXPECT_EQ(computed("log(8, 2) + log2(8) + log10(1000)"), "9.0");
    EXPECT_EQ(computed("int(-3.9) + float(2) + ceil(1.1) + floor(-1.1)"), "-1.0");
    EXPECT_EQ(computed("True + 1"), "2");
}

TEST(Expression, RefusesAsPython) {
    EXPECT_EQ(computed("1 / 0"), "ZeroDivisionError: division by zero");
    EXPECT_EQ(
        computed("c + 1"), "simpleeval.NameNotDefined: 'c' is not defined for expression 'c + 1'"
    );
    EXPECT_EQ(
        computed("open(1)"),
        "simpleeval.FunctionNotDefined: Function 'open' not defined, for expression 'open(1)'."
    );
    EXPECT_EQ(
        computed("2 ** 5000000"),
        "simpleeval.NumberTooHigh: Sorry! I don't want to evaluate 2 ** 5000000"
    );
    EXPECT_EQ(computed("pow(2, 4001)"), "ValueError: Exponent 4001 exceeds maximum allowed (4000)");
    EXPECT_EQ(computed("sqrt(-1)"), "ValueError: expected a nonnegative input, got -1.0");
    EXPECT_EQ(computed("2.0 ** 3000"), "OverflowError: (34, 'Numerical result out of range')");
    EXPECT_EQ(
        computed("1 << 0.5"), "TypeError: unsupported operand type(s) for <<: 'int' and 'float'"
    );
    EXPECT_EQ(computed("values[5]"), "IndexError: list index out of range");
    for (const char* bad :
         {"1 +", "(1", "1 2", "a b", ")", "1..2", "if", "a.real", "f(,)", "1 if 2"}) {
        EXPECT_TRUE(computed(bad).starts_with("SyntaxError: ")) << bad << " gave " << computed(bad);
    }
}

TEST(Expression, IsBounded) {
    EXPECT_TRUE(computed(std::string(100'000, '(')).starts_with("RecursionError"));
    EXPECT_TRUE(computed(std::string(100'000, '-') + "1").starts_with("RecursionError"));
    EXPECT_TRUE(computed("3000000 ** 3000000").starts_with("MemoryError"));
    std::string nested = "1";
    for (int i = 0; i < 60; ++i) {
        nested = "(" + nested + " if 1 else 0)";
    }
    EXPECT_EQ(computed(nested), "1");
}

}  // namespace
}  // namespace comfyd::engine::nodes
