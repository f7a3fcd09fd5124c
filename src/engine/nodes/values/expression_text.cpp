#include "engine/nodes/values/expression_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace comfyd::engine::nodes {

bool ExpressionText::is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool ExpressionText::is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
           static_cast<unsigned char>(c) >= 0x80;
}

void ExpressionText::refuse_syntax() {
    throw ExpressionFailure{{"SyntaxError", "invalid syntax (<unknown>, line 1)"}};
}

void ExpressionText::skip_spaces() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        const bool space =
            c == ' ' || c == '\t' || c == '\f' || c == '\r' || (c == '\n' && brackets_ > 0);
        if (c == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (c == '\\' && text_.substr(at_ + 1).starts_with('\n')) {
            at_ += 2;
        } else if (space) {
            ++at_;
        } else {
            return;
        }
    }
}

bool ExpressionText::accept(std::string_view sign) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(sign)) {
        return false;
    }
    at_ += sign.size();
    return true;
}

bool ExpressionText::accept_word(std::string_view word) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word) || (rest.size() > word.size() && is_name(rest[word.size()]))) {
        return false;
    }
    at_ += word.size();
    return true;
}

void ExpressionText::close(std::string_view bracket) {
    if (!accept(bracket)) {
        refuse_syntax();
    }
    --brackets_;
}

std::size_t ExpressionText::find_if() const {
    int open = 0;
    for (std::size_t at = at_; at < text_.size(); ++at) {
        const char c = text_[at];
        if (c == '"' || c == '\'') {
            at = std::min(text_.find(c, at + 1), text_.size());
        } else if (c == '(' || c == '[') {
            ++open;
        } else if (c == ')' || c == ']') {
            if (--open < 0) {
                break;
            }
        } else if (open == 0 && (c == ',' || (c == '\n' && brackets_ == 0))) {
            break;
        } else if (open == 0 && text_.substr(at).starts_with("if") &&
                   (at == 0 || !is_name(text_[at - 1]) || is_digit(text_[at - 1])) &&
                   (at + 2 == text_.size() || !is_name(text_[at + 2]))) {
            return at;
        }
    }
    return text_.npos;
}

std::string_view ExpressionText::read_word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name(text_[at_])) {
        ++at_;
    }
    return text_.substr(start, at_ - start);
}

ExpressionValue ExpressionText::read_text(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) {
        throw ExpressionFailure{
            {"SyntaxError", "unterminated string literal (detected at line 1) (<unknown>, line 1)"}
        };
    }
    ExpressionValue value{std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return value;
}

ExpressionValue ExpressionText::read_number() {
    bool whole = true;
    if (text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X")) {
        at_ += 2;
        return read_hex(read_word());
    }
    std::string digits;
    for (; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        const bool exponent = (c == 'e' || c == 'E') && !digits.empty();
        const bool sign =
            (c == '+' || c == '-') && (digits.ends_with('e') || digits.ends_with('E'));
        if (!is_digit(c) && c != '.' && c != '_' && !exponent && !sign) {
            break;
        }
        whole = whole && (is_digit(c) || c == '_');
        if (c != '_') {
            digits += c;
        }
    }
    if (at_ < text_.size() && is_name(text_[at_]) && !starts_keyword()) {
        throw ExpressionFailure{{"SyntaxError", "invalid decimal literal (<unknown>, line 1)"}};
    }
    if (whole) {
        if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos) {
            throw ExpressionFailure{
                {"SyntaxError",
                 "leading zeros in decimal integer literals are not permitted; use an 0o "
                 "prefix for octal integers (<unknown>, line 1)"}
            };
        }
        if (digits.size() > 4300) {
            refuse_syntax();
        }
        const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
        return {BigInt(digits.substr(first))};
    }
    double number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ptr != digits.data() + digits.size()) {
        refuse_syntax();
    }
    return {
        parsed.ec == std::errc::result_out_of_range ? std::strtod(digits.c_str(), nullptr) : number
    };
}

ExpressionValue ExpressionText::read_hex(std::string_view digits) {
    if (digits.empty() || digits.size() > 4096 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
        throw ExpressionFailure{{"SyntaxError", "invalid hexadecimal literal (<unknown>, line 1)"}};
    }
    return {BigInt("0x" + std::string(digits))};
}

bool ExpressionText::starts_keyword() const {
    const std::string_view rest = text_.substr(at_);
    return std::ranges::any_of(
        std::array<std::string_view, 6>{"if", "else", "and", "or", "in", "is"},
        [&](std::string_view word) { return rest.starts_with(word); }
    );
}

}  // namespace comfyd::engine::nodes
