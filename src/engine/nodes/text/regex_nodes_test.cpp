#include <gtest/gtest.h>

#include "engine/nodes/text/shown_test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

std::string replaced(
    const std::string& text, const std::string& pattern, const std::string& with, int count = 0
) {
    return shown_node(
        "RegexReplace",
        {{"string", text},
         {"regex_pattern", pattern},
         {"replace", with},
         {"case_insensitive", false},
         {"count", count}}
    );
}

std::string extracted(
    const std::string& text, const std::string& pattern, const std::string& mode, int group = 1
) {
    return shown_node(
        "RegexExtract",
        {{"string", text},
         {"regex_pattern", pattern},
         {"mode", mode},
         {"case_insensitive", false},
         {"multiline", false},
         {"dotall", false},
         {"group_index", group}}
    );
}

// Expected values are Python's own.
TEST(RegexReplace, FollowsPythonsSyntax) {
    EXPECT_EQ(replaced("aaa", "a{,2}", "x"), "xxx");
    EXPECT_EQ(replaced("a{b", "{", "x"), "axb");
    EXPECT_EQ(replaced("a{,b", "a{,", "x"), "xb");
    EXPECT_EQ(replaced("x]y-z", "[]-]", "."), "x.y.z");
    EXPECT_EQ(replaced("ab\n", "b\\Z", "x"), "ab\n");
    EXPECT_EQ(replaced("ab\n", "b$", "x"), "ax\n");
    EXPECT_EQ(
        replaced("one two", "(?P<a>\\w+) (?P<b>\\w+)", "\\g<b>-\\g<a>-\\g<0>"), "two-one-one two"
    );
    EXPECT_EQ(replaced("abab", "(a)(?:b)(?P=x)?", "y").substr(0, 15), "re.PatternError");
    EXPECT_EQ(replaced("xx", "(?x) x  # the letter\n x", "y"), "y");
    EXPECT_EQ(replaced("aXbx", "(?i:x)", "."), "a.b.");
    EXPECT_EQ(replaced("aXbx", "(?i)x", "."), "a.b.");
    EXPECT_EQ(replaced("été", "(?a)\\w", "."), "é.é");
    EXPECT_EQ(replaced("foobar", "(?<=foo)bar", "x"), "foox");
    EXPECT_EQ(replaced("ab ac", "a(?=c)", "x"), "ab xc");
    EXPECT_EQ(replaced("<a><b>", "<.+?>", "x"), "xx");
    EXPECT_EQ(replaced("aa", "(a)?(?(1)a|b)", "x"), "x");
    EXPECT_EQ(replaced("tab\there", "\\t", "\\\\t"), "tab\\there");
    EXPECT_EQ(replaced("\x1c", "\\s", "x"), "x");
    EXPECT_EQ(replaced("A", "\\x41", "\\101\\x"), "re.PatternError: bad escape \\x at position 4");
}

TEST(RegexReplace, EmptyMatchesAreReplacedAsInPython) {
    EXPECT_EQ(replaced("abc", "x*", "-"), "-a-b-c-");
    EXPECT_EQ(replaced("abxd", "x*", "-"), "-a-b--d-");
    EXPECT_EQ(replaced("a\nb\n", "(?m)^", ">"), ">a\n>b\n>");
    EXPECT_EQ(replaced("äö", "", "."), ".ä.ö.");
    EXPECT_EQ(replaced("aaaa", "a", "b", 2), "bbaa");
}

TEST(RegexReplace, RefusesWithPythonsWords) {
    const std::string error = "re.PatternError: ";
    EXPECT_EQ(replaced("a", "(", "b"), error + "missing ), unterminated subpattern at position 0");
    EXPECT_EQ(replaced("a", "a)", "b"), error + "unbalanced parenthesis at position 1");
    EXPECT_EQ(replaced("a", "*a", "b"), error + "nothing to repeat at position 0");
    EXPECT_EQ(replaced("a", "a**", "b"), error + "multiple repeat at position 2");
    EXPECT_EQ(
        replaced("a", "a{3,2}", "b"), error + "min repeat greater than max repeat at position 2"
    );
    EXPECT_EQ(replaced("a", "[a", "b"), error + "unterminated character set at position 0");
    EXPECT_EQ(replaced("a", "[z-a]", "b"), error + "bad character range z-a at position 1");
    EXPECT_EQ(replaced("a", "\\q", "b"), error + "bad escape \\q at position 0");
    EXPECT_EQ(replaced("a", "a\\", "b"), error + "bad escape (end of pattern) at position 1");
    EXPECT_EQ(replaced("a", "\\1", "b"), error + "invalid group reference 1 at position 1");
    EXPECT_EQ(replaced("a", "(?<n>a)", "b"), error + "unknown extension ?<n at position 1");
    EXPECT_EQ(
        replaced("a", "(?P<1>a)", "b"), error + "bad character in group name '1' at position 4"
    );
    EXPECT_EQ(replaced("a", "(?<=a+)b", "b"), error + "look-behind requires fixed-width pattern");
    EXPECT_EQ(
        replaced("a", "a(?i)", "b"),
        error + "global flags not at the start of the expression at position 1"
    );
    EXPECT_EQ(
        replaced("a", "a\n(", "b"),
        error + "missing ), unterminated subpattern at position 2 (line 2, column 1)"
    );
    EXPECT_EQ(replaced("a", "a", "\\2"), error + "invalid group reference 2 at position 1");
    EXPECT_EQ(replaced("a", "a", "\\g<x>"), "IndexError: unknown group name 'x'");
    EXPECT_EQ(replaced("a", "a", "\\g<"), error + "missing group name at position 3");
}

TEST(RegexExtract, GroupsThatDidNotMatch) {
    EXPECT_EQ(extracted("ab", "(a)|(b)", "All Matches"), "a\n");
    EXPECT_EQ(
        extracted("ab", "(a)|(b)", "All Groups", 2),
        "TypeError: sequence item 0: expected str instance, NoneType found"
    );
    EXPECT_EQ(extracted("abc", "b", "First Group", 0), "b");
    EXPECT_EQ(extracted("abc", "b", "All Groups", 0), "");
    EXPECT_EQ(extracted("abc", "(b)", "All Groups", 2), "");
}

TEST(Regex, StopsAtTooMuchBacktracking) {
    const std::string text = shown_node(
        "RegexMatch",
        {{"string", std::string(40, 'a') + "b"},
         {"regex_pattern", "(a+)+c"},
         {"case_insensitive", false},
         {"multiline", false},
         {"dotall", false}}
    );
    // PCRE2 sees at once that there is no c; either answer is fine, hanging is not.
    EXPECT_TRUE(text == "False" || text.starts_with("RuntimeError")) << text;
    EXPECT_TRUE(
        replaced(std::string(60, 'a') + "!", "(?:a|aa|aaa)+$", "").starts_with("RuntimeError")
    );
}

}  // namespace
}  // namespace comfyd::engine
