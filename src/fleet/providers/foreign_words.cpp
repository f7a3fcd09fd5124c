#include "fleet/providers/foreign_words.hpp"

#include <algorithm>

#include "base/secret_names.hpp"
#include "base/text.hpp"

namespace comfyd::fleet {
namespace {

bool continues_a_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::string presentable(std::string_view text, const std::vector<std::string>& secrets) {
    // Hidden before it is cut: half a secret is one, too.
    const std::string whole = without_secrets(std::string(text), secrets);
    std::string made;
    for (const char c : whole) {
        const bool is_space = (c >= 0 && c <= ' ') || c == '\x7f';
        if (!is_space) {
            made += c;
        } else if (!made.empty() && made.back() != ' ') {
            made += ' ';
        }
    }
    if (made.size() > kWordsBytesMax) {
        std::size_t end = kWordsBytesMax;
        while (end > 0 && continues_a_character(made[end])) {
            --end;
        }
        made.resize(end);
        made += "…";
    }
    return std::string(trim(made));
}

std::string excerpt_of(std::string_view bytes, const std::vector<std::string>& secrets) {
    std::string ascii(bytes);
    std::ranges::replace_if(ascii, [](char c) { return c < 0; }, '?');
    return presentable(ascii, secrets);
}

}  // namespace comfyd::fleet
