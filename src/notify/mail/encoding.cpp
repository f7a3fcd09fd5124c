#include "notify/mail/encoding.hpp"

#include <algorithm>
#include <cstdint>

#include "base/crypto.hpp"
#include "base/text.hpp"

namespace comfyd::notify::mail {
namespace {

constexpr std::size_t kLineMax = 76;
constexpr std::string_view kWordBegin = "=?UTF-8?B?";
constexpr std::string_view kWordEnd = "?=";
// Base64 of so many bytes and its marks fit into the 75 characters of an encoded word; fewer, so
// that a name before the first one fits into the line, too.
constexpr std::size_t kWordBytesMax = 36;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How many bytes the character at the beginning has; 0: it is no UTF-8.
std::size_t character_size(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t first = byte(0);
    if (first < 0x80) {
        return 1;
    }
    const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < size) {
        return 0;
    }
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return 0;
        }
    }
    const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool is_no_character =
        (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
    return is_overlong || is_no_character ? 0 : size;
}

// Valid UTF-8 in one line.
std::string one_line(std::string_view text) {
    std::string line = valid_utf8(text);
    std::ranges::replace_if(line, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
    return line;
}

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 0; });
}

std::size_t longest_word(std::string_view text) {
    std::size_t longest = 0;
    std::size_t length = 0;
    for (const char c : text) {
        length = c == ' ' ? 0 : length + 1;
        longest = std::max(longest, length);
    }
    return longest;
}

// Separated by "\r\n ".
std::string encoded_words(std::string_view text) {
    std::string words;
    while (!text.empty()) {
        std::size_t end = 0;
        while (end < text.size()) {
            const std::size_t next = character_size(text.substr(end));
            if (end + next > kWordBytesMax) {
                break;
            }
            end += next;
        }
        words += words.empty() ? "" : "\r\n ";
        words += kWordBegin;
        words += to_base64(text.substr(0, end));
        words += kWordEnd;
        text.remove_prefix(end);
    }
    return words;
}

// Folded before words that do not fit; `used` characters of the first line are taken.
std::string folded(std::string_view text, std::size_t used) {
    std::string made;
    std::size_t column = used;
    while (!text.empty()) {
        const std::size_t spaces = std::min(text.find_first_not_of(' '), text.size());
        const std::size_t end = std::min(text.find(' ', spaces), text.size());
        if (spaces > 0 && column + end > kLineMax && end > spaces) {
            made += "\r\n";
            column = 0;
        }
        made += text.substr(0, end);
        column += end;
        text.remove_prefix(end);
    }
    return made;
}

void add_hex(std::string& to, char c) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<std::uint8_t>(c);
    to += '=';
    to += kDigits[byte >> 4];
    to += kDigits[byte & 15];
}

void add_quoted_line(std::string& to, std::string_view line) {
    std::size_t column = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const bool is_last = i + 1 == line.size();
        const bool is_plain =
            (c > ' ' && c <= '~' && c != '=') || ((c == ' ' || c == '\t') && !is_last);
        const std::size_t width = is_plain ? 1 : 3;
        if (column + width > kLineMax - 1) {  // one is for the mark of the soft break
            to += "=\r\n";
            column = 0;
        }
        if (is_plain) {
            to += c;
        } else {
            add_hex(to, c);
        }
        column += width;
    }
    to += "\r\n";
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    while (!text.empty()) {
        const std::size_t size = character_size(text);
        valid += size == 0 ? kReplacement : text.substr(0, size);
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return valid;
}

std::string header(std::string_view name, std::string_view text) {
    const std::string line = one_line(text);
    const std::size_t used = name.size() + 2;
    // Text that looks like an encoded word would be read as one.
    const bool is_plain = is_ascii(line) && line.find("=?") == std::string::npos &&
                          longest_word(line) + used < kLineMax && line == trim(line);
    return std::string(name) + ": " + (is_plain ? folded(line, used) : encoded_words(line)) +
           "\r\n";
}

std::string phrase(std::string_view text) {
    const std::string line = one_line(text);
    if (!is_ascii(line) || line.size() > 40 || line.find("=?") != std::string::npos) {
        return encoded_words(line);
    }
    std::string quoted = "\"";
    for (const char c : line) {
        quoted += c == '"' || c == '\\' ? "\\" : "";
        quoted += c;
    }
    return quoted + '"';
}

std::string quoted_printable(std::string_view text) {
    std::string made;
    made.reserve(text.size() + text.size() / 8);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
        add_quoted_line(made, text.substr(0, end));
        const bool is_pair = text.substr(end).starts_with("\r\n");
        text.remove_prefix(std::min(end + (is_pair ? 2 : 1), text.size()));
    }
    return made;
}

std::string base64_lines(std::string_view bytes) {
    constexpr std::size_t kBytesPerLine = kLineMax / 4 * 3;
    std::string made;
    made.reserve(bytes.size() / 3 * 4 + bytes.size() / kBytesPerLine * 2 + 8);
    while (!bytes.empty()) {
        made += to_base64(bytes.substr(0, kBytesPerLine));
        made += "\r\n";
        bytes.remove_prefix(std::min(kBytesPerLine, bytes.size()));
    }
    return made;
}

}  // namespace comfyd::notify::mail
