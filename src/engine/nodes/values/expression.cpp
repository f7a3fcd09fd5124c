#include "engine/nodes/values/expression.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/nodes/values/expression_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kDepthMax = 200;

ExpressionValue checked(Evaluated value) {
    if (!value) {
        throw ExpressionFailure{std::move(value.error())};
    }
    return std::move(*value);
}

// Reads and computes in one go, by Python's precedence. What Python would not compute (the other
// branch of an if, the rest of an and) is read with `live_` off.
class Reader : ExpressionText {
public:
    Reader(
        std::string_view text, const ExpressionNames& names, const std::function<bool()>& stopped
    )
        : ExpressionText(text), names_(names), stopped_(stopped) {}

    ExpressionValue read() {
        const std::size_t first = text_.find_first_not_of(" \t\n\r\f\v");
        at_ = first == text_.npos ? text_.size() : first;
        ExpressionValue value = read_choice();
        skip_spaces();
        // A second line would be a second statement, of which only the first counts.
        if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';') {
            refuse_syntax();
        }
        return value;
    }

private:
    struct Deeper {
        explicit Deeper(int& depth) : depth_(depth) {
            if (++depth_ > kDepthMax) {
                throw ExpressionFailure{{"RecursionError", "maximum recursion depth exceeded"}};
            }
        }
        ~Deeper() { --depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        int& depth_;
    };

    ExpressionValue binary(
        std::string_view sign, const ExpressionValue& left, const ExpressionValue& right
    ) const {
        return live_ ? checked(apply_binary(sign, left, right)) : ExpressionValue{false};
    }

    template <class Read>
    ExpressionValue read_unless(bool skipped, Read read) {
        const bool before = std::exchange(live_, live_ && !skipped);
        ExpressionValue value = read();
        live_ = before;
        return value;
    }

    // a if b else c. The condition decides first, so the first branch is read last.
    ExpressionValue read_choice() {
        const Deeper deeper(depth_);
        const std::size_t start = at_;
        const std::size_t condition_at = find_if();
        if (condition_at == text_.npos) {
            return read_or();
        }
        at_ = condition_at + 2;
        const bool condition = is_true(read_or());
        if (!accept_word("else")) {
            throw ExpressionFailure{
                {"SyntaxError", "expected 'else' after 'if' expression (<unknown>, line 1)"}
            };
        }
        ExpressionValue other = read_unless(condition, [this] { return read_choice(); });
        const std::size_t end = std::exchange(at_, start);
        ExpressionValue first = read_unless(!condition, [this] { return read_or(); });
        skip_spaces();
        if (at_ != condition_at) {
            refuse_syntax();
        }
        at_ = end;
        return condition ? first : other;
    }

    ExpressionValue read_or() {
        ExpressionValue value = read_and();
        while (accept_word("or")) {
            const bool decided = is_true(value);
            ExpressionValue next = read_unless(decided, [this] { return read_and(); });
            value = decided ? std::move(value) : std::move(next);
        }
        return value;
    }

    ExpressionValue read_and() {
        ExpressionValue value = read_not();
        while (accept_word("and")) {
            const bool decided = !is_true(value);
            ExpressionValue next = read_unless(decided, [this] { return read_not(); });
            value = decided ? std::move(value) : std::move(next);
        }
        return value;
    }

    ExpressionValue read_not() {
        const Deeper deeper(depth_);
        if (accept_word("not")) {
            return {!is_true(read_not())};
        }
        return read_comparison();
    }

    std::string_view accept_comparison() {
        static constexpr std::array<std::string_view, 6> kSigns = {
            "==", "!=", "<=", ">=", "<", ">"
        };
        skip_spaces();
        if (text_.substr(at_).starts_with("<<") || text_.substr(at_).starts_with(">>")) {
            return {};
        }
        if (const std::string_view sign = accept_one(kSigns); !sign.empty()) {
            return sign;
        }
        if (accept_word("in")) {
            return "in";
        }
        if (accept_word("is")) {
            return accept_word("not") ? "is not" : "is";
        }
        const std::size_t before = at_;
        if (accept_word("not")) {
            if (accept_word("in")) {
                return "not in";
            }
            at_ = before;
        }
        return {};
    }

    ExpressionValue read_comparison() {
        ExpressionValue left = read_bits(0);
        std::optional<ExpressionValue> result;
        while (true) {
            const std::string_view sign = accept_comparison();
            if (sign.empty()) {
                return result ? std::move(*result) : std::move(left);
            }
            const bool decided = result && !is_true(*result);
            ExpressionValue right = read_unless(decided, [this] { return read_bits(0); });
            if (!decided) {
                result =
                    live_ ? checked(compare_values(sign, left, right)) : ExpressionValue{false};
            }
            left = std::move(right);
        }
    }

    // | ^ & and the shifts, from the loosest to the tightest.
    ExpressionValue read_bits(int level) {
        static constexpr std::array<std::array<std::string_view, 2>, 4> kLevels = {
            {{"|", "|"}, {"^", "^"}, {"&", "&"}, {"<<", ">>"}}
        };
        if (level == 4) {
            return read_sum();
        }
        ExpressionValue value = read_bits(level + 1);
        while (true) {
            const std::string_view sign = accept_one(kLevels[static_cast<std::size_t>(level)]);
            if (sign.empty()) {
                return value;
            }
            value = binary(sign, value, read_bits(level + 1));
        }
    }

    ExpressionValue read_sum() {
        static constexpr std::array<std::string_view, 2> kSigns = {"+", "-"};
        ExpressionValue value = read_product();
        while (true) {
            const std::string_view sign = accept_one(kSigns);
            if (sign.empty()) {
                return value;
            }
            value = binary(sign, value, read_product());
        }
    }

    ExpressionValue read_product() {
        static constexpr std::array<std::string_view, 4> kSigns = {"//", "*", "/", "%"};
        ExpressionValue value = read_signed();
        while (true) {
            skip_spaces();
            if (text_.substr(at_).starts_with("**")) {
                return value;
            }
            const std::string_view sign = accept_one(kSigns);
            if (sign.empty()) {
                return value;
            }
            value = binary(sign, value, read_signed());
        }
    }

    ExpressionValue read_signed() {
        static constexpr std::array<std::string_view, 3> kSigns = {"-", "+", "~"};
        const Deeper deeper(depth_);
        const std::string_view sign = accept_one(kSigns);
        if (sign.empty()) {
            return read_power();
        }
        const ExpressionValue value = read_signed();
        return live_ ? checked(apply_unary(sign, value)) : ExpressionValue{false};
    }

    ExpressionValue read_power() {
        ExpressionValue base = read_item();
        if (!accept("**")) {
            return base;
        }
        return binary("**", base, read_signed());
    }

    ExpressionValue read_item() {
        ExpressionValue value = read_atom();
        while (accept("[")) {
            ++brackets_;
            const ExpressionValue index = read_choice();
            close("]");
            value = live_ ? item_of(value, index) : ExpressionValue{false};
        }
        return value;
    }

    static ExpressionValue item_of(const ExpressionValue& value, const ExpressionValue& index) {
        const auto* list = std::get_if<ExpressionList>(&value.content);
        if (list == nullptr) {
            throw ExpressionFailure{
                {"TypeError", "'" + std::string(type_name(value)) + "' object is not subscriptable"}
            };
        }
        const auto* number = std::get_if<BigInt>(&index.content);
        if (number == nullptr && !std::holds_alternative<bool>(index.content)) {
            throw ExpressionFailure{
                {"TypeError",
                 "list indices must be integers or slices, not " + std::string(type_name(index))}
            };
        }
        BigInt place = number != nullptr ? *number : BigInt(std::get<bool>(index.content) ? 1 : 0);
        if (place < 0) {
            place += list->size();
        }
        if (place < 0 || place >= list->size()) {
            throw ExpressionFailure{{"IndexError", "list index out of range"}};
        }
        return (*list)[place.convert_to<std::size_t>()];
    }

    ExpressionValue read_atom() {
        if (stopped_()) {
            throw ExpressionFailure{{"InterruptedError", "The run was cancelled."}};
        }
        skip_spaces();
        if (at_ >= text_.size()) {
            refuse_syntax();
        }
        const char c = text_[at_];
        if (accept("(")) {
            ++brackets_;
            ExpressionValue value = read_choice();
            close(")");
            return value;
        }
        if (accept("[")) {
            ++brackets_;
            ExpressionList items = read_list("]");
            return {std::move(items)};
        }
        if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
            return read_number();
        }
        if (c == '"' || c == '\'') {
            return read_text(c);
        }
        if (is_name(c)) {
            return read_name();
        }
        refuse_syntax();
    }

    // After the opening bracket, up to the closing one.
    ExpressionList read_list(std::string_view end) {
        ExpressionList items;
        while (!accept(end)) {
            items.push_back(read_choice());
            if (!accept(",")) {
                close(end);
                return items;
            }
        }
        --brackets_;
        return items;
    }

    ExpressionValue read_name() {
        const std::string name(read_word());
        if (name == "True" || name == "False") {
            return {name == "True"};
        }
        static constexpr std::array<std::string_view, 8> kReserved = {
            "if", "else", "and", "or", "not", "in", "is", "lambda"
        };
        if (std::ranges::find(kReserved, name) != kReserved.end()) {
            refuse_syntax();
        }
        if (accept("(")) {
            ++brackets_;
            const ExpressionList arguments = read_list(")");
            return live_ ? call(name, arguments) : ExpressionValue{false};
        }
        const auto known =
            std::ranges::find(names_, name, [](const auto& entry) { return entry.first; });
        if (known == names_.end()) {
            if (!live_) {
                return {false};
            }
            throw ExpressionFailure{
                {"simpleeval.NameNotDefined",
                 "'" + name + "' is not defined for expression '" + std::string(text_) + "'"}
            };
        }
        return known->second;
    }

    ExpressionValue call(const std::string& name, const ExpressionList& arguments) const {
        if (!is_expression_function(name)) {
            throw ExpressionFailure{
                {"simpleeval.FunctionNotDefined",
                 "Function '" + name + "' not defined, for expression '" + std::string(text_) + "'."
                }
            };
        }
        return checked(call_function(name, arguments));
    }

    const ExpressionNames& names_;
    const std::function<bool()>& stopped_;
    int depth_ = 0;
    bool live_ = true;
};

}  // namespace

Evaluated evaluate_expression(
    std::string_view expression, const ExpressionNames& names, const std::function<bool()>& stopped
) {
    try {
        return Reader(expression, names, stopped).read();
    } catch (ExpressionFailure& failure) {
        return tl::unexpected(std::move(failure.problem));
    }
}

}  // namespace comfyd::engine::nodes
