#include "engine/nodes/text/format_spec.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "engine/nodes/text/unicode.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kWidthMax = 1'000'000;

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
struct Spec {
    char32_t fill = ' ';
    char align = 0;
    char sign = 0;
    bool no_negative_zero = false;
    bool alternate = false;
    std::size_t width = 0;
    char grouping = 0;
    std::optional<std::size_t> precision;
    char type = 0;
};

using Text = tl::expected<std::string, FormatProblem>;

tl::unexpected<FormatProblem> refuse(std::string text) {
    return tl::unexpected(FormatProblem{.text = std::move(text)});
}

bool is_align(char32_t c) {
    return c == '<' || c == '>' || c == '=' || c == '^';
}

class SpecReader {
public:
    SpecReader(std::string_view written, std::string_view type_name)
        : written_(written), text_(to_points(written)), type_name_(type_name) {}

    tl::expected<Spec, FormatProblem> read(bool is_number) {
        Spec spec;
        read_alignment(spec);
        if (!spec.align && is_number) {
            spec.align = '>';
        }
        if (peek() == '+' || peek() == '-' || peek() == ' ') {
            spec.sign = static_cast<char>(text_[at_++]);
        }
        spec.no_negative_zero = accept('z');
        spec.alternate = accept('#');
        if (!has_fill_ && peek() == '0') {
            ++at_;
            spec.fill = '0';
            if (!has_align_ && is_number) {
                spec.align = '=';
            }
        }
        auto width = read_number();
        if (!width) {
            return tl::unexpected(std::move(width.error()));
        }
        spec.width = width->value_or(0);
        if (peek() == ',' || peek() == '_') {
            spec.grouping = static_cast<char>(text_[at_++]);
            if (peek() == ',' || peek() == '_') {
                return refuse("Cannot specify both ',' and '_'.");
            }
        }
        if (accept('.')) {
            auto precision = read_number();
            if (!precision) {
                return tl::unexpected(std::move(precision.error()));
            }
            if (!*precision) {
                return refuse("Format specifier missing precision");
            }
            spec.precision = **precision;
        }
        if (text_.size() - at_ > 1 || (at_ < text_.size() && text_[at_] >= 0x80)) {
            return refuse(
                "Invalid format specifier '" + std::string(written_) + "' for object of type '" +
                std::string(type_name_) + "'"
            );
        }
        spec.type = at_ < text_.size() ? static_cast<char>(text_[at_]) : '\0';
        return spec;
    }

private:
    char32_t peek() const { return at_ < text_.size() ? text_[at_] : 0; }
    bool accept(char32_t c) {
        const bool there = peek() == c;
        at_ += there ? 1 : 0;
        return there;
    }

    void read_alignment(Spec& spec) {
        if (text_.size() >= 2 && is_align(text_[1])) {
            spec.fill = text_[0];
            spec.align = static_cast<char>(text_[1]);
            has_fill_ = has_align_ = true;
            at_ = 2;
        } else if (!text_.empty() && is_align(text_[0])) {
            spec.align = static_cast<char>(text_[0]);
            has_align_ = true;
            at_ = 1;
        }
    }

    tl::expected<std::optional<std::size_t>, FormatProblem> read_number() {
        if (peek() < '0' || peek() > '9') {
            return std::optional<std::size_t>();
        }
        std::size_t value = 0;
        while (peek() >= '0' && peek() <= '9') {
            value = std::min<std::size_t>(value * 10 + (text_[at_++] - '0'), kWidthMax + 1);
        }
        if (value > kWidthMax) {
            return refuse("Too many decimal digits in format string");
        }
        return std::optional<std::size_t>(value);
    }

    std::string_view written_;
    std::u32string text_;
    std::string_view type_name_;
    std::size_t at_ = 0;
    bool has_fill_ = false;
    bool has_align_ = false;
};

std::string pad(const std::string& text, const Spec& spec, char default_align) {
    const std::size_t length = count_points(text);
    if (length >= spec.width) {
        return text;
    }
    const std::size_t missing = spec.width - length;
    const char align = spec.align != 0 ? spec.align : default_align;
    const std::size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
    std::string out;
    for (std::size_t i = 0; i < before; ++i) {
        append_utf8(out, spec.fill);
    }
    out += text;
    for (std::size_t i = before; i < missing; ++i) {
        append_utf8(out, spec.fill);
    }
    return out;
}

// Separators between groups of digits, and leading zeros up to `least` characters.
std::string group_digits(
    const std::string& digits, char separator, std::size_t size, std::size_t least
) {
    std::string reversed;
    std::size_t in_group = 0;
    std::size_t at = digits.size();
    while (at > 0 || reversed.size() < least) {
        if (in_group == size) {
            reversed += separator;
            in_group = 0;
            // A separator is never the first character.
            if (at == 0 && reversed.size() >= least) {
                reversed += '0';
                break;
            }
        }
        reversed += at > 0 ? digits[--at] : '0';
        ++in_group;
    }
    std::ranges::reverse(reversed);
    return reversed;
}

