// Writing JSON text. Boost's own writer of some versions writes 1.508 as 1.508E0, which no other
// language does: a receiver that writes a document again must get the bytes that we signed.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/json.hpp"
#include "base/json_escape.hpp"
#include "base/text.hpp"

namespace comfyd::json {
namespace {

enum class Infinity { as_large_number, as_null, as_python };

struct Style {
    std::string_view comma = ",";
    std::string_view colon = ":";
    bool is_ascii = false;
    bool is_sorted = false;
    Infinity infinity = Infinity::as_large_number;
};

constexpr Style kCompact;
constexpr Style kAscii{.is_ascii = true, .infinity = Infinity::as_null};
constexpr Style kPython{
    .comma = ", ", .colon = ": ", .is_ascii = true, .infinity = Infinity::as_python
};
constexpr Style kCanonical{.is_sorted = true};

// The bytes that stand for themselves in a string.
using Plain = std::array<bool, 256>;

constexpr Plain make_plain(bool is_ascii) {
    Plain plain{};
    for (std::size_t byte = 0x20; byte < plain.size(); ++byte) {
        plain[byte] = byte != '"' && byte != '\\' && (!is_ascii || byte < 0x7F);
    }
    return plain;
}

constexpr Plain kPlain = make_plain(false);
constexpr Plain kPlainAscii = make_plain(true);

// Whether the eight bytes at `at` all stand for themselves: most texts are long and plain.
bool are_plain(const char* at, bool is_ascii) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kTops = 0x8080808080808080;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    const auto any = [](std::uint64_t of, unsigned char is) {
        const std::uint64_t zero_where = of ^ (kOnes * is);
        return (zero_where - kOnes) & ~zero_where & kTops;
    };
    const std::uint64_t is_control = (bytes - kOnes * 0x20) & ~bytes & kTops;
    const std::uint64_t is_beyond = is_ascii ? (bytes & kTops) | any(bytes, 0x7F) : 0;
    return (is_control | any(bytes, '"') | any(bytes, '\\') | is_beyond) == 0;
}

// The character at `at` of UTF-8, which is moved behind it. What is no UTF-8 is U+FFFD, byte by
// byte: file names and texts of workers need not be any.
std::uint32_t take_character(std::string_view text, std::size_t& at) {
    constexpr std::uint32_t kReplacement = 0xFFFD;
    constexpr std::array<std::uint32_t, 4> kSmallest = {0, 0x80, 0x800, 0x10000};
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) {
        return lead;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC0 || lead > 0xF7 || text.size() - at < more) {
        return kReplacement;
    }
    std::uint32_t point = lead & (0x3FU >> more);
    for (std::size_t i = 0; i < more; ++i) {
        const auto byte = static_cast<unsigned char>(text[at + i]);
        if ((byte & 0xC0U) != 0x80) {
            return kReplacement;
        }
        point = point << 6 | (byte & 0x3FU);
    }
    const bool is_surrogate = point >= 0xD800 && point < 0xE000;
    if (point < kSmallest[more] || point > 0x10FFFF || is_surrogate) {
        return kReplacement;
    }
    at += more;
    return point;
}

void append_character_escaped(std::string& out, std::uint32_t point) {
    if (point < 0x7F) {
        append_escaped(out, static_cast<unsigned char>(point));
    } else if (point < 0x10000) {
        append_unit(out, point);
    } else {
        append_unit(out, 0xD800 + ((point - 0x10000) >> 10));
        append_unit(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
    }
}

void append_string(std::string& out, std::string_view text, bool is_ascii) {
    const Plain& plain = is_ascii ? kPlainAscii : kPlain;
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        while (text.size() - at >= 8 && are_plain(text.data() + at, is_ascii)) {
            at += 8;
        }
        while (at < text.size() && plain[static_cast<unsigned char>(text[at])]) {
            ++at;
        }
        out.append(text, begin, at - begin);
        if (at < text.size()) {
            append_character_escaped(out, take_character(text, at));
        }
    }
    out += '"';
}

