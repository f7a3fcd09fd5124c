#include "assets/media.hpp"

#include <algorithm>
#include <array>

#include "assets/content_type.hpp"
#include "net/http.hpp"

namespace comfyd::assets {
namespace {

constexpr std::string_view kUnknown = "application/octet-stream";
constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kTypeBytesMax = 100;

// "image" of "image/png; q=1"
std::string_view major_of(std::string_view type) {
    return type.substr(0, type.find('/'));
}

bool has_major(std::string_view type, std::string_view major) {
    return net::equal_ignoring_case(major_of(type), major);
}

// Without parameters; empty where it is none that can be shown.
std::string_view plain_type(std::string_view declared) {
    declared = declared.substr(0, std::min(declared.find(';'), kTypeBytesMax));
    const bool is_printable =
        std::all_of(declared.begin(), declared.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    return is_printable ? declared : std::string_view();
}

bool is_markup(std::string_view declared) {
    static constexpr std::array<std::string_view, 4> kMarkup{
        "text/html", "application/xhtml", "text/javascript", "image/svg"
    };
    return std::any_of(kMarkup.begin(), kMarkup.end(), [declared](std::string_view type) {
        return net::equal_ignoring_case(declared.substr(0, type.size()), type);
    });
}

bool fits(MediaKind kind, std::string_view type) {
    switch (kind) {
        case MediaKind::image:
            return has_major(type, "image");
        case MediaKind::audio:  // the sound of a video too
            return has_major(type, "audio") || has_major(type, "video");
        case MediaKind::video:  // moving pictures too
            return has_major(type, "video") || type == "image/gif" || type == "image/webp";
        case MediaKind::any:
            return true;
    }
    return false;
}

std::string_view word_for(MediaKind kind) {
    switch (kind) {
        case MediaKind::image:
            return "picture";
        case MediaKind::audio:
            return "sound";
        case MediaKind::video:
            return "video";
        case MediaKind::any:
            break;
    }
    return "file for a workflow";
}

tl::unexpected<Error> refused(MediaKind kind, const std::string& why, std::string_view type) {
    return fail(
        Code::unsupported_media_type,
        "this is no " + std::string(word_for(kind)) + ": " + why,
        {{"content_type", boost::json::string_view(type.data(), type.size())}}
    );
}

bool is_safe(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

}  // namespace

Result<> judge_first_bytes(MediaKind kind, std::string_view first_bytes) {
    const std::string found = guess_content_type("", first_bytes, false);
    if (found != kUnknown && !fits(kind, found)) {
        return refused(kind, "its bytes are " + found, found);
    }
    return {};
}

Result<std::string> judge_media(
    MediaKind kind, std::string_view first_bytes, bool is_whole, std::string_view declared
) {
    const std::string found = guess_content_type("", first_bytes, is_whole);
    const bool is_known = found != kUnknown;
    declared = plain_type(declared);
    if (first_bytes.empty()) {
        return refused(kind, "it is empty", declared);
    }
    // Formats without a mark that is known here are believed; what calls itself a page is one.
    if (is_markup(declared) || !fits(kind, is_known ? found : declared)) {
        return refused(
            kind,
            "its bytes are " + (is_known ? found : "of an unknown kind") +
                (declared.empty() ? "" : ", sent as '" + std::string(declared) + "'"),
            is_known ? found : declared
        );
    }
    return is_known || declared.empty() ? found : std::string(declared);
}

std::string name_from_target(std::string_view url_target, std::string_view content_type) {
    std::string_view path = url_target.substr(0, url_target.find('?'));
    path.remove_prefix(std::min(path.rfind('/') + 1, path.size()));
    std::string name = net::percent_decode(path).value_or("");
    std::replace_if(name.begin(), name.end(), [](char c) { return !is_safe(c); }, '_');
    const auto dot = name.rfind('.');
    const bool agrees =
        content_type == kUnknown || major_of(net::content_type_of(name)) == major_of(content_type);
    if (dot != std::string::npos && !agrees) {
        name.resize(dot);
    }
    if (name.size() > kNameBytesMax) {
        name.erase(0, name.size() - kNameBytesMax);  // the extension is at the end
    }
    name.erase(0, name.find_first_not_of('.'));
    return name;
}

}  // namespace comfyd::assets
