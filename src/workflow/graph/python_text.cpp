#include "workflow/graph/python_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace comfyd::workflow {
namespace {

constexpr std::size_t kIntDigitsMax = 4300;  // Python's own limit

// The zeros of Unicode's decimal digit rows that int() and float() accept beside ASCII.
constexpr std::array<char32_t, 24> kDigitZeros = {0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66,
                                                  0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
                                                  0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090,
                                                  0x17E0, 0x1810, 0x1946, 0x19D0, 0xA620, 0xFF10};

std::string_view as_view(const boost::json::string& text) {
    return {text.data(), text.size()};
}

// Decodes one character; JSON texts are valid UTF-8.
char32_t next_point(std::string_view text, std::size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) {
        return lead;
    }
    const int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    char32_t point = lead & (0x3FU >> extra);
    for (int i = 0; i < extra && at < text.size(); ++i) {
        point = point << 6 | (static_cast<unsigned char>(text[at++]) & 0x3FU);
    }
    return point;
}

bool is_space(char32_t point) {
    return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
           point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
           point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
           point == 0x3000;
}

// Without outer spaces and with all digits in ASCII; other characters that are not ASCII become
// '?'.
std::string plain_number_text(std::string_view text) {
    std::string plain;
    std::string spaces;
    for (std::size_t at = 0; at < text.size();) {
        const char32_t point = next_point(text, at);
        if (is_space(point)) {
            spaces += plain.empty() ? "" : " ";
            continue;
        }
        plain += spaces;
        spaces.clear();
        const auto row = std::ranges::find_if(kDigitZeros, [&](char32_t zero) {
            return point >= zero && point < zero + 10;
        });
        if (row != kDigitZeros.end()) {
            plain += static_cast<char>('0' + (point - *row));
        } else {
            plain += point < 0x80 ? static_cast<char>(point) : '?';
        }
    }
    return plain;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Removes underscores, which Python allows between two digits only.
bool remove_underscores(std::string& text) {
    std::string without;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            without += text[i];
        } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) ||
                   !is_digit(text[i + 1])) {
            return false;
        }
    }
    text = std::move(without);
    return true;
}

PythonInt make_int(std::int64_t value) {
    return PythonInt{.value = value, .negative = value < 0, .text = std::to_string(value)};
}

// `text` is a number in its shortest form.
PythonInt from_digits(std::string text) {
    PythonInt result{.value = nullptr, .negative = text[0] == '-', .text = std::move(text)};
    const char* begin = result.text.data();
    const char* end = begin + result.text.size();
    std::int64_t narrow = 0;
    std::uint64_t wide = 0;
    if (std::from_chars(begin, end, narrow).ec == std::errc()) {
        result.value = narrow;
    } else if (std::from_chars(begin, end, wide).ec == std::errc()) {
        result.value = wide;
    }
    return result;
}

tl::expected<PythonInt, std::string> parse_int(std::string_view original) {
    std::string text = plain_number_text(original);
    const auto invalid = [&] {
        return tl::unexpected(
            "invalid literal for int() with base 10: " +
            python_repr(json::value(boost::json::string(original)))
        );
    };
    bool negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        negative = text[0] == '-';
        text.erase(0, 1);
    }
    if (text.empty() || !remove_underscores(text) || !std::ranges::all_of(text, is_digit)) {
        return invalid();
    }
    if (text.size() > kIntDigitsMax) {
        return tl::unexpected(
            "Exceeds the limit (4300 digits) for integer string conversion: value has " +
            std::to_string(text.size()) +
            " digits; use sys.set_int_max_str_digits() to increase the limit"
        );
    }
    text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
    if (text == "0") {
        return make_int(0);
    }
    return from_digits((negative ? "-" : "") + text);
}

tl::expected<PythonInt, std::string> truncate(double number) {
    if (std::isnan(number)) {
        return tl::unexpected(std::string("cannot convert float NaN to integer"));
    }
    if (std::isinf(number)) {
        return tl::unexpected(std::string("cannot convert float infinity to integer"));
    }
    const double whole = std::trunc(number);
    if (std::abs(whole) < 9.2e18) {
        return make_int(static_cast<std::int64_t>(whole));
    }
    std::array<char, 400> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.0f", whole);
    return from_digits(buffer.data());
}

