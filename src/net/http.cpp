#include "net/http.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"

namespace comfyd::net {
namespace {

// Of a request or an answer, with room for a few more.
constexpr std::size_t kUsualFields = 12;

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char letter = lower(c);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

// The byte that an escape at text[at] stands for, or -1.
int escape_at(std::string_view text, std::size_t at) {
    if (at + 2 >= text.size()) {
        return -1;
    }
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string decode_query_part(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int escaped = text[i] == '%' ? escape_at(text, i) : -1;
        if (escaped >= 0) {
            decoded += static_cast<char>(escaped);
            i += 2;
        } else {
            decoded += text[i] == '+' ? ' ' : text[i];
        }
    }
    return decoded;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::uint16_t default_port(std::string_view scheme) {
    return scheme == "https" || scheme == "wss" ? 443 : 80;
}

bool is_host_character(char c, bool bracketed) {
    return bracketed ? hex_value(c) >= 0 || c == ':' || c == '.' : is_unreserved(c);
}

struct Authority {
    std::string host;
    std::uint16_t port = 0;
};

Result<Authority> parse_authority(std::string_view text, std::uint16_t port_if_absent) {
    if (text.find('@') != std::string_view::npos) {
        return fail(Code::invalid_argument, "URL must not contain a user name or password");
    }
    const bool bracketed = text.starts_with('[');
    std::string_view host = text;
    std::string_view port;
    if (bracketed) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) {
            return fail(Code::invalid_argument, "URL has a '[' without ']' in its host");
        }
        host = text.substr(1, end - 1);
        port = text.substr(end + 1);
    } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon);
    }
    const auto legal = [&](char c) { return is_host_character(c, bracketed); };
    if (host.empty() || host.size() > 253 || !std::all_of(host.begin(), host.end(), legal)) {
        return fail(Code::invalid_argument, "URL has no valid host");
    }
    Authority authority{lower(host), port_if_absent};
    if (!port.empty()) {
        const auto number =
            port[0] == ':' ? parse_number<std::uint16_t>(port.substr(1)) : std::nullopt;
        if (!number || *number == 0) {
            return fail(Code::invalid_argument, "URL has no valid port: use 1 to 65535");
        }
        authority.port = *number;
    }
    return authority;
}

}  // namespace

void Headers::set(std::string_view name, std::string value) {
    const auto matches = [&](const auto& field) { return equal_ignoring_case(field.first, name); };
    const auto first = std::find_if(fields_.begin(), fields_.end(), matches);
    if (first == fields_.end()) {
        add(name, std::move(value));
        return;
    }
    first->second = std::move(value);
    fields_.erase(std::remove_if(first + 1, fields_.end(), matches), fields_.end());
}

void Headers::add(std::string_view name, std::string value) {
    if (fields_.empty()) {
        fields_.reserve(kUsualFields);
    }
    fields_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
    for (const auto& [field_name, value] : fields_) {
        if (equal_ignoring_case(field_name, name)) {
            return value;
        }
    }
    return {};
}

bool Headers::contains(std::string_view name) const {
    return std::any_of(fields_.begin(), fields_.end(), [&](const auto& field) {
        return equal_ignoring_case(field.first, name);
    });
}

std::string_view to_string(Method method) {
    switch (method) {
        case Method::get:
            return "GET";
        case Method::head:
            return "HEAD";
        case Method::post:
            return "POST";
        case Method::put:
            return "PUT";
        case Method::patch:
            return "PATCH";
        case Method::del:
            return "DELETE";
        case Method::options:
            return "OPTIONS";
        case Method::other:
            return "OTHER";
    }
    return "OTHER";
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return lower(x) == lower(y);
           });
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        const int escaped = escape_at(text, i);
        if (escaped <= 0) {
            return std::nullopt;
        }
        decoded += static_cast<char>(escaped);
        i += 2;
    }
    if (decoded.find('\0') != std::string::npos) {
        return std::nullopt;
    }
    return decoded;
}

std::string percent_encode(std::string_view text, bool keep_slash) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string encoded;
    encoded.reserve(text.size());
    for (const char c : text) {
        if (is_unreserved(c) || (keep_slash && c == '/')) {
            encoded += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        encoded += '%';
        encoded += kDigits[byte >> 4];
        encoded += kDigits[byte & 15];
    }
    return encoded;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
    std::vector<std::pair<std::string, std::string>> pairs;
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const auto item = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (item.empty()) {
            continue;
        }
        const auto equals = std::min(item.find('='), item.size());
        const auto value = item.substr(std::min(equals + 1, item.size()));
        pairs.emplace_back(decode_query_part(item.substr(0, equals)), decode_query_part(value));
    }
    return pairs;
}

