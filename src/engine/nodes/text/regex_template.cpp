// Replacement templates of Python's re.sub.
#include <utility>

#include "engine/nodes/text/python_regex.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

bool is_digit(char32_t c) {
    return c >= '0' && c <= '9';
}
bool is_octal(char32_t c) {
    return c >= '0' && c <= '7';
}
bool is_letter(char32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What a template is made of, read one piece at a time.
struct Piece {
    std::string literal;
    std::optional<std::size_t> group;
};
using PieceOrProblem = tl::expected<Piece, RegexProblem>;

class Reader {
public:
    Reader(std::string_view text, const PythonRegex& regex)
        : text_(to_points(text)), regex_(regex) {}

    bool more() const { return at_ < text_.size(); }

    PieceOrProblem next() {
        const std::size_t start = at_;
        const char32_t c = text_[at_++];
        if (c != '\\') {
            return character(c);
        }
        if (!more()) {
            return problem("bad escape (end of pattern)", start);
        }
        const char32_t letter = text_[at_++];
        if (letter == 'g') {
            return named();
        }
        if (is_digit(letter)) {
            return numbered(letter, start);
        }
        switch (letter) {
            case 'a':
                return character(7);
            case 'b':
                return character(8);
            case 'f':
                return character(12);
            case 'n':
                return character(10);
            case 'r':
                return character(13);
            case 't':
                return character(9);
            case 'v':
                return character(11);
            case '\\':
                return character('\\');
            default:
                break;
        }
        const std::string as_written = to_utf8(text_.substr(start, 2));
        if (is_letter(letter)) {
            return problem("bad escape " + as_written, start);
        }
        return Piece{.literal = as_written, .group = std::nullopt};
    }

private:
    static Piece character(char32_t c) {
        return {.literal = to_utf8(std::u32string(1, c)), .group = std::nullopt};
    }

    PieceOrProblem problem(const std::string& text, std::size_t position) const {
        return tl::unexpected(RegexProblem{.text = with_position(text, text_, position)});
    }

    PieceOrProblem group(std::size_t number, std::size_t position) const {
        if (number > regex_.groups()) {
            return problem("invalid group reference " + std::to_string(number), position);
        }
        return Piece{.literal = {}, .group = number};
    }

    char32_t peek() const { return more() ? text_[at_] : 0; }

    // \g<name> or \g<1>
    PieceOrProblem named() {
        if (peek() != '<') {
            return problem("missing <", at_);
        }
        ++at_;
        const std::size_t begin = at_;
        const std::size_t end = text_.find(U'>', begin);
        if (end == begin) {
            return problem("missing group name", begin);
        }
        if (end == text_.npos) {
            return begin == text_.size() ? problem("missing group name", begin)
                                         : problem("missing >, unterminated name", begin);
        }
        const std::u32string name = text_.substr(begin, end - begin);
        at_ = end + 1;
        bool all_digits = true;
        std::size_t number = 0;
        for (const char32_t c : name) {
            all_digits = all_digits && is_digit(c);
            number = std::min<std::size_t>(number * 10 + (c - '0'), 1'000'000'000);
        }
        if (all_digits) {
            return group(number, begin);
        }
        if (!is_identifier(name)) {
            return problem("bad character in group name " + quoted(name), begin);
        }
        const auto found = regex_.find_group(to_utf8(name));
        if (!found) {
            return tl::unexpected(RegexProblem{
                .exception_type = "IndexError", .text = "unknown group name " + quoted(name)
            });
        }
        return Piece{.literal = {}, .group = *found};
    }

    static std::string quoted(const std::u32string& name) {
        return workflow::python_repr(json::value(to_utf8(name)));
    }

    PieceOrProblem numbered(char32_t first, std::size_t start) {
        if (first == '0') {
            char32_t value = 0;
            for (int i = 0; i < 2 && is_octal(peek()); ++i) {
                value = value * 8 + (text_[at_++] - '0');
            }
            return character(value);
        }
        std::size_t number = first - '0';
        if (is_digit(peek())) {
            const char32_t second = text_[at_++];
            if (is_octal(first) && is_octal(second) && is_octal(peek())) {
                const char32_t value =
                    ((first - '0') * 8 + (second - '0')) * 8 + (text_[at_++] - '0');
                if (value > 0377) {
                    return problem(
                        "octal escape value " + to_utf8(text_.substr(start, at_ - start)) +
                            " outside of range 0-0o377",
                        start
                    );
                }
                return character(value);
            }
            number = number * 10 + (second - '0');
        }
        return group(number, start + 1);
    }

    std::u32string text_;
    const PythonRegex& regex_;
    std::size_t at_ = 0;
};

}  // namespace

tl::expected<RegexTemplate, RegexProblem> RegexTemplate::parse(
    std::string_view text, const PythonRegex& regex
) {
    RegexTemplate parsed;
    std::string literal;
    for (Reader reader(text, regex); reader.more();) {
        auto piece = reader.next();
        if (!piece) {
            return tl::unexpected(std::move(piece.error()));
        }
        literal += piece->literal;
        if (piece->group) {
            parsed.parts_.push_back({std::exchange(literal, {}), piece->group});
        }
    }
    parsed.parts_.push_back({std::move(literal), std::nullopt});
    return parsed;
}

std::uint64_t RegexTemplate::size(const std::vector<RegexSpan>& groups) const {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) {
        bytes += part.literal.size();
        if (part.group && groups[*part.group].matched) {
            bytes += groups[*part.group].end - groups[*part.group].begin;
        }
    }
    return bytes;
}

void RegexTemplate::append(
    std::string& out, std::string_view text, const std::vector<RegexSpan>& groups
) const {
    for (const Part& part : parts_) {
        out += part.literal;
        if (part.group && groups[*part.group].matched) {
            out += groups[*part.group].of(text);
        }
    }
}

}  // namespace comfyd::engine::nodes
