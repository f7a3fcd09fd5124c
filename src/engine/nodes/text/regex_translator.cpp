#include "engine/nodes/text/regex_translator.hpp"

#include <algorithm>

#include "engine/nodes/text/regex_characters.hpp"

namespace comfyd::engine::nodes::regex {
namespace {

constexpr std::uint64_t kRepeatMax = 65535;  // PCRE2's
constexpr std::uint64_t kPythonRepeatMax = 4294967295;
constexpr int kDepthMax = 200;

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

}  // namespace

TranslatedRegex Translator::translate() {
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

void Translator::refuse(std::string_view text, std::size_t position) const {
    throw Failure{{.text = with_position(text, text_, position)}};
}

Item Translator::parse_choice(int depth) {
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
            std::min(all.width.least, next.width.least), std::max(all.width.most, next.width.most)
        };
    }
    return all;
}

Item Translator::parse_sequence(int depth) {
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

bool Translator::skip_blank(char32_t c) {
    if (c == '#') {
        while (more() && take() != '\n') {
        }
        return true;
    }
    return c == ' ' || (c >= 9 && c <= 13);
}

Item Translator::parse_simple(char32_t c, std::size_t start) {
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

std::optional<std::uint64_t> Translator::parse_count() {
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
            {.exception_type = "OverflowError", .text = "a part can be repeated at most 65535 times"
            }
        };
    }
    return value;
}

std::optional<Translator::Bounds> Translator::parse_bounds() {
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

bool Translator::parse_repeat(char32_t c, std::size_t start, std::vector<Item>& items) {
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

}  // namespace comfyd::engine::nodes::regex