Result<Url> Url::parse(std::string_view text) {
    // Control characters and spaces could smuggle a second header into a request.
    const auto illegal = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
    if (text.size() > 8192 || std::any_of(text.begin(), text.end(), illegal)) {
        return fail(
            Code::invalid_argument, "URL is too long or contains spaces or control characters"
        );
    }
    const auto separator = text.find("://");
    if (separator == std::string_view::npos) {
        return fail(Code::invalid_argument, "URL has no scheme: write it as http://host/path");
    }
    Url url;
    url.scheme = lower(text.substr(0, separator));
    constexpr std::array<std::string_view, 4> kSchemes{"http", "https", "ws", "wss"};
    if (std::find(kSchemes.begin(), kSchemes.end(), url.scheme) == kSchemes.end()) {
        return fail(Code::invalid_argument, "URL scheme must be http, https, ws or wss");
    }
    auto rest = text.substr(separator + 3);
    const auto authority_end = std::min(rest.find_first_of("/?#"), rest.size());
    auto authority = parse_authority(rest.substr(0, authority_end), default_port(url.scheme));
    if (!authority) {
        return fail(std::move(authority.error()));
    }
    url.host = std::move(authority->host);
    url.port = authority->port;
    rest.remove_prefix(authority_end);
    rest = rest.substr(0, rest.find('#'));
    url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
    return url;
}

std::string Url::host_header() const {
    std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
    if (port != default_port(scheme)) {
        text += ':';
        text += std::to_string(port);
    }
    return text;
}

std::string Url::to_string() const {
    return scheme + "://" + host_header() + target;
}

Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
    constexpr std::string_view kUnit = "bytes=";
    const std::optional<ByteRange> none;
    if (header.size() < kUnit.size() ||
        !equal_ignoring_case(header.substr(0, kUnit.size()), kUnit)) {
        return none;
    }
    header.remove_prefix(kUnit.size());
    const auto dash = header.find('-');
    if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) {
        return none;
    }
    const auto first = parse_number<std::uint64_t>(header.substr(0, dash));
    const auto last = parse_number<std::uint64_t>(header.substr(dash + 1));
    const bool open_end = dash + 1 == header.size();
    const std::string out_of_bounds =
        "the requested range lies outside of the " + std::to_string(size) + " bytes";
    if (dash == 0) {
        if (!last) {
            return none;
        }
        if (*last == 0 || size == 0) {
            return fail(Code::range_not_satisfiable, out_of_bounds);
        }
        const auto length = std::min(*last, size);
        return std::optional<ByteRange>(ByteRange{size - length, length});
    }
    if (!first || (!last && !open_end) || (last && *last < *first)) {
        return none;
    }
    if (*first >= size) {
        return fail(Code::range_not_satisfiable, out_of_bounds);
    }
    const auto end = last ? std::min(*last, size - 1) : size - 1;
    return std::optional<ByteRange>(ByteRange{*first, end - *first + 1});
}

std::string_view content_type_of(std::string_view filename) {
    struct Known {
        std::string_view extension;
        std::string_view type;
    };
    static constexpr std::array kKnown{
        Known{"png", "image/png"},
        Known{"jpg", "image/jpeg"},
        Known{"jpeg", "image/jpeg"},
        Known{"webp", "image/webp"},
        Known{"gif", "image/gif"},
        Known{"avif", "image/avif"},
        Known{"bmp", "image/bmp"},
        Known{"tif", "image/tiff"},
        Known{"tiff", "image/tiff"},
        Known{"svg", "image/svg+xml"},
        Known{"ico", "image/x-icon"},
        Known{"mp4", "video/mp4"},
        Known{"webm", "video/webm"},
        Known{"mov", "video/quicktime"},
        Known{"mkv", "video/x-matroska"},
        Known{"avi", "video/x-msvideo"},
        Known{"wav", "audio/wav"},
        Known{"mp3", "audio/mpeg"},
        Known{"flac", "audio/flac"},
        Known{"ogg", "audio/ogg"},
        Known{"opus", "audio/opus"},
        Known{"m4a", "audio/mp4"},
        Known{"glb", "model/gltf-binary"},
        Known{"gltf", "model/gltf+json"},
        Known{"obj", "model/obj"},
        Known{"json", "application/json"},
        Known{"html", "text/html; charset=utf-8"},
        Known{"htm", "text/html; charset=utf-8"},
        Known{"css", "text/css; charset=utf-8"},
        Known{"js", "text/javascript; charset=utf-8"},
        Known{"mjs", "text/javascript; charset=utf-8"},
        Known{"txt", "text/plain; charset=utf-8"},
        Known{"md", "text/markdown; charset=utf-8"},
        Known{"csv", "text/csv; charset=utf-8"},
        Known{"yaml", "application/yaml"},
        Known{"yml", "application/yaml"},
        Known{"xml", "application/xml"},
        Known{"pdf", "application/pdf"},
        Known{"zip", "application/zip"},
        Known{"gz", "application/gzip"},
        Known{"wasm", "application/wasm"},
        Known{"woff2", "font/woff2"},
    };
    const auto dot = filename.rfind('.');
    if (dot != std::string_view::npos) {
        const auto extension = filename.substr(dot + 1);
        for (const auto& known : kKnown) {
            if (equal_ignoring_case(known.extension, extension)) {
                return known.type;
            }
        }
    }
    return "application/octet-stream";
}

}  // namespace comfyd::net
