#include "notify/sms/segments.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace comfyd::notify::sms {
namespace {

constexpr std::u32string_view kBasic =
    U"@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    U"ÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
constexpr std::u32string_view kExtended = U"\f^{}\\[~]|€";  // each after an escape

struct Character {
    char32_t value;
    std::size_t size;  // in bytes
};

// The first of valid UTF-8.
Character first_of(std::string_view text) {
    const auto byte = [text](std::size_t i) {
        return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
    };
    const auto more = [&](std::size_t i) { return static_cast<char32_t>(byte(i) & 0x3F); };
    const char32_t lead = byte(0);
    if (lead < 0x80) {
        return {lead, 1};
    }
    if (lead < 0xE0) {
        return {(lead & 0x1F) << 6 | more(1), 2};
    }
    if (lead < 0xF0) {
        return {(lead & 0x0F) << 12 | more(1) << 6 | more(2), 3};
    }
    return {(lead & 0x07) << 18 | more(1) << 12 | more(2) << 6 | more(3), 4};
}

// 0: it is not in the alphabet.
std::size_t gsm_units(char32_t character) {
    if (kBasic.find(character) != std::u32string_view::npos) {
        return 1;
    }
    return kExtended.find(character) != std::u32string_view::npos ? 2 : 0;
}

std::size_t ucs2_units(char32_t character) {
    return character > 0xFFFF ? 2 : 1;
}

std::size_t segment_units(bool is_gsm, bool is_alone) {
    if (is_gsm) {
        return is_alone ? 160 : 153;
    }
    return is_alone ? 70 : 67;
}

// A character of two units is never cut in two: it begins the next segment.
std::size_t count_segments(const std::vector<std::size_t>& widths, std::size_t room) {
    std::size_t segments = 1;
    std::size_t used = 0;
    for (const std::size_t width : widths) {
        if (used + width > room) {
            ++segments;
            used = 0;
        }
        used += width;
    }
    return segments;
}

}  // namespace

Length measure(std::string_view text) {
    std::vector<char32_t> characters;
    Length length;
    while (!text.empty()) {
        const Character next = first_of(text);
        characters.push_back(next.value);
        length.is_gsm = length.is_gsm && gsm_units(next.value) > 0;
        text.remove_prefix(std::min(next.size, text.size()));
    }
    std::vector<std::size_t> widths;
    widths.reserve(characters.size());
    for (const char32_t character : characters) {
        widths.push_back(length.is_gsm ? gsm_units(character) : ucs2_units(character));
        length.units += widths.back();
    }
    if (length.units > segment_units(length.is_gsm, true)) {
        length.segments = count_segments(widths, segment_units(length.is_gsm, false));
    }
    return length;
}

std::string cut(std::string_view text, std::size_t segments_max) {
    if (measure(text).segments <= segments_max) {
        return std::string(text);
    }
    constexpr std::string_view kMore = "...";
    // The longest beginning that fits: whether it does only changes once with its length, but for
    // the alphabet, and a beginning never needs a larger one than the whole.
    std::vector<std::size_t> ends{0};
    while (ends.back() < text.size()) {
        ends.push_back(std::min(ends.back() + first_of(text.substr(ends.back())).size, text.size())
        );
    }
    std::size_t fits = 0;
    std::size_t too_long = ends.size();
    while (too_long - fits > 1) {
        const std::size_t middle = (fits + too_long) / 2;
        const std::string tried = std::string(text.substr(0, ends[middle])) + std::string(kMore);
        (measure(tried).segments <= segments_max ? fits : too_long) = middle;
    }
    return std::string(text.substr(0, ends[fits])) + std::string(kMore);
}

}  // namespace comfyd::notify::sms
