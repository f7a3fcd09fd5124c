#include "net/safe_content.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text.hpp"

namespace comfyd::net {

namespace {

constexpr std::size_t kBytesMax = 255;

bool is_token_character(char c) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
}

// What is left of `text` behind a token of at least one character; nullopt: it begins with none.
std::optional<std::string_view> after_token(std::string_view text) {
    const auto end = std::ranges::find_if_not(text, is_token_character);
    return end == text.begin()
               ? std::nullopt
               : std::optional(text.substr(static_cast<std::size_t>(end - text.begin())));
}

std::optional<std::string_view> after_quoted(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c == '"') {
            return text.substr(i + 1);
        }
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            break;
        }
        i += c == '\\' ? 1 : 0;
    }
    return std::nullopt;
}

std::string_view after_spaces(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

}  // namespace

bool is_media_type(std::string_view text) {
    const auto subtype = after_token(text);
    if (text.size() > kBytesMax || !subtype || !subtype->starts_with('/')) {
        return false;
    }
    auto left = after_token(subtype->substr(1));
    while (left && !left->empty()) {
        const std::string_view semicolon = after_spaces(*left);
        const auto value = semicolon.starts_with(';')
                               ? after_token(after_spaces(semicolon.substr(1)))
                               : std::nullopt;
        if (!value || !value->starts_with('=')) {
            return false;
        }
        const std::string_view shown = value->substr(1);
        left = shown.starts_with('"') ? after_quoted(shown) : after_token(shown);
    }
    return left.has_value();
}

std::string_view sent_type(std::string_view content_type) {
    return is_media_type(content_type) ? content_type : "application/octet-stream";
}

bool is_active_type(std::string_view content_type) {
    constexpr std::array<std::string_view, 9> kActive{
        "text/html",
        "text/xml",
        "text/xsl",
        "application/xml",
        "text/javascript",
        "application/javascript",
        "application/ecmascript",
        "application/x-javascript",
        "application/x-shockwave-flash",
    };
    const std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
    // Of several parts each may be of any type.
    return type.starts_with("multipart/") || type.ends_with("+xml") ||
           type.ends_with("ecmascript") ||
           std::find(kActive.begin(), kActive.end(), type) != kActive.end();
}

}  // namespace comfyd::net
