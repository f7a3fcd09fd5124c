// An expression as text that is read from left to right: spaces, signs, words and literals, as
// Python writes them. What it cannot be is thrown as an ExpressionFailure. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "engine/nodes/values/expression.hpp"

namespace comfyd::engine::nodes {

// How a bad expression is left from any depth; ends in evaluate_expression().
struct ExpressionFailure {
    ExpressionProblem problem;
};

class ExpressionText {
public:
    explicit ExpressionText(std::string_view text) : text_(text) {}

    static bool is_digit(char c);
    static bool is_name(char c);
    [[noreturn]] static void refuse_syntax();

    void skip_spaces();
    bool accept(std::string_view sign);
    bool accept_word(std::string_view word);
    // The first of the operators that stands here; longer ones come first.
    template <std::size_t kCount>
    std::string_view accept_one(const std::array<std::string_view, kCount>& operators) {
        for (const std::string_view sign : operators) {
            if (accept(sign)) {
                return sign;
            }
        }
        return {};
    }
    void close(std::string_view bracket);
    // Where the "if" of the expression that begins here stands, npos: nowhere.
    std::size_t find_if() const;

    std::string_view read_word();
    ExpressionValue read_text(char quote);
    ExpressionValue read_number();

protected:
    const std::string_view text_;
    std::size_t at_ = 0;
    int brackets_ = 0;  // that are open: a line may end inside of them

private:
    static ExpressionValue read_hex(std::string_view digits);
    // "1if x else 2" is still allowed in Python.
    bool starts_keyword() const;
};

}  // namespace comfyd::engine::nodes