void append_repr(std::string& out, std::string_view text) {
    const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
    const char quote = single ? '\'' : '"';
    out += quote;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        const char32_t point = next_point(text, at);
        if (point == static_cast<char32_t>(quote) || point == '\\') {
            out += '\\';
            out += static_cast<char>(point);
        } else if (point == '\n') {
            out += "\\n";
        } else if (point == '\r') {
            out += "\\r";
        } else if (point == '\t') {
            out += "\\t";
        } else if (point < 0x20 || (point >= 0x7F && point <= 0xA0) || point == 0xAD) {
            std::array<char, 8> buffer{};
            std::snprintf(buffer.data(), buffer.size(), "\\x%02x", static_cast<unsigned>(point));
            out += buffer.data();
        } else {
            out += text.substr(begin, at - begin);
        }
    }
    out += quote;
}

void append_repr(std::string& out, const json::value& of) {
    switch (of.kind()) {
        case boost::json::kind::null:
            out += "None";
            break;
        case boost::json::kind::bool_:
            out += of.get_bool() ? "True" : "False";
            break;
        case boost::json::kind::string:
            append_repr(out, as_view(of.get_string()));
            break;
        case boost::json::kind::array: {
            out += '[';
            const char* separator = "";
            for (const json::value& item : of.get_array()) {
                out += separator;
                append_repr(out, item);
                separator = ", ";
            }
            out += ']';
            break;
        }
        case boost::json::kind::object: {
            out += '{';
            const char* separator = "";
            for (const auto& [key, item] : of.get_object()) {
                out += separator;
                append_repr(out, std::string_view(key.data(), key.size()));
                out += ": ";
                append_repr(out, item);
                separator = ", ";
            }
            out += '}';
            break;
        }
        default:
            if (of.is_double() && !std::isfinite(of.get_double())) {
                out += std::isnan(of.get_double()) ? "nan" : of.get_double() < 0 ? "-inf" : "inf";
            } else {
                out += json::serialize_python(of);
            }
    }
}

template <class Number>
int order_of(Number a, Number b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

// Without making a double of `right`, which may round it.
template <class Whole>
int order_of_whole(double left, Whole right) {
    constexpr double kEnd = std::is_signed_v<Whole> ? 0x1p63 : 0x1p64;
    constexpr double kBegin = std::is_signed_v<Whole> ? -0x1p63 : 0.0;
    if (std::isnan(left)) {
        return 0;
    }
    if (left < kBegin || left >= kEnd) {
        return left < kBegin ? -1 : 1;
    }
    const double whole = std::trunc(left);
    const int order = order_of(static_cast<Whole>(whole), right);
    return order != 0 ? order : order_of(left - whole, 0.0);
}

}  // namespace

std::string python_repr(const json::value& of) {
    std::string out;
    append_repr(out, of);
    return out;
}

std::string python_str(const json::value& of) {
    return of.is_string() ? std::string(as_view(of.get_string())) : python_repr(of);
}

std::string_view python_type(const json::value& of) {
    switch (of.kind()) {
        case boost::json::kind::null:
            return "NoneType";
        case boost::json::kind::bool_:
            return "bool";
        case boost::json::kind::int64:
        case boost::json::kind::uint64:
            return "int";
        case boost::json::kind::double_:
            return "float";
        case boost::json::kind::string:
            return "str";
        case boost::json::kind::array:
            return "list";
        case boost::json::kind::object:
            return "dict";
    }
    return "object";
}

bool python_bool(const json::value& of) {
    switch (of.kind()) {
        case boost::json::kind::null:
            return false;
        case boost::json::kind::bool_:
            return of.get_bool();
        case boost::json::kind::int64:
            return of.get_int64() != 0;
        case boost::json::kind::uint64:
            return of.get_uint64() != 0;
        case boost::json::kind::double_:
            return of.get_double() != 0;
        case boost::json::kind::string:
            return !of.get_string().empty();
        case boost::json::kind::array:
            return !of.get_array().empty();
        case boost::json::kind::object:
            return !of.get_object().empty();
    }
    return false;
}

