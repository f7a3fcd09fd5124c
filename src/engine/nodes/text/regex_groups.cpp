// What follows an opening parenthesis: groups and their names, looks around, conditions and flags.
#include <algorithm>

#include "engine/nodes/text/regex_characters.hpp"
#include "engine/nodes/text/regex_translator.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes::regex {

std::u32string Translator::parse_name(char32_t end) {
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

std::string Translator::parse_identifier(char32_t end) {
    const std::size_t start = at_;
    const std::u32string name = parse_name(end);
    if (!is_identifier(name)) {
        refuse("bad character in group name " + quoted(to_utf8(name)), start);
    }
    return to_utf8(name);
}

std::string Translator::quoted(const std::string& name) {
    return workflow::python_repr(json::value(name));
}

std::size_t Translator::find_name(const std::string& name, std::size_t position) const {
    const auto found = names_.find(name);
    if (found == names_.end()) {
        refuse("unknown group name " + quoted(name), position);
    }
    return found->second;
}

void Translator::close(std::size_t start) {
    if (!accept(')')) {
        refuse("missing ), unterminated subpattern", start);
    }
}

void Translator::parse_group(std::size_t start, int depth, bool first, std::vector<Item>& items) {
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

Item Translator::parse_inner(std::size_t start, int depth, std::string open) {
    const Scope outer = scope_;
    Item inner = parse_choice(depth + 1);
    scope_ = outer;
    close(start);
    return {std::move(open) + inner.out + ')', inner.width};
}

Item Translator::parse_capture(std::size_t start, int depth, const std::string& name) {
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

Item Translator::parse_named(std::size_t start, int depth) {
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

Item Translator::parse_look(char32_t c, std::size_t start, int depth) {
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

Item Translator::parse_condition(std::size_t start, int depth) {
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

void Translator::parse_flags(
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

char32_t Translator::take_flag() {
    if (!more()) {
        refuse("missing -, : or )", at_);
    }
    return text_[at_++];
}

std::string Translator::only_matching(const std::string& flags) {
    std::string kept;
    for (const char flag : flags) {
        if (flag == 'i' || flag == 'm' || flag == 's') {
            kept += flag;
        }
    }
    return kept;
}

void Translator::set_global(const std::string& on) {
    for (const char flag : on) {
        flags_.ignore_case |= flag == 'i';
        flags_.multiline |= flag == 'm';
        flags_.dot_all |= flag == 's';
        scope_.ascii |= flag == 'a';
        scope_.verbose |= flag == 'x';
    }
}

}  // namespace comfyd::engine::nodes::regex
