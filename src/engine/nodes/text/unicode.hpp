// Texts as Python sees them: sequences of characters (code points) with Unicode's rules for case
// and white space. UTF-8 outside, code points inside. Bytes that are no UTF-8 become U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::engine::nodes {

// What the functions below take, at most, for each byte of a text that they change.
inline constexpr std::uint64_t kBytesPerChangedByte = 16;

std::u32string to_points(std::string_view utf8);
std::string to_utf8(std::u32string_view points);
void append_utf8(std::string& out, char32_t point);
// Decodes the character at `at` and moves on; `at` must be inside.
char32_t next_point(std::string_view utf8, std::size_t& at);
std::size_t count_points(std::string_view utf8);

// str.upper(), lower(), capitalize() and title().
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string to_title(std::string_view text);

// str.isspace() of one character.
bool is_space(char32_t point);
// str.strip(), lstrip() and rstrip().
std::string_view strip(std::string_view text, bool left = true, bool right = true);

// str.replace(): every occurrence; an empty `find` stands between all characters. Ask
// replaced_size() first where the texts are not trusted.
std::string replace_all(std::string_view text, std::string_view find, std::string_view with);
// How many bytes that gives; saturates.
std::size_t replaced_size(std::string_view text, std::string_view find, std::string_view with);

}  // namespace comfyd::engine::nodes