bool python_equal(const json::value& left, const json::value& right) {
    if (left.is_string() || right.is_string()) {
        return left.is_string() && right.is_string() && left.get_string() == right.get_string();
    }
    const auto number = [](const json::value& of) -> json::value {
        return of.is_bool() ? json::value(of.get_bool() ? 1 : 0) : of;
    };
    if ((left.is_bool() || left.is_number()) && (right.is_bool() || right.is_number())) {
        const json::value a = number(left);
        const json::value b = number(right);
        return a == b ||
               (a.is_double() != b.is_double() && a.to_number<double>() == b.to_number<double>());
    }
    return left == right;
}

tl::expected<PythonInt, std::string> python_int(const json::value& of) {
    switch (of.kind()) {
        case boost::json::kind::bool_:
            return make_int(of.get_bool() ? 1 : 0);
        case boost::json::kind::int64:
            return make_int(of.get_int64());
        case boost::json::kind::uint64:
            return from_digits(std::to_string(of.get_uint64()));
        case boost::json::kind::double_:
            return truncate(of.get_double());
        case boost::json::kind::string:
            return parse_int(as_view(of.get_string()));
        default:
            return tl::unexpected(
                "int() argument must be a string, a bytes-like object or a real number, not '" +
                std::string(python_type(of)) + "'"
            );
    }
}

int python_compare(double left, const json::value& right) {
    if (right.is_double()) {
        return order_of(left, right.get_double());
    }
    return right.is_uint64() ? order_of_whole(left, right.get_uint64())
                             : order_of_whole(left, right.get_int64());
}

int python_compare(const PythonInt& left, const json::value& right) {
    if (right.is_double() && !left.value.is_null()) {
        return -python_compare(right.get_double(), left.value);
    }
    if (right.is_double()) {
        const double number = std::strtod(left.text.c_str(), nullptr);
        return number < right.get_double() ? -1 : number > right.get_double() ? 1 : 0;
    }
    const bool right_negative = right.is_int64() && right.get_int64() < 0;
    if (left.negative != right_negative) {
        return left.negative ? -1 : 1;
    }
    const std::string other = right.is_uint64() ? std::to_string(right.get_uint64())
                                                : std::to_string(right.to_number<std::int64_t>());
    const int larger = left.negative ? -1 : 1;
    if (left.text.size() != other.size()) {
        return left.text.size() < other.size() ? -larger : larger;
    }
    const int order = left.text.compare(other);
    return order == 0 ? 0 : order < 0 ? -larger : larger;
}

tl::expected<double, std::string> python_float(const json::value& of) {
    if (of.is_bool()) {
        return of.get_bool() ? 1.0 : 0.0;
    }
    if (of.is_number()) {
        return of.to_number<double>();
    }
    if (!of.is_string()) {
        return tl::unexpected(
            "float() argument must be a string or a real number, not '" +
            std::string(python_type(of)) + "'"
        );
    }
    std::string text = plain_number_text(as_view(of.get_string()));
    double number = 0;
    bool good = !text.empty() && remove_underscores(text);
    if (good) {
        const bool plus = text[0] == '+' && text.size() > 1 && text[1] != '-' && text[1] != '+';
        const char* begin = text.data() + (plus ? 1 : 0);
        const char* end = text.data() + text.size();
        const bool named_nan = std::string_view(begin, end).find('(') != std::string_view::npos;
        const auto parsed = std::from_chars(begin, end, number);
        good = !named_nan && parsed.ptr == end && parsed.ec != std::errc::invalid_argument;
        if (good && parsed.ec == std::errc::result_out_of_range) {
            number = std::strtod(text.c_str(), nullptr);
        }
    }
    if (!good) {
        return tl::unexpected("could not convert string to float: " + python_repr(of));
    }
    return number;
}

}  // namespace comfyd::workflow
