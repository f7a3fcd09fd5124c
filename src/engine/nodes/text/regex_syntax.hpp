// Python's regular expressions, written as PCRE2's. The two look alike and differ in many details
// (what a brace is, \Z, look-behinds, flags in the middle, which escapes exist), and ComfyUI's
// users see Python's refusals; so a pattern is read by Python's rules and written anew.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace comfyd::engine::nodes {

struct RegexFlags {
    bool ignore_case = false;
    bool multiline = false;
    bool dot_all = false;
};

struct RegexProblem {
    std::string exception_type = "re.PatternError";
    std::string text;
};

struct TranslatedRegex {
    std::string pattern;  // for PCRE2 with UTF and UCP, "\n" as the only newline
    RegexFlags flags;     // with those of the pattern itself
    std::size_t groups = 0;
    std::map<std::string, std::size_t, std::less<>> names;  // to group numbers
};

tl::expected<TranslatedRegex, RegexProblem> translate_regex(
    std::string_view pattern, RegexFlags flags
);

// "unknown group name 'x' at position 3", with line and column in patterns of several lines.
std::string with_position(std::string_view text, std::u32string_view pattern, std::size_t position);
// Python's str.isidentifier(), as far as ASCII goes; other characters are let through.
bool is_identifier(std::u32string_view name);

}  // namespace comfyd::engine::nodes
