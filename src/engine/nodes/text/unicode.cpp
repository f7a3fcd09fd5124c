#include "engine/nodes/text/unicode.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

namespace comfyd::engine::nodes {
namespace {

struct CaseRange {
    char32_t first;
    char32_t last;
    char32_t step;
    std::int32_t distance;
};
struct CaseSpecial {
    char32_t from;
    char32_t to[3];  // filled up with 0
};
struct Span {
    char32_t first;
    char32_t last;
};

#include "engine/nodes/text/unicode_tables.inc"

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kReplacement = 0xFFFD;

bool within(std::span<const Span> spans, char32_t point) {
    const auto after = std::ranges::upper_bound(spans, point, {}, &Span::first);
    return after != spans.begin() && point <= std::prev(after)->last;
}

// A range of every second character may overlap the one before it.
const CaseRange* find_range(std::span<const CaseRange> ranges, char32_t point) {
    auto after = std::ranges::upper_bound(ranges, point, {}, &CaseRange::first);
    for (int looked = 0; looked < 3 && after != ranges.begin(); ++looked) {
        --after;
        if (point <= after->last && (point - after->first) % after->step == 0) {
            return &*after;
        }
    }
    return nullptr;
}

const CaseSpecial* find_special(std::span<const CaseSpecial> specials, char32_t point) {
    const auto found = std::ranges::lower_bound(specials, point, {}, &CaseSpecial::from);
    return found != specials.end() && found->from == point ? &*found : nullptr;
}

// False where neither table knows the character.
bool append_mapped(
    std::u32string& out,
    char32_t point,
    std::span<const CaseSpecial> specials,
    std::span<const CaseRange> ranges
) {
    if (const CaseSpecial* special = find_special(specials, point)) {
        for (const char32_t part : special->to) {
            if (part != 0) {
                out += part;
            }
        }
        return true;
    }
    if (const CaseRange* range = find_range(ranges, point)) {
        out += static_cast<char32_t>(static_cast<std::int64_t>(point) + range->distance);
        return true;
    }
    return false;
}

void append_upper(std::u32string& out, char32_t point) {
    if (!append_mapped(out, point, kUpperSpecial, kUpper)) {
        out += point;
    }
}

void append_title(std::u32string& out, char32_t point) {
    if (!append_mapped(out, point, kTitleSpecial, kTitle)) {
        append_upper(out, point);
    }
}

bool is_cased(char32_t point) {
    return within(kCased, point);
}

// Whether the sigma at `at` ends a word.
bool ends_word(std::u32string_view text, std::size_t at) {
    std::size_t before = at;
    while (before > 0 && within(kIgnorable, text[before - 1])) {
        --before;
    }
    if (before == 0 || !is_cased(text[before - 1])) {
        return false;
    }
    std::size_t after = at + 1;
    while (after < text.size() && within(kIgnorable, text[after])) {
        ++after;
    }
    return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::u32string& out, std::u32string_view text, std::size_t at) {
    const char32_t point = text[at];
    if (point == kCapitalSigma) {
        out += ends_word(text, at) ? kFinalSigma : kSmallSigma;
    } else if (!append_mapped(out, point, kLowerSpecial, kLower)) {
        out += point;
    }
}

}  // namespace

char32_t next_point(std::string_view text, std::size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) {
        return lead;
    }
    const int extra = lead >= 0xF0 && lead < 0xF8 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (extra == 0 || lead >= 0xF8) {
        return kReplacement;
    }
    char32_t point = lead & (0x3FU >> extra);
    for (int i = 0; i < extra; ++i) {
        if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80) {
            return kReplacement;
        }
        point = point << 6 | (static_cast<unsigned char>(text[at++]) & 0x3FU);
    }
    return point < 0x110000 ? point : kReplacement;
}

std::u32string to_points(std::string_view utf8) {
    std::u32string points;
    points.reserve(utf8.size());
    for (std::size_t at = 0; at < utf8.size();) {
        points += next_point(utf8, at);
    }
    return points;
}

void append_utf8(std::string& out, char32_t point) {
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xC0 | point >> 6);
        out += static_cast<char>(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        out += static_cast<char>(0xE0 | point >> 12);
        out += static_cast<char>(0x80 | (point >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (point & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | point >> 18);
        out += static_cast<char>(0x80 | (point >> 12 & 0x3F));
        out += static_cast<char>(0x80 | (point >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (point & 0x3F));
    }
}

std::string to_utf8(std::u32string_view points) {
    std::string out;
    out.reserve(points.size());
    for (const char32_t point : points) {
        append_utf8(out, point);
    }
    return out;
}

std::size_t count_points(std::string_view utf8) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < utf8.size(); ++count) {
        next_point(utf8, at);
    }
    return count;
}

std::string to_upper(std::string_view text) {
    std::u32string out;
    for (const char32_t point : to_points(text)) {
        append_upper(out, point);
    }
    return to_utf8(out);
}

std::string to_lower(std::string_view text) {
    const std::u32string points = to_points(text);
    std::u32string out;
    for (std::size_t at = 0; at < points.size(); ++at) {
        append_lower(out, points, at);
    }
    return to_utf8(out);
}

std::string capitalize(std::string_view text) {
    const std::u32string points = to_points(text);
    std::u32string out;
    for (std::size_t at = 0; at < points.size(); ++at) {
        if (at == 0) {
            append_title(out, points[0]);
        } else {
            append_lower(out, points, at);
        }
    }
    return to_utf8(out);
}

std::string to_title(std::string_view text) {
    const std::u32string points = to_points(text);
    std::u32string out;
    bool in_word = false;
    for (std::size_t at = 0; at < points.size(); ++at) {
        if (in_word) {
            append_lower(out, points, at);
        } else {
            append_title(out, points[at]);
        }
        in_word = is_cased(points[at]);
    }
    return to_utf8(out);
}

bool is_space(char32_t point) {
    return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
           point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
           point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
           point == 0x3000;
}

std::string_view strip(std::string_view text, bool left, bool right) {
    std::size_t begin = text.size();
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        if (!is_space(next_point(text, at))) {
            begin = std::min(begin, start);
            end = at;
        }
    }
    begin = left ? begin : 0;
    end = right ? end : text.size();
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

std::string replace_all(std::string_view text, std::string_view find, std::string_view with) {
    std::string out;
    if (find.empty()) {
        out += with;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t start = at;
            next_point(text, at);
            out += text.substr(start, at - start);
            out += with;
        }
        return out;
    }
    std::size_t at = 0;
    for (std::size_t found = text.find(find); found != text.npos; found = text.find(find, at)) {
        out += text.substr(at, found - at);
        out += with;
        at = found + find.size();
    }
    out += text.substr(at);
    return out;
}

std::size_t replaced_size(std::string_view text, std::string_view find, std::string_view with) {
    std::size_t times = 0;
    if (find.empty()) {
        times = count_points(text) + 1;
    } else {
        for (std::size_t at = text.find(find); at != text.npos;
             at = text.find(find, at + find.size())) {
            ++times;
        }
    }
    std::size_t added = 0;
    if (__builtin_mul_overflow(times, with.size(), &added)) {
        return std::numeric_limits<std::size_t>::max();
    }
    return text.size() - times * find.size() + added;
}

}  // namespace comfyd::engine::nodes
