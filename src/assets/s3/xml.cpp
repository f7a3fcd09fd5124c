#include "assets/s3/xml.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

// One tag: "<name …>", "</name>", "<name/>"; or what is none of them (a comment, a declaration).
struct Tag {
    enum class Kind { open, close, empty, other } kind = Kind::other;
    std::string_view name;  // without its prefix
    std::size_t begin = 0;
    std::size_t end = 0;  // behind it
};

// Of what begins at `begin` and ends with `mark`.
std::optional<Tag> skip_until(std::string_view xml, std::size_t begin, std::string_view mark) {
    const auto end = xml.find(mark, begin);
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    return Tag{Tag::Kind::other, {}, begin, end + mark.size()};
}

// A '>' within quotes does not end a tag.
std::size_t end_of_tag(std::string_view xml, std::size_t at) {
    char quote = 0;
    for (; at < xml.size(); ++at) {
        const char c = xml[at];
        if (quote != 0) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '>') {
            return at + 1;
        }
    }
    return std::string_view::npos;
}

std::optional<Tag> next_tag(std::string_view xml, std::size_t from) {
    const auto begin = xml.find('<', from);
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    const auto rest = xml.substr(begin);
    if (rest.starts_with("<!--")) {
        return skip_until(xml, begin, "-->");
    }
    if (rest.starts_with("<![CDATA[")) {
        return skip_until(xml, begin, "]]>");
    }
    const auto end = end_of_tag(xml, begin + 1);
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    Tag tag{Tag::Kind::open, xml.substr(begin + 1, end - begin - 2), begin, end};
    if (tag.name.starts_with('?') || tag.name.starts_with('!')) {
        tag.kind = Tag::Kind::other;
        return tag;
    }
    if (tag.name.starts_with('/')) {
        tag.kind = Tag::Kind::close;
        tag.name.remove_prefix(1);
    } else if (tag.name.ends_with('/')) {
        tag.kind = Tag::Kind::empty;
        tag.name.remove_suffix(1);
    }
    tag.name = tag.name.substr(0, tag.name.find_first_of(kSpaces));
    const auto colon = tag.name.rfind(':');
    tag.name.remove_prefix(colon == std::string_view::npos ? 0 : colon + 1);
    return tag;
}

// An element's content, and where to look for the next.
struct Element {
    std::string_view content;
    std::size_t end = 0;
};

std::optional<Element> next_element(std::string_view xml, std::string_view name, std::size_t from) {
    auto tag = next_tag(xml, from);
    while (tag &&
           (tag->name != name || (tag->kind != Tag::Kind::open && tag->kind != Tag::Kind::empty))) {
        tag = next_tag(xml, tag->end);
    }
    if (!tag || tag->kind == Tag::Kind::empty) {
        return tag ? std::optional(Element{xml.substr(tag->end, 0), tag->end}) : std::nullopt;
    }
    const std::size_t begin = tag->end;
    std::size_t depth = 1;
    for (auto at = next_tag(xml, begin); at; at = next_tag(xml, at->end)) {
        if (at->name != name) {
            continue;
        }
        depth += at->kind == Tag::Kind::open ? 1 : 0;
        depth -= at->kind == Tag::Kind::close ? 1 : 0;
        if (depth == 0) {
            return Element{xml.substr(begin, at->begin - begin), at->end};
        }
    }
    return std::nullopt;
}

void append_utf8(std::string& text, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

// What stands between '&' and ';'. False: it is no character.
bool append_entity(std::string& text, std::string_view entity) {
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}
    };
    for (const auto& [name, character] : kNamed) {
        if (entity == name) {
            text += character;
            return true;
        }
    }
    if (!entity.starts_with('#')) {
        return false;
    }
    entity.remove_prefix(1);
    const int base = entity.starts_with('x') ? 16 : 10;
    entity.remove_prefix(base == 16 ? 1 : 0);
    std::uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(entity.data(), entity.data() + entity.size(), code, base);
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (error != std::errc() || end != entity.data() + entity.size() || code == 0 ||
        code > 0x10FFFF || is_surrogate) {
        return false;
    }
    append_utf8(text, code);
    return true;
}

std::string unescape(std::string_view raw) {
    constexpr std::string_view kOpen = "<![CDATA[";
    constexpr std::string_view kClose = "]]>";
    constexpr std::size_t kEntityBytesMax = 10;
    std::string text;
    while (!raw.empty()) {
        if (raw.starts_with(kOpen) && raw.find(kClose) != std::string_view::npos) {
            const auto end = raw.find(kClose);
            text += raw.substr(kOpen.size(), end - kOpen.size());
            raw.remove_prefix(end + kClose.size());
            continue;
        }
        const auto end =
            raw[0] == '&' ? raw.substr(0, kEntityBytesMax).find(';') : std::string_view::npos;
        if (end != std::string_view::npos && append_entity(text, raw.substr(1, end - 1))) {
            raw.remove_prefix(end + 1);
            continue;
        }
        text += raw[0];
        raw.remove_prefix(1);
    }
    return text;
}

}  // namespace

std::optional<std::string_view> find_element(std::string_view xml, std::string_view name) {
    const auto found = next_element(xml, name, 0);
    return found ? std::optional(found->content) : std::nullopt;
}

std::vector<std::string_view> find_elements(
    std::string_view xml, std::string_view name, std::size_t count_max
) {
    std::vector<std::string_view> contents;
    std::size_t at = 0;
    while (contents.size() < count_max) {
        const auto found = next_element(xml, name, at);
        if (!found) {
            break;
        }
        contents.push_back(found->content);
        at = found->end;
    }
    return contents;
}

std::string find_text(std::string_view xml, std::string_view name) {
    const auto content = find_element(xml, name);
    return content ? unescape(trim(*content, kSpaces)) : std::string();
}

std::string escape_xml(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        switch (c) {
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '&':
                escaped += "&amp;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            default:
                escaped += c;
        }
    }
    return escaped;
}

}  // namespace comfyd::assets::s3