template <class Integer>
void append_integer(std::string& out, Integer number) {
    char buffer[24];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
}

std::string_view infinity_text(Infinity style, bool is_negative) {
    switch (style) {
        case Infinity::as_large_number:
            return is_negative ? "-1e999" : "1e999";
        case Infinity::as_null:
            return "null";
        case Infinity::as_python:
            return is_negative ? "-Infinity" : "Infinity";
    }
    return "null";
}

// Python's repr of a float.
void append_double(std::string& out, double number, Infinity infinity) {
    if (std::isnan(number)) {
        out += infinity == Infinity::as_python ? "NaN" : "null";
        return;
    }
    if (std::isinf(number)) {
        out += infinity_text(infinity, number < 0);
        return;
    }
    const double magnitude = std::abs(number);
    const bool is_scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
    const auto format = is_scientific ? std::chars_format::scientific : std::chars_format::fixed;
    char buffer[32];
    char* const end = std::to_chars(buffer, buffer + sizeof buffer, number, format).ptr;
    out.append(buffer, end);
    if (!is_scientific && std::find(buffer, end, '.') == end) {
        out += ".0";
    }
}

class Writer {
public:
    Writer(std::string& out, const Style& style) : out_(out), style_(style) {}

    void write(const value& from) {
        switch (from.kind()) {
            case boost::json::kind::null:
                out_ += "null";
                return;
            case boost::json::kind::bool_:
                out_ += from.get_bool() ? "true" : "false";
                return;
            case boost::json::kind::int64:
                append_integer(out_, from.get_int64());
                return;
            case boost::json::kind::uint64:
                append_integer(out_, from.get_uint64());
                return;
            case boost::json::kind::double_:
                append_double(out_, from.get_double(), style_.infinity);
                return;
            case boost::json::kind::string:
                append_string(out_, view(from.get_string()), style_.is_ascii);
                return;
            case boost::json::kind::array:
                write(from.get_array());
                return;
            case boost::json::kind::object:
                write(from.get_object());
                return;
        }
    }

    void write(const array& items) {
        out_ += '[';
        std::string_view separator;
        for (const value& item : items) {
            out_ += separator;
            separator = style_.comma;
            write(item);
        }
        out_ += ']';
    }

    void write(const object& members) {
        out_ += '{';
        if (style_.is_sorted) {
            write_sorted(members);
        } else {
            std::string_view separator;
            for (const auto& member : members) {
                write_member(separator, member);
            }
        }
        out_ += '}';
    }

private:
    using Member = boost::json::key_value_pair;

    void write_sorted(const object& members) {
        std::vector<const Member*> sorted;
        sorted.reserve(members.size());
        for (const Member& member : members) {
            sorted.push_back(&member);
        }
        std::ranges::sort(sorted, {}, [](const Member* member) { return member->key(); });
        std::string_view separator;
        for (const Member* member : sorted) {
            write_member(separator, *member);
        }
    }

    void write_member(std::string_view& separator, const Member& member) {
        out_ += separator;
        separator = style_.comma;
        append_string(out_, view(member.key()), style_.is_ascii);
        out_ += style_.colon;
        write(member.value());
    }

    std::string& out_;
    const Style& style_;
};

template <class Document>
std::string written(const Document& from, const Style& style) {
    std::string out;
    Writer(out, style).write(from);
    return out;
}

}  // namespace

std::string serialize(const value& from) {
    return written(from, kCompact);
}

std::string serialize(const object& from) {
    return written(from, kCompact);
}

std::string serialize(const array& from) {
    return written(from, kCompact);
}

std::string serialize_ascii(const object& from) {
    return written(from, kAscii);
}

std::string serialize_python(const value& from) {
    return written(from, kPython);
}

std::string serialize_canonical(const value& from) {
    return written(from, kCanonical);
}

std::string quoted(std::string_view text) {
    std::string out;
    append_string(out, text, false);
    return out;
}

}  // namespace comfyd::json
