#include "engine/nodes/text/regex_characters.hpp"

#include <array>
#include <cstdio>

namespace comfyd::engine::nodes::regex {

std::string literal(char32_t c) {
    if (is_letter(c) || is_digit(c) || c == '_') {
        return {static_cast<char>(c)};
    }
    if (c > 0x20 && c < 0x7F) {
        return {'\\', static_cast<char>(c)};
    }
    if (c >= 0xD800 && c < 0xE000) {
        c = 0xFFFD;
    }
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "\\x{%x}", static_cast<unsigned>(c));
    return buffer.data();
}

std::string_view category(char32_t letter, bool ascii) {
    switch (letter) {
        case 'd':
            return ascii ? "0-9" : "\\p{Nd}";
        case 'D':
            return ascii ? "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}" : "\\P{Nd}";
        case 's':
            return ascii ? " \\x{9}-\\x{d}" : "\\s\\x{1c}-\\x{1f}";
        case 'S':
            return ascii ? "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{10ffff}" : "\\S";
        case 'w':
            return ascii ? "A-Za-z0-9_" : "\\p{L}\\p{N}_";
        case 'W':
            return ascii ? "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}"
                         : "\\W";
        default:
            return {};
    }
}

std::optional<char32_t> simple_escape(char32_t letter) {
    switch (letter) {
        case 'a':
            return 7;
        case 'f':
            return 12;
        case 'n':
            return 10;
        case 'r':
            return 13;
        case 't':
            return 9;
        case 'v':
            return 11;
        case '\\':
            return '\\';
        default:
            return std::nullopt;
    }
}

}  // namespace comfyd::engine::nodes::regex
