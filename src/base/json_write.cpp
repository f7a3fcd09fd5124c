// Writing JSON text. Boost's own writer of some versions writes 1.508 as 1.508E0, which no other
// language does: a receiver that writes a document again must get the bytes that we signed.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
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

// What the processor looks at in one go; how it does so is left to the compiler.
using Bytes = unsigned char __attribute__((vector_size(16)));

// Whether those at `at` all stand for themselves: most texts are long and plain.
bool are_plain(const char* at, bool is_ascii) {
    Bytes bytes;
    std::memcpy(&bytes, at, sizeof bytes);
    auto special = (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
    if (is_ascii) {
        special |= bytes >= 0x7F;
    }
    std::array<std::uint64_t, 2> halves{};
    static_assert(sizeof halves == sizeof special);
    std::memcpy(halves.data(), &special, sizeof special);
    return (halves[0] | halves[1]) == 0;
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

// How many bytes of the text from `at` on stand for themselves.
std::size_t plain_bytes(std::string_view text, std::size_t at, bool is_ascii) {
    const Plain& plain = is_ascii ? kPlainAscii : kPlain;
    const std::size_t begin = at;
    while (text.size() - at >= sizeof(Bytes) && are_plain(text.data() + at, is_ascii)) {
        at += sizeof(Bytes);
    }
    while (at < text.size() && plain[static_cast<unsigned char>(text[at])]) {
        ++at;
    }
    return at - begin;
}

void append_string(std::string& out, std::string_view text, bool is_ascii) {
    // Most need nothing but quotes.
    const std::size_t first = plain_bytes(text, 0, is_ascii);
    if (first == text.size()) {
        const std::size_t begin = out.size();
        out.append(text.size() + 2, '"');
        text.copy(out.data() + begin + 1, text.size());
        return;
    }
    out += '"';
    out.append(text, 0, first);
    for (std::size_t at = first; at < text.size();) {
        append_character_escaped(out, take_character(text, at));
        const std::size_t count = plain_bytes(text, at, is_ascii);
        out.append(text, at, count);
        at += count;
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

// Written where there is room, and copied once into what is as large as it must be.
template <class Document>
std::string written(const Document& from, const Style& style) {
    constexpr std::size_t kRoomMax = 64 * 1024;
    thread_local std::string room;
    room.clear();
    Writer(room, style).write(from);
    if (room.size() > kRoomMax) {
        return std::exchange(room, {});
    }
    return room;
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