// A number in its parts, before width and grouping.
struct Number {
    bool negative = false;
    std::string prefix;  // 0x
    std::string digits;  // before the point
    std::string rest;    // the point, what follows it, exponent, %
};

std::string put_together(const Number& number, const Spec& spec, std::size_t group_size) {
    std::string sign = number.negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
    sign += number.prefix;
    const bool zero_filled = spec.align == '=' && spec.fill == '0';
    const std::size_t around = sign.size() + number.rest.size();
    std::string digits = number.digits;
    const bool grouped = spec.grouping != 0 && !digits.empty() && digits[0] >= '0' &&
                         digits[0] <= 'f' && digits != "inf" && digits != "nan";
    if (grouped) {
        const std::size_t least = zero_filled && spec.width > around ? spec.width - around : 0;
        digits = group_digits(digits, spec.grouping, group_size, least);
    }
    if (spec.align == '=') {
        std::string filled = sign;
        for (std::size_t length = around + digits.size(); length < spec.width; ++length) {
            append_utf8(filled, spec.fill);
        }
        return filled + digits + number.rest;
    }
    return pad(sign + digits + number.rest, spec, '>');
}

std::string unknown_code(char code, std::string_view type_name) {
    return std::string("Unknown format code '") + code + "' for object of type '" +
           std::string(type_name) + "'";
}

Text format_text(const std::string& text, const Spec& spec) {
    if (spec.sign != 0) {
        return refuse(
            spec.sign == ' ' ? "Space not allowed in string format specifier"
                             : "Sign not allowed in string format specifier"
        );
    }
    if (spec.no_negative_zero) {
        return refuse("Negative zero coercion (z) not allowed in string format specifier");
    }
    if (spec.alternate) {
        return refuse("Alternate form (#) not allowed in string format specifier");
    }
    if (spec.type != 0 && spec.type != 's') {
        return refuse(unknown_code(spec.type, "str"));
    }
    if (spec.grouping != 0) {
        return refuse(std::string("Cannot specify '") + spec.grouping + "' with 's'.");
    }
    if (spec.align == '=') {
        return refuse("'=' alignment not allowed in string format specifier");
    }
    std::size_t end = text.size();
    if (spec.precision) {
        end = 0;
        for (std::size_t i = 0; i < *spec.precision && end < text.size(); ++i) {
            next_point(text, end);
        }
    }
    return pad(text.substr(0, end), spec, '<');
}

// Python's way without a type: the shortest text, or so many digits but never without a point.
std::string general_float(double magnitude, std::optional<std::size_t> precision) {
    if (!precision) {
        return workflow::python_repr(json::value(magnitude));
    }
    const int digits = static_cast<int>(std::max<std::size_t>(1, *precision));
    std::string out(static_cast<std::size_t>(digits) + 32, '\0');
    out.resize(static_cast<std::size_t>(
        std::snprintf(out.data(), out.size(), "%.*e", digits - 1, magnitude)
    ));
    const std::size_t e = out.find('e');
    const int exponent = std::stoi(out.substr(e + 1));
    if (exponent < -4 || exponent >= digits - 1) {
        std::string mantissa = out.substr(0, e);
        if (mantissa.find('.') != mantissa.npos) {
            mantissa.erase(mantissa.find_last_not_of('0') + 1);
            if (mantissa.ends_with('.')) {
                mantissa.pop_back();
            }
        }
        return mantissa + out.substr(e);
    }
    out.assign(static_cast<std::size_t>(digits) + 32, '\0');
    out.resize(
        static_cast<std::size_t>(std::snprintf(out.data(), out.size(), "%.*g", digits, magnitude))
    );
    return out.find('.') == out.npos ? out + ".0" : out;
}

