// Single characters and sets of them in Python's and PCRE2's regular expressions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace comfyd::engine::nodes::regex {

inline bool is_digit(char32_t c) {
    return c >= '0' && c <= '9';
}
inline bool is_octal(char32_t c) {
    return c >= '0' && c <= '7';
}
inline bool is_letter(char32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline int hex_value(char32_t c) {
    return is_digit(c)            ? static_cast<int>(c - '0')
           : c >= 'a' && c <= 'f' ? static_cast<int>(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A' + 10)
                                  : -1;
}

// The character itself, whatever it means to PCRE2.
std::string literal(char32_t c);
// What stands between [ and ] for a category such as \w; empty: none.
std::string_view category(char32_t letter, bool ascii);
// The character that a letter after a backslash stands for in Python.
std::optional<char32_t> simple_escape(char32_t letter);

}  // namespace comfyd::engine::nodes::regex
