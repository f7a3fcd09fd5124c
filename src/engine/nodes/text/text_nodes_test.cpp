#include <gtest/gtest.h>

#include "engine/nodes/text/format_spec.hpp"
#include "engine/nodes/text/json_text.hpp"
#include "engine/nodes/text/shown_test_support.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

// Expected values in this file are Python's own.
TEST(Unicode, CaseFollowsUnicode) {
    using namespace nodes;
    EXPECT_EQ(to_lower("ΌΣΟΣ ΣΑΣ Σ"), "όσος σας σ");
    EXPECT_EQ(to_upper("straße ﬁn ŉ"), "STRASSE FIN ʼN");
    EXPECT_EQ(to_title("ǆungla o'neil 3rd ﬁsh"), "ǅungla O'Neil 3Rd Fish");
    EXPECT_EQ(capitalize("ßETA ÄÖ"), "Sseta äö");
    EXPECT_EQ(to_lower("İ"), "i̇");
    EXPECT_EQ(to_upper("ÿāԃ𐐨"), "ŸĀԂ𐐀");
    EXPECT_EQ(strip("\u2003 x\u00A0"), "x");
    EXPECT_EQ(strip(" \u3000"), "");
}

TEST(Unicode, BadBytesDoNotHarm) {
    EXPECT_EQ(nodes::to_utf8(nodes::to_points("a\xFF\xC3")), "a\uFFFD\uFFFD");
    EXPECT_EQ(nodes::count_points("\xF0\x9F\x98"), 1U);
}

std::string formatted(json::value value, std::string_view spec) {
    const auto text = nodes::python_format(value, spec);
    return text ? *text : text.error().exception_type + ": " + text.error().text;
}

TEST(Format, NumbersAsInPython) {
    EXPECT_EQ(formatted(1234567, ","), "1,234,567");
    EXPECT_EQ(formatted(1234567, "_x"), "12_d687");
    EXPECT_EQ(formatted(1234, "010,"), "00,001,234");
    EXPECT_EQ(formatted(-42, "08.2f"), "-0042.00");
    EXPECT_EQ(formatted(-42, "+d"), "-42");
    EXPECT_EQ(formatted(42, "+d"), "+42");
    EXPECT_EQ(formatted(255, "#06x"), "0x00ff");
    EXPECT_EQ(formatted(255, "X"), "FF");
    EXPECT_EQ(formatted(65, "c"), "A");
    EXPECT_EQ(formatted(5, "*^7"), "***5***");
    EXPECT_EQ(formatted(5, "<4") + "|", "5   |");
    EXPECT_EQ(formatted(true, "d"), "1");
    EXPECT_EQ(formatted(true, ""), "True");
    EXPECT_EQ(formatted(1e20, ""), "1e+20");
    EXPECT_EQ(formatted(1234.5, ".3"), "1.23e+03");
    EXPECT_EQ(formatted(123.0, ".3"), "1.23e+02");
    EXPECT_EQ(formatted(12.0, ".3"), "12.0");
    EXPECT_EQ(formatted(0.5, "%"), "50.000000%");
    EXPECT_EQ(formatted(1234567.891, ",.2f"), "1,234,567.89");
    EXPECT_EQ(formatted(-0.0001, "z.1f"), "0.0");
    EXPECT_EQ(formatted(std::uint64_t{18446744073709551615U}, "d"), "18446744073709551615");
    EXPECT_EQ(formatted(INT64_MIN, "d"), "-9223372036854775808");
}

TEST(Format, TextsAndRefusalsAsInPython) {
    EXPECT_EQ(formatted("äbc", ".2"), "äb");
    EXPECT_EQ(formatted("ab", "05"), "ab000");
    EXPECT_EQ(formatted("a", "d"), "ValueError: Unknown format code 'd' for object of type 'str'");
    EXPECT_EQ(formatted(1, ".2"), "ValueError: Precision not allowed in integer format specifier");
    EXPECT_EQ(formatted(1, "q"), "ValueError: Unknown format code 'q' for object of type 'int'");
    EXPECT_EQ(
        formatted(1, "5xx"), "ValueError: Invalid format specifier '5xx' for object of type 'int'"
    );
    EXPECT_EQ(
        formatted(nullptr, "5"),
        "TypeError: unsupported format string passed to NoneType.__format__"
    );
    EXPECT_EQ(formatted(1, "99999999999"), "ValueError: Too many decimal digits in format string");
}

std::string format_string(const std::string& text) {
    return shown(
        {{"1", node_of("PrimitiveInt", {{"value", 7}})},
         {"2", node_of("PrimitiveBoundingBox", {{"x", 1}, {"y", 2}, {"width", 3}, {"height", 4}})},
         {"3",
          node_of(
              "StringFormat",
              {{"f_string", text}, {"values.a", link_to("1")}, {"values.b", link_to("2")}}
          )}},
        "3"
    );
}

TEST(StringFormat, FieldsAsInPython) {
    EXPECT_EQ(format_string("{a:{a}}|{b[width]}|{a!s:>3}"), "      7|3|  7");
    EXPECT_EQ(format_string("{c}"), "KeyError: 'c'");
    EXPECT_EQ(
        format_string("{}"),
        "IndexError: Replacement index 0 out of range for positional args tuple"
    );
    EXPECT_EQ(format_string("{a"), "ValueError: expected '}' before end of string");
    EXPECT_EQ(format_string("a}"), "ValueError: Single '}' encountered in format string");
    EXPECT_EQ(format_string("{"), "ValueError: Single '{' encountered in format string");
    EXPECT_EQ(format_string("{a.x}"), "AttributeError: 'int' object has no attribute 'x'");
    EXPECT_EQ(format_string("{a[0]}"), "TypeError: 'int' object is not subscriptable");
    EXPECT_EQ(format_string("{b[q]}"), "KeyError: 'q'");
}

