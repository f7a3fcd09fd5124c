// Reads a pattern by Python's rules and writes it anew for PCRE2: a descent through choices,
// sequences, repetitions, groups and sets. Lives for one pattern; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/nodes/text/regex_syntax.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine::nodes::regex {

inline constexpr std::uint64_t kUnbounded = UINT64_MAX / 4;

// How many characters a part can match.
struct Width {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
};

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

class Translator {
public:
    Translator(std::string_view pattern, RegexFlags flags)
        : text_(to_points(pattern)), flags_(flags) {}

    TranslatedRegex translate();

private:
    struct Scope {
        bool ascii = false;
        bool verbose = false;
    };

    [[noreturn]] void refuse(std::string_view text, std::size_t position) const;

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

    Item parse_choice(int depth);
    Item parse_sequence(int depth);
    bool skip_blank(char32_t c);
    Item parse_simple(char32_t c, std::size_t start);

    struct Bounds {
        std::uint64_t least = 0;
        std::uint64_t most = kUnbounded;
    };

    std::optional<std::uint64_t> parse_count();
    // After "{"; nullopt where the brace is only a character.
    std::optional<Bounds> parse_bounds();
    // False where a brace is only a character.
    bool parse_repeat(char32_t c, std::size_t start, std::vector<Item>& items);

    // regex_escapes.cpp
    char32_t parse_hex(std::size_t start, int digits);
    // The letters of escapes that mean one character, in sets and outside; nullopt: none of them.
    std::optional<char32_t> parse_character_escape(char32_t c, std::size_t start);
    char32_t checked_octal(char32_t value, std::size_t start) const;
    Item parse_escape(std::size_t start);
    Item parse_number_escape(char32_t c, std::size_t start);
    Item reference(std::size_t group, std::size_t position) const;

    struct ClassItem {
        std::string out;
        std::optional<char32_t> point;  // nullopt: a category
    };
    ClassItem parse_class_item(char32_t c, std::size_t start);
    std::string parse_class(std::size_t start);

    // regex_groups.cpp
    std::u32string parse_name(char32_t end);
    std::string parse_identifier(char32_t end);
    static std::string quoted(const std::string& name);
    std::size_t find_name(const std::string& name, std::size_t position) const;
    void close(std::size_t start);
    void parse_group(std::size_t start, int depth, bool first, std::vector<Item>& items);
    Item parse_inner(std::size_t start, int depth, std::string open);
    Item parse_capture(std::size_t start, int depth, const std::string& name);
    Item parse_named(std::size_t start, int depth);
    Item parse_look(char32_t c, std::size_t start, int depth);
    Item parse_condition(std::size_t start, int depth);
    void parse_flags(
        char32_t c, std::size_t start, int depth, bool first, std::vector<Item>& items
    );
    char32_t take_flag();
    // The flags that PCRE2 itself needs to know.
    static std::string only_matching(const std::string& flags);
    void set_global(const std::string& on);

    const std::u32string text_;
    RegexFlags flags_;
    std::size_t at_ = 0;
    Scope scope_;
    std::vector<std::optional<Width>> widths_{Width{0, 0}};  // by group; nullopt while open
    std::map<std::string, std::size_t, std::less<>> names_;
    std::vector<std::pair<std::size_t, std::size_t>> later_groups_;  // number, position
};

}  // namespace comfyd::engine::nodes::regex