Text format_float(double value, const Spec& spec) {
    const char type = spec.type == 'n' ? 'g' : spec.type;
    if (type != 0 && std::string_view("eEfFgG%").find(type) == std::string_view::npos) {
        return refuse(unknown_code(type, "float"));
    }
    if (spec.grouping != 0 && spec.type == 'n') {
        return refuse(std::string("Cannot specify '") + spec.grouping + "' with 'n'.");
    }
    const bool percent = type == '%';
    const double magnitude = std::abs(value) * (percent ? 100.0 : 1.0);
    std::string text;
    if (!std::isfinite(magnitude)) {
        text = std::isnan(magnitude) ? "nan" : "inf";
        if (type == 'E' || type == 'F' || type == 'G') {
            text = to_upper(text);
        }
    } else if (type == 0) {
        text = general_float(magnitude, spec.precision);
    } else {
        const int precision = static_cast<int>(spec.precision.value_or(6));
        const std::string pattern =
            std::string(spec.alternate ? "%#.*" : "%.*") + (percent ? 'f' : type);
        const auto written = [&](char* into, std::size_t size) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
            return std::snprintf(into, size, pattern.c_str(), precision, magnitude);
#pragma clang diagnostic pop
        };
        text.resize(static_cast<std::size_t>(std::max(0, written(nullptr, 0))) + 1);
        written(text.data(), text.size());
        text.pop_back();
    }
    text += percent ? "%" : "";
    Number number{
        .negative = std::signbit(value) && !std::isnan(value),
        .prefix = {},
        .digits = {},
        .rest = {}
    };
    const std::size_t whole = text.find_first_not_of("0123456789");
    if (whole == 0) {
        number.digits = text;
    } else {
        number.digits = text.substr(0, whole);
        number.rest = whole == text.npos ? "" : text.substr(whole);
    }
    if (spec.no_negative_zero && text.find_first_of("123456789in") == text.npos) {
        number.negative = false;
    }
    return put_together(number, spec, 3);
}

std::string in_base(std::uint64_t value, unsigned base) {
    std::string digits;
    do {
        digits += "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    std::ranges::reverse(digits);
    return digits;
}

Text format_integer(bool negative, std::uint64_t magnitude, const Spec& spec) {
    const char type = spec.type == 0 || spec.type == 'n' ? 'd' : spec.type;
    if (std::string_view("eEfFgG%").find(type) != std::string_view::npos) {
        const auto value = static_cast<double>(magnitude);
        return format_float(negative ? -value : value, spec);
    }
    if (spec.precision) {
        return refuse("Precision not allowed in integer format specifier");
    }
    if (spec.no_negative_zero) {
        return refuse(
            "Negative zero coercion (z) not allowed in format specifier with integer "
            "presentation type"
        );
    }
    if (std::string_view("bcdoxX").find(type) == std::string_view::npos) {
        return refuse(unknown_code(type, "int"));
    }
    if (spec.grouping != 0 &&
        (spec.type == 'n' || type == 'c' || (spec.grouping == ',' && type != 'd'))) {
        return refuse(
            std::string("Cannot specify '") + spec.grouping + "' with '" + spec.type + "'."
        );
    }
    if (type == 'c') {
        if (spec.sign != 0) {
            return refuse("Sign not allowed with integer format specifier 'c'");
        }
        if (spec.alternate) {
            return refuse("Alternate form (#) not allowed with integer format specifier 'c'");
        }
        if (negative || magnitude > 0x10FFFF) {
            return tl::unexpected(FormatProblem{
                .exception_type = "OverflowError", .text = "%c arg not in range(0x110000)"
            });
        }
        std::string character;
        append_utf8(character, static_cast<char32_t>(magnitude));
        return pad(character, spec, '<');
    }
    const unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'd' ? 10 : 16;
    Number number{
        .negative = negative, .prefix = {}, .digits = in_base(magnitude, base), .rest = {}
    };
    if (spec.alternate && type != 'd') {
        number.prefix = std::string("0") + type;
    }
    if (type == 'X') {
        number.digits = to_upper(number.digits);
    }
    return put_together(number, spec, base == 10 ? 3 : 4);
}

}  // namespace

Text python_format(const json::value& value, std::string_view spec_text) {
    if (spec_text.empty()) {
        return workflow::python_str(value);
    }
    const std::string_view type_name = workflow::python_type(value);
    const bool is_number = value.is_number() || value.is_bool();
    if (!is_number && !value.is_string()) {
        return tl::unexpected(FormatProblem{
            .exception_type = "TypeError",
            .text = "unsupported format string passed to " + std::string(type_name) + ".__format__"
        });
    }
    const auto spec = SpecReader(spec_text, type_name).read(is_number);
    if (!spec) {
        return tl::unexpected(spec.error());
    }
    if (value.is_string()) {
        return format_text(workflow::python_str(value), *spec);
    }
    if (value.is_double()) {
        return format_float(value.get_double(), *spec);
    }
    if (value.is_bool()) {
        return format_integer(false, value.get_bool() ? 1 : 0, *spec);
    }
    if (value.is_uint64()) {
        return format_integer(false, value.get_uint64(), *spec);
    }
    const std::int64_t number = value.get_int64();
    const auto bits = static_cast<std::uint64_t>(number);
    return format_integer(number < 0, number < 0 ? ~bits + 1 : bits, *spec);
}

}  // namespace comfyd::engine::nodes