std::string member(std::string_view text, std::string_view key) {
    std::string out;
    return nodes::find_json_member(
               text, key, [] { return false; }, out
           ) == nodes::JsonMember::found
               ? out
               : "-";
}

TEST(JsonText, ReadsAsPythonDoes) {
    EXPECT_EQ(
        member(R"({"a": 123456789012345678901234567890})", "a"), "123456789012345678901234567890"
    );
    EXPECT_EQ(
        member(R"({"a": [NaN, -Infinity, 1e3, true, null, "\ud83d\ude00\n"]})", "a"),
        "[nan, -inf, 1000.0, True, None, '😀\\n']"
    );
    EXPECT_EQ(member(R"({"a": 1, "a": {"x": 1, "x": 2}})", "a"), "{'x': 2}");
    EXPECT_EQ(member(R"({"a": 01})", "a"), "-");
    EXPECT_EQ(member(R"({"a": 1,})", "a"), "-");
    EXPECT_EQ(member(R"({"a": "tab	"})", "a"), "-");
    EXPECT_EQ(member(R"(  {"a":-0.0}  )", "a"), "-0.0");
    std::string out;
    EXPECT_EQ(
        nodes::find_json_member(
            std::string(100'000, '['), "a", [] { return false; }, out
        ),
        nodes::JsonMember::too_deep
    );
}

// The class with the list ["ab"] at the named inputs.
std::string of_list(
    const std::string& class_type, json::object inputs, std::vector<std::string> listed
) {
    for (const std::string& name : listed) {
        inputs[name] = link_to("1");
    }
    std::string text = shown(
        {{"1", node_of("TextToLowercase", {{"texts", "AB"}})},
         {"2", node_of(class_type, std::move(inputs))}},
        "2"
    );
    // PreviewAny shows lists over several lines.
    if (text.starts_with('[')) {
        std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    }
    return text;
}

// Expected values are Python's.
TEST(StringNodes, TakeListsWherePythonDoes) {
    EXPECT_EQ(of_list("StringLength", {}, {"string"}), "1");
    EXPECT_EQ(of_list("StringSubstring", {{"start", 0}, {"end", -1}}, {"string"}), "[]");
    EXPECT_EQ(of_list("StringSubstring", {{"start", -1}, {"end", 9}}, {"string"}), R"(["ab"])");
    EXPECT_EQ(
        of_list("StringContains", {{"substring", "ab"}, {"case_sensitive", true}}, {"string"}),
        "True"
    );
    EXPECT_EQ(
        of_list("StringContains", {{"substring", "a"}, {"case_sensitive", true}}, {"string"}),
        "False"
    );
    EXPECT_EQ(
        of_list("StringContains", {{"string", "ab"}, {"case_sensitive", true}}, {"substring"}),
        "TypeError: 'in <string>' requires string as left operand, not list"
    );
    EXPECT_EQ(
        of_list(
            "StringCompare", {{"mode", "Equal"}, {"case_sensitive", true}}, {"string_a", "string_b"}
        ),
        "True"
    );
    EXPECT_EQ(
        of_list(
            "StringCompare",
            {{"string_a", "ab"}, {"mode", "Equal"}, {"case_sensitive", true}},
            {"string_b"}
        ),
        "False"
    );
    EXPECT_EQ(of_list("JsonExtractString", {{"key", "a"}}, {"json_string"}), "");
    EXPECT_EQ(of_list("TruncateText", {{"max_length", 7}}, {"texts"}), R"([["ab"]])");
    EXPECT_EQ(of_list("MergeTextLists", {}, {"texts"}), R"([[["ab"]]])");
    // Beside the texts a list of one stands for what it holds.
    EXPECT_EQ(of_list("AddTextPrefix", {{"texts", "c"}}, {"prefix"}), R"(["abc"])");
    EXPECT_EQ(
        of_list("AddTextSuffix", {{"suffix", "c"}}, {"texts"}),
        "TypeError: can only concatenate list (not \"str\") to list"
    );
    EXPECT_EQ(of_list("ReplaceText", {{"texts", "cabc"}, {"replace", ""}}, {"find"}), R"(["cc"])");
    EXPECT_EQ(
        of_list("CaseConverter", {{"mode", "UPPERCASE"}}, {"string"}),
        "TypeError: 'string' must be of type STRING, but is data"
    );
}

TEST(StringNodes, RefuseListsWithoutEnd) {
    json::object prompt{{"0", node_of("MergeTextLists", {{"texts", std::string(1000, 'x')}})}};
    for (int i = 1; i < 1000; ++i) {
        prompt[std::to_string(i)] =
            node_of("TruncateText", {{"texts", link_to(std::to_string(i - 1))}, {"max_length", 9}});
    }
    EXPECT_TRUE(shown(prompt, "999").starts_with("RecursionError"));
    for (int i = 1; i < 40; ++i) {
        const json::array before = link_to(std::to_string(i - 1));
        prompt[std::to_string(i)] =
            node_of("AddTextSuffix", {{"texts", before}, {"suffix", before}});
    }
    EXPECT_TRUE(shown(prompt, "39").starts_with("MemoryError"));
}

TEST(StringNodes, RefuseTextsWithoutEnd) {
    const std::string text(9000, 'x');
    EXPECT_TRUE(shown_node(
                    "StringReplace", {{"string", text}, {"find", ""}, {"replace", text}}
    ).starts_with("MemoryError"));
}

}  // namespace
}  // namespace comfyd::engine
