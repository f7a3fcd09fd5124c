// What follows a backslash, and sets of characters.
#include "engine/nodes/text/regex_characters.hpp"
#include "engine/nodes/text/regex_translator.hpp"

namespace comfyd::engine::nodes::regex {

char32_t Translator::parse_hex(std::size_t start, int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
        const int digit = more() ? hex_value(peek()) : -1;
        if (digit < 0) {
            refuse("incomplete escape " + piece(start), start);
        }
        ++at_;
        value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF) {
        refuse("bad escape " + piece(start), start);
    }
    return value;
}

std::optional<char32_t> Translator::parse_character_escape(char32_t c, std::size_t start) {
    if (const auto simple = simple_escape(c)) {
        return simple;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        return parse_hex(start, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    }
    if (c == 'N') {
        if (!accept('{')) {
            refuse("missing {", at_);
        }
        const std::size_t name = at_;
        while (more() && peek() != '}') {
            ++at_;
        }
        refuse("undefined character name '" + piece(name) + "'", start);
    }
    return std::nullopt;
}

char32_t Translator::checked_octal(char32_t value, std::size_t start) const {
    if (value > 0377) {
        refuse("octal escape value " + piece(start) + " outside of range 0-0o377", start);
    }
    return value;
}

Item Translator::parse_escape(std::size_t start) {
    if (!more()) {
        refuse("bad escape (end of pattern)", start);
    }
    const char32_t c = take();
    const std::string word = "[" + std::string(category('w', scope_.ascii)) + "]";
    switch (c) {
        case 'A':
            return {"\\A", {0, 0}, Kind::anchor};
        case 'Z':
        case 'z':
            return {"\\z", {0, 0}, Kind::anchor};
        case 'b':
            return {
                "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))",
                {0, 0},
                Kind::anchor
            };
        case 'B':
            return {
                "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))",
                {0, 0},
                Kind::anchor
            };
        case 'd':
        case 's':
        case 'w':
            return {"[" + std::string(category(c, scope_.ascii)) + "]"};
        case 'D':
        case 'S':
        case 'W':
            return {"[^" + std::string(category(c + ('a' - 'A'), scope_.ascii)) + "]"};
        default:
            break;
    }
    if (is_digit(c)) {
        return parse_number_escape(c, start);
    }
    if (const auto point = parse_character_escape(c, start)) {
        return {literal(*point)};
    }
    if (is_letter(c)) {
        refuse("bad escape " + piece(start), start);
    }
    return {literal(c)};
}

Item Translator::parse_number_escape(char32_t c, std::size_t start) {
    if (c == '0') {
        char32_t value = 0;
        for (int i = 0; i < 2 && is_octal(peek()); ++i) {
            value = value * 8 + (take() - '0');
        }
        return {literal(value)};
    }
    std::size_t group = c - '0';
    if (is_digit(peek())) {
        const char32_t second = take();
        if (is_octal(c) && is_octal(second) && is_octal(peek())) {
            const char32_t third = take();
            return {
                literal(checked_octal(((c - '0') * 8 + (second - '0')) * 8 + (third - '0'), start))
            };
        }
        group = group * 10 + (second - '0');
    }
    if (group >= widths_.size()) {
        refuse("invalid group reference " + std::to_string(group), start + 1);
    }
    return reference(group, start);
}

Item Translator::reference(std::size_t group, std::size_t position) const {
    if (!widths_[group]) {
        refuse("cannot refer to an open group", position);
    }
    return {"\\g{" + std::to_string(group) + "}", *widths_[group]};
}

Translator::ClassItem Translator::parse_class_item(char32_t c, std::size_t start) {
    if (c != '\\') {
        return {literal(c), c};
    }
    if (!more()) {
        refuse("bad escape (end of pattern)", start);
    }
    const char32_t letter = take();
    if (const std::string_view set = category(letter, scope_.ascii); !set.empty()) {
        return {std::string(set), std::nullopt};
    }
    if (letter == 'b') {
        return {literal(8), 8};
    }
    if (is_octal(letter)) {
        char32_t value = letter - '0';
        for (int i = 0; i < 2 && is_octal(peek()); ++i) {
            value = value * 8 + (take() - '0');
        }
        value = checked_octal(value, start);
        return {literal(value), value};
    }
    if (const auto point = parse_character_escape(letter, start)) {
        return {literal(*point), *point};
    }
    if (is_letter(letter) || is_digit(letter)) {
        refuse("bad escape " + piece(start), start);
    }
    return {literal(letter), letter};
}

std::string Translator::parse_class(std::size_t start) {
    std::string out = accept('^') ? "[^" : "[";
    const auto next = [&] {
        if (!more()) {
            refuse("unterminated character set", start);
        }
        return text_[at_++];
    };
    for (bool empty = true;; empty = false) {
        const std::size_t from = at_;
        const char32_t c = next();
        if (c == ']' && !empty) {
            return out + ']';
        }
        const ClassItem first = parse_class_item(c, from);
        out += first.out;
        if (!accept('-')) {
            continue;
        }
        const std::size_t second_from = at_;
        const char32_t second_c = next();
        if (second_c == ']') {
            return out + "\\-]";
        }
        const ClassItem second = parse_class_item(second_c, second_from);
        if (!first.point || !second.point || *second.point < *first.point) {
            refuse("bad character range " + piece(from), from);
        }
        out += '-' + second.out;
    }
}

}  // namespace comfyd::engine::nodes::regex
