#include "engine/nodes/text/regex_syntax.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "engine/nodes/text/unicode.hpp"
#include "workflow/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::uint64_t kUnbounded = UINT64_MAX / 4;
constexpr std::uint64_t kRepeatMax = 65535;  // PCRE2's
constexpr std::uint64_t kPythonRepeatMax = 4294967295;
constexpr int kDepthMax = 200;

// How many characters a part can match.
struct Width {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
};

Width operator+(Width a, Width b) {
    return {std::min(a.least + b.least, kUnbounded), std::min(a.most + b.most, kUnbounded)};
}

Width times(Width width, std::uint64_t least, std::uint64_t most) {
    const auto product = [](std::uint64_t a, std::uint64_t b) {
        std::uint64_t result = 0;
        return __builtin_mul_overflow(a, b, &result) ? kUnbounded : std::min(result, kUnbounded);
    };
    return {product(width.least, least), product(width.most, most)};
}

enum class Kind { plain, anchor, repeat };

struct Item {
    std::string out;
    Width width{1, 1};
    Kind kind = Kind::plain;
};

// How the reader leaves a bad pattern from any depth; ends in translate_regex().
struct Failure {
    RegexProblem problem;
};

bool is_digit(char32_t c) {
    return c >= '0' && c <= '9';
}
bool is_octal(char32_t c) {
    return c >= '0' && c <= '7';
}
bool is_letter(char32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
int hex_value(char32_t c) {
    return is_digit(c)            ? static_cast<int>(c - '0')
           : c >= 'a' && c <= 'f' ? static_cast<int>(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A' + 10)
                                  : -1;
}

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

// What stands between [ and ] for a category such as \w.
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

class Translator {
public:
    Translator(std::string_view pattern, RegexFlags flags)
        : text_(to_points(pattern)), flags_(flags) {}

    TranslatedRegex translate() {
        Item all = parse_choice(0);
        if (at_ < text_.size()) {
            refuse("unbalanced parenthesis", at_);
        }
        for (const auto& [group, position] : later_groups_) {
            if (group >= widths_.size()) {
                refuse("invalid group reference " + std::to_string(group), position);
            }
        }
        return {std::move(all.out), flags_, widths_.size() - 1, std::move(names_)};
    }

private:
    struct Scope {
        bool ascii = false;
        bool verbose = false;
    };

    [[noreturn]] void refuse(std::string_view text, std::size_t position) const {
        throw Failure{{.text = with_position(text, text_, position)}};
    }

    bool more() const { return at_ < text_.size(); }
    char32_t peek() const { return more() ? text_[at_] : 0; }
    bool accept(char32_t c) {
        if (more() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }
    std::string piece(std::size_t from) const {
        return to_utf8(std::u32string_view(text_).substr(from, at_ - from));
    }
    char32_t take() {
        if (!more()) {
            refuse("unexpected end of pattern", at_);
        }
        return text_[at_++];
    }

    Item parse_choice(int depth) {
        if (depth > kDepthMax) {
            throw Failure{
                {.exception_type = "RecursionError", .text = "maximum recursion depth exceeded"}
            };
        }
        Item all = parse_sequence(depth);
        while (accept('|')) {
            const Item next = parse_sequence(depth);
            all.out += '|' + next.out;
            all.width = {
                std::min(all.width.least, next.width.least),
                std::max(all.width.most, next.width.most)
            };
        }
        return all;
    }

    Item parse_sequence(int depth) {
        const bool first = depth == 0 && at_ == 0;
        std::vector<Item> items;
        while (more() && peek() != '|' && peek() != ')') {
            const std::size_t start = at_;
            const char32_t c = take();
            if (scope_.verbose && skip_blank(c)) {
                continue;
            }
            if (c == '*' || c == '+' || c == '?' || c == '{') {
                if (!parse_repeat(c, start, items)) {
                    items.push_back({literal('{')});
                }
            } else if (c == '(') {
                parse_group(start, depth, first && items.empty(), items);
            } else {
                items.push_back(parse_simple(c, start));
            }
        }
        Item all{.out = {}, .width = {0, 0}};
        for (const Item& item : items) {
            all.out += item.out;
            all.width = all.width + item.width;
        }
        return all;
    }

    bool skip_blank(char32_t c) {
        if (c == '#') {
            while (more() && take() != '\n') {
            }
            return true;
        }
        return c == ' ' || (c >= 9 && c <= 13);
    }

    Item parse_simple(char32_t c, std::size_t start) {
        switch (c) {
            case '.':
                return {"."};
            case '^':
                return {"^", {0, 0}, Kind::anchor};
            case '$':
                return {"$", {0, 0}, Kind::anchor};
            case '[':
                return {parse_class(start)};
            case '\\':
                return parse_escape(start);
            default:
                return {literal(c)};
        }
    }

    struct Bounds {
        std::uint64_t least = 0;
        std::uint64_t most = kUnbounded;
    };

    std::optional<std::uint64_t> parse_count() {
        if (!is_digit(peek())) {
            return std::nullopt;
        }
        std::uint64_t value = 0;
        while (is_digit(peek())) {
            value = std::min<std::uint64_t>(value * 10 + (take() - '0'), kPythonRepeatMax);
        }
        if (value >= kPythonRepeatMax) {
            throw Failure{
                {.exception_type = "OverflowError", .text = "the repetition number is too large"}
            };
        }
        if (value > kRepeatMax) {
            throw Failure{
                {.exception_type = "OverflowError",
                 .text = "a part can be repeated at most 65535 times"}
            };
        }
        return value;
    }

    // After "{"; nullopt where the brace is only a character.
    std::optional<Bounds> parse_bounds() {
        const std::size_t here = at_;
        if (peek() == '}') {
            return std::nullopt;
        }
        Bounds bounds;
        const auto least = parse_count();
        std::optional<std::uint64_t> most = least;
        if (accept(',')) {
            most = parse_count();
        }
        if (!accept('}')) {
            at_ = here;
            return std::nullopt;
        }
        bounds.least = least.value_or(0);
        bounds.most = most.value_or(kUnbounded);
        if (bounds.most < bounds.least) {
            refuse("min repeat greater than max repeat", here);
        }
        return bounds;
    }

    // False where a brace is only a character.
    bool parse_repeat(char32_t c, std::size_t start, std::vector<Item>& items) {
        Bounds bounds;
        if (c == '?') {
            bounds.most = 1;
        } else if (c == '+') {
            bounds.least = 1;
        } else if (c == '{') {
            const auto read = parse_bounds();
            if (!read) {
                return false;
            }
            bounds = *read;
        }
        if (items.empty() || items.back().kind == Kind::anchor) {
            refuse("nothing to repeat", start);
        }
        Item& item = items.back();
        if (item.kind == Kind::repeat) {
            refuse("multiple repeat", start);
        }
        item.kind = Kind::repeat;
        item.width = times(item.width, bounds.least, bounds.most);
        if (c != '{') {
            item.out += static_cast<char>(c);
        } else {
            item.out += '{' + std::to_string(bounds.least) + ',' +
                        (bounds.most == kUnbounded ? "" : std::to_string(bounds.most)) + '}';
        }
        if (accept('?')) {
            item.out += '?';
        } else if (accept('+')) {
            item.out += '+';
        }
        return true;
    }

    char32_t parse_hex(std::size_t start, int digits) {
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

    // The letters of escapes that mean one character, in sets and outside; nullopt: none of them.
    std::optional<char32_t> parse_character_escape(char32_t c, std::size_t start) {
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

    char32_t checked_octal(char32_t value, std::size_t start) const {
        if (value > 0377) {
            refuse("octal escape value " + piece(start) + " outside of range 0-0o377", start);
        }
        return value;
    }

    Item parse_escape(std::size_t start) {
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

    Item parse_number_escape(char32_t c, std::size_t start) {
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
                return {literal(
                    checked_octal(((c - '0') * 8 + (second - '0')) * 8 + (third - '0'), start)
                )};
            }
            group = group * 10 + (second - '0');
        }
        if (group >= widths_.size()) {
            refuse("invalid group reference " + std::to_string(group), start + 1);
        }
        return reference(group, start);
    }

    Item reference(std::size_t group, std::size_t position) const {
        if (!widths_[group]) {
            refuse("cannot refer to an open group", position);
        }
        return {"\\g{" + std::to_string(group) + "}", *widths_[group]};
    }

    struct ClassItem {
        std::string out;
        std::optional<char32_t> point;  // nullopt: a category
    };

    ClassItem parse_class_item(char32_t c, std::size_t start) {
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

    std::string parse_class(std::size_t start) {
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

    std::u32string parse_name(char32_t end) {
        const std::size_t start = at_;
        while (more() && peek() != end) {
            ++at_;
        }
        const std::u32string name = text_.substr(start, at_ - start);
        if (!more()) {
            if (name.empty()) {
                refuse("missing group name", at_);
            }
            refuse("missing " + to_utf8(std::u32string(1, end)) + ", unterminated name", start);
        }
        ++at_;
        if (name.empty()) {
            refuse("missing group name", start);
        }
        return name;
    }

    std::string parse_identifier(char32_t end) {
        const std::size_t start = at_;
        const std::u32string name = parse_name(end);
        if (!is_identifier(name)) {
            refuse("bad character in group name " + quoted(to_utf8(name)), start);
        }
        return to_utf8(name);
    }

    static std::string quoted(const std::string& name) {
        return workflow::python_repr(json::value(name));
    }

    std::size_t find_name(const std::string& name, std::size_t position) const {
        const auto found = names_.find(name);
        if (found == names_.end()) {
            refuse("unknown group name " + quoted(name), position);
        }
        return found->second;
    }

    void close(std::size_t start) {
        if (!accept(')')) {
            refuse("missing ), unterminated subpattern", start);
        }
    }

    void parse_group(std::size_t start, int depth, bool first, std::vector<Item>& items) {
        if (!accept('?')) {
            items.push_back(parse_capture(start, depth, {}));
            return;
        }
        const std::size_t mark = at_;
        const char32_t c = take();
        if (c == 'P') {
            items.push_back(parse_named(start, depth));
        } else if (c == ':' || c == '>') {
            items.push_back(parse_inner(start, depth, c == ':' ? "(?:" : "(?>"));
        } else if (c == '#') {
            while (more() && peek() != ')') {
                ++at_;
            }
            if (!accept(')')) {
                refuse("missing ), unterminated comment", start);
            }
        } else if (c == '=' || c == '!' || c == '<') {
            items.push_back(parse_look(c, start, depth));
        } else if (c == '(') {
            items.push_back(parse_condition(start, depth));
        } else if (c == '-' || std::u32string_view(U"aiLmsux").find(c) != std::u32string::npos) {
            parse_flags(c, start, depth, first, items);
        } else {
            refuse("unknown extension ?" + piece(mark), mark - 1);
        }
    }

    Item parse_inner(std::size_t start, int depth, std::string open) {
        const Scope outer = scope_;
        Item inner = parse_choice(depth + 1);
        scope_ = outer;
        close(start);
        return {std::move(open) + inner.out + ')', inner.width};
    }

    Item parse_capture(std::size_t start, int depth, const std::string& name) {
        const std::size_t group = widths_.size();
        widths_.emplace_back(std::nullopt);
        if (!name.empty()) {
            const auto [known, added] = names_.emplace(name, group);
            if (!added) {
                refuse(
                    "redefinition of group name " + quoted(name) + " as group " +
                        std::to_string(group) + "; was group " + std::to_string(known->second),
                    at_ - to_points(name).size() - 1
                );
            }
        }
        Item item = parse_inner(start, depth, "(");
        widths_[group] = item.width;
        return item;
    }

    Item parse_named(std::size_t start, int depth) {
        if (accept('<')) {
            const std::string name = parse_identifier('>');
            return parse_capture(start, depth, name);
        }
        if (accept('=')) {
            const std::size_t position = at_;
            const std::string name = parse_identifier(')');
            return reference(find_name(name, position), position);
        }
        const std::size_t mark = at_;
        take();
        refuse("unknown extension ?P" + piece(mark), mark - 2);
    }

    Item parse_look(char32_t c, std::size_t start, int depth) {
        const bool behind = c == '<';
        std::string open = "(?";
        if (behind) {
            const std::size_t mark = at_;
            c = take();
            if (c != '=' && c != '!') {
                refuse("unknown extension ?<" + piece(mark), mark - 2);
            }
            open += '<';
        }
        open += static_cast<char>(c);
        Item item = parse_inner(start, depth, std::move(open));
        if (behind && item.width.least != item.width.most) {
            throw Failure{{.text = "look-behind requires fixed-width pattern"}};
        }
        item.width = {0, 0};
        return item;
    }

    Item parse_condition(std::size_t start, int depth) {
        const std::size_t position = at_;
        const std::u32string name = parse_name(')');
        std::size_t group = 0;
        if (std::ranges::all_of(name, is_digit)) {
            for (const char32_t digit : name) {
                group = std::min<std::size_t>(group * 10 + (digit - '0'), 1'000'000);
            }
            if (group == 0) {
                refuse("bad group number", position);
            }
            later_groups_.emplace_back(group, position);
        } else if (!is_identifier(name)) {
            refuse("bad character in group name " + quoted(to_utf8(name)), position);
        } else {
            group = find_name(to_utf8(name), position);
        }
        const Scope outer = scope_;
        const Item yes = parse_sequence(depth + 1);
        Item no{.out = {}, .width = {0, 0}};
        if (accept('|')) {
            no = parse_sequence(depth + 1);
            if (peek() == '|') {
                refuse("conditional backref with more than two branches", at_);
            }
        }
        scope_ = outer;
        close(start);
        return {
            "(?(" + std::to_string(group) + ")" + yes.out + "|" + no.out + ")",
            {std::min(yes.width.least, no.width.least), std::max(yes.width.most, no.width.most)}
        };
    }

    void parse_flags(
        char32_t c, std::size_t start, int depth, bool first, std::vector<Item>& items
    ) {
        std::string on;
        std::string off;
        bool removing = false;
        for (;; c = take_flag()) {
            if (c == '-' && !removing) {
                removing = true;
            } else if (c == ')' || c == ':') {
                break;
            } else if (std::u32string_view(U"aiLmsux").find(c) == std::u32string::npos) {
                refuse(is_letter(c) ? "unknown flag" : "missing -, : or )", at_ - 1);
            } else if (c == 'L') {
                refuse("bad inline flags: cannot use 'L' flag with a str pattern", at_);
            } else {
                (removing ? off : on) += static_cast<char>(c);
            }
        }
        if (removing && off.empty()) {
            refuse("missing flag", at_ - 1);
        }
        if (off.find_first_of("au") != off.npos) {
            refuse("bad inline flags: cannot turn off flags 'a', 'u' and 'L'", at_);
        }
        if (c == ')') {
            if (removing) {
                refuse("missing :", at_ - 1);
            }
            if (!first) {
                refuse("global flags not at the start of the expression", start);
            }
            set_global(on);
            return;
        }
        const Scope outer = scope_;
        scope_.ascii = (scope_.ascii || on.find('a') != on.npos) && on.find('u') == on.npos;
        scope_.verbose = (scope_.verbose || on.find('x') != on.npos) && off.find('x') == off.npos;
        std::string open = "(?" + only_matching(on);
        if (const std::string less = only_matching(off); !less.empty()) {
            open += '-' + less;
        }
        Item item = parse_choice(depth + 1);
        scope_ = outer;
        close(start);
        items.push_back({open + ':' + item.out + ')', item.width});
    }

    char32_t take_flag() {
        if (!more()) {
            refuse("missing -, : or )", at_);
        }
        return text_[at_++];
    }

    // The flags that PCRE2 itself needs to know.
    static std::string only_matching(const std::string& flags) {
        std::string kept;
        for (const char flag : flags) {
            if (flag == 'i' || flag == 'm' || flag == 's') {
                kept += flag;
            }
        }
        return kept;
    }

    void set_global(const std::string& on) {
        for (const char flag : on) {
            flags_.ignore_case |= flag == 'i';
            flags_.multiline |= flag == 'm';
            flags_.dot_all |= flag == 's';
            scope_.ascii |= flag == 'a';
            scope_.verbose |= flag == 'x';
        }
    }

    const std::u32string text_;
    RegexFlags flags_;
    std::size_t at_ = 0;
    Scope scope_;
    std::vector<std::optional<Width>> widths_{Width{0, 0}};  // by group; nullopt while open
    std::map<std::string, std::size_t, std::less<>> names_;
    std::vector<std::pair<std::size_t, std::size_t>> later_groups_;  // number, position
};

}  // namespace

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
        return is_letter(c) || is_digit(c) || c == '_' || c >= 0x80;
    };
    return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, allowed);
}

tl::expected<TranslatedRegex, RegexProblem> translate_regex(
    std::string_view pattern, RegexFlags flags
) {
    try {
        return Translator(pattern, flags).translate();
    } catch (Failure& failure) {
        return tl::unexpected(std::move(failure.problem));
    }
}

}  // namespace comfyd::engine::nodes
