#include "workflow/graph/python_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace comfyd::workflow {
namespace {

TEST(PythonText, ReprIsPythons) {
    EXPECT_EQ(
        python_repr(json::parse(R"({"a": [1, 2.0, null, true, "x"]})").value()),
        "{'a': [1, 2.0, None, True, 'x']}"
    );
    EXPECT_EQ(python_repr("it's"), "\"it's\"");
    EXPECT_EQ(python_repr("it's \"so\""), "'it\\'s \"so\"'");
    EXPECT_EQ(python_repr("a\\b\n\t\x01\u00e9"), "'a\\\\b\\n\\t\\x01\u00e9'");
    EXPECT_EQ(python_str("it's"), "it's");
    EXPECT_EQ(python_str(1e22), "1e+22");
}

TEST(PythonText, IntTakesWhatPythonTakes) {
    EXPECT_EQ(python_int(" -1_000 ").value().value, -1000);
    EXPECT_EQ(python_int("\u0661\u0662").value().value, 12);
    EXPECT_EQ(python_int("007").value().value, 7);
    EXPECT_EQ(python_int(-0.9).value().value, 0);
    EXPECT_EQ(python_int("9223372036854775807").value().value, INT64_MAX);
    EXPECT_EQ(python_int("9223372036854775808").value().value, 9223372036854775808ULL);
    EXPECT_TRUE(python_int("18446744073709551616").value().value.is_null());
    EXPECT_EQ(python_int("-9223372036854775809").value().text, "-9223372036854775809");
    EXPECT_TRUE(python_int("-9223372036854775809").value().negative);
    EXPECT_EQ(python_int(18446744073709551615ULL).value().text, "18446744073709551615");
    for (const char* bad : {"", "+", "1__0", "_1", "1_", "1 0", "0x1", "1.0", "--1", "\u4e00"}) {
        EXPECT_FALSE(python_int(bad)) << bad;
    }
}

TEST(PythonText, IntegersOfAnySizeAreCompared) {
    const auto compare = [](const char* left, const json::value& right) {
        return python_compare(python_int(left).value(), right);
    };
    EXPECT_EQ(compare("5", 5), 0);
    EXPECT_EQ(compare("5", 6), -1);
    EXPECT_EQ(compare("10", 9), 1);
    EXPECT_EQ(compare("-10", -9), -1);
    EXPECT_EQ(compare("-9", -10), 1);
    EXPECT_EQ(compare("-1", 0), -1);
    EXPECT_EQ(compare("0", -1), 1);
    EXPECT_EQ(compare("18446744073709551616", 18446744073709551615ULL), 1);
    EXPECT_EQ(compare("18446744073709551615", 18446744073709551615ULL), 0);
    EXPECT_EQ(compare("-99999999999999999999", INT64_MIN), -1);
    EXPECT_EQ(compare("2", 1.5), 1);
    EXPECT_EQ(compare("2", 2.5), -1);
}

TEST(PythonText, EqualityIsPythons) {
    EXPECT_TRUE(python_equal(1, true));
    EXPECT_TRUE(python_equal(1, 1.0));
    EXPECT_TRUE(python_equal(1U, 1));
    EXPECT_TRUE(python_equal("a", "a"));
    EXPECT_TRUE(python_equal(nullptr, nullptr));
    EXPECT_FALSE(python_equal("1", 1));
    EXPECT_FALSE(python_equal(nullptr, false));
    EXPECT_FALSE(python_equal(json::array{1}, "1"));
}

TEST(PythonText, FloatTakesWhatPythonTakes) {
    EXPECT_EQ(python_float(" 1_0.5 ").value(), 10.5);
    EXPECT_EQ(python_float("+.5e1").value(), 5.0);
    EXPECT_EQ(python_float("1e400").value(), HUGE_VAL);
    EXPECT_EQ(python_float("-Infinity").value(), -HUGE_VAL);
    for (const char* bad : {"", "+", "+-1", "1_.5", "0x1p3", "nan(1)", "1e", "abc"}) {
        EXPECT_FALSE(python_float(bad)) << bad;
    }
}

TEST(PythonText, FloatsAndIntegersAreComparedExactly) {
    EXPECT_EQ(python_compare(-9.223372036854775808e18, -9223372036854775807), -1);
    EXPECT_EQ(python_compare(-9.223372036854775808e18, INT64_MIN), 0);
    EXPECT_EQ(python_compare(9.223372036854775808e18, INT64_MAX), 1);
    EXPECT_EQ(python_compare(1.8446744073709551616e19, UINT64_MAX), 1);
    EXPECT_EQ(python_compare(-0.5, UINT64_MAX), -1);
    EXPECT_EQ(python_compare(9007199254740992.0, 9007199254740993), -1);
    EXPECT_EQ(python_compare(2.5, 2), 1);
    EXPECT_EQ(python_compare(-2.5, -2), -1);
    EXPECT_EQ(python_compare(NAN, 0), 0);
    EXPECT_EQ(python_compare(*python_int(INT64_MAX), json::value(9.223372036854775808e18)), -1);
    EXPECT_EQ(python_compare(*python_int("-18446744073709551616"), json::value(-1e300)), 1);
}

TEST(PythonText, TruthIsPythons) {
    EXPECT_TRUE(python_bool("false"));
    EXPECT_FALSE(python_bool(""));
    EXPECT_FALSE(python_bool(json::object()));
    EXPECT_TRUE(python_bool(json::array{0}));
    EXPECT_FALSE(python_bool(nullptr));
    EXPECT_FALSE(python_bool(0.0));
}

}  // namespace
}  // namespace comfyd::workflow
