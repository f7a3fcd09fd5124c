#include "engine/nodes/text/regex_syntax.hpp"

#include <algorithm>
#include <utility>

#include "engine/nodes/text/regex_characters.hpp"
#include "engine/nodes/text/regex_translator.hpp"

namespace comfyd::engine::nodes {

std::string with_position(
    std::string_view text, std::u32string_view pattern, std::size_t position
) {
    std::string out = std::string(text) + " at position " + std::to_string(position);
    if (pattern.find(U'\n') != pattern.npos) {
        const std::u32string_view before = pattern.substr(0, position);
        const std::size_t newline = before.rfind(U'\n');
        const std::size_t column = newline == before.npos ? position + 1 : position - newline;
        out += " (line " + std::to_string(std::ranges::count(before, U'\n') + 1) + ", column " +
               std::to_string(column) + ")";
    }
    return out;
}

bool is_identifier(std::u32string_view name) {
    const auto allowed = [](char32_t c) {
        return regex::is_letter(c) || regex::is_digit(c) || c == '_' || c >= 0x80;
    };
    return !name.empty() && !regex::is_digit(name[0]) && std::ranges::all_of(name, allowed);
}

tl::expected<TranslatedRegex, RegexProblem> translate_regex(
    std::string_view pattern, RegexFlags flags
) {
    try {
        return regex::Translator(pattern, flags).translate();
    } catch (regex::Failure& failure) {
        return tl::unexpected(std::move(failure.problem));
    }
}

}  // namespace comfyd::engine::nodes
