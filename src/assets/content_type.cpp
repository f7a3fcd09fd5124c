#include "assets/content_type.hpp"

#include "base/json.hpp"
#include "net/http.hpp"

namespace comfyd::assets {
namespace {

constexpr std::string_view kUnknown = "application/octet-stream";

std::string_view by_signature(std::string_view bytes) {
    using namespace std::literals;
    const auto at = [bytes](std::size_t offset, std::string_view text) {
        return bytes.size() >= offset && bytes.substr(offset).starts_with(text);
    };
    if (at(0, "\x89PNG\r\n\x1a\n")) {
        return "image/png";
    }
    if (at(0, "\xff\xd8\xff")) {
        return "image/jpeg";
    }
    if (at(0, "GIF87a") || at(0, "GIF89a")) {
        return "image/gif";
    }
    if (at(0, "RIFF") && at(8, "WEBP")) {
        return "image/webp";
    }
    if (at(0, "RIFF") && at(8, "WAVE")) {
        return "audio/wav";
    }
    if (at(0, "RIFF") && at(8, "AVI ")) {
        return "video/x-msvideo";
    }
    if (at(4, "ftyp")) {
        const bool is_heic = at(8, "hei") || at(8, "hev") || at(8, "mif1") || at(8, "msf1");
        return at(8, "avif") || at(8, "avis") ? "image/avif"
               : is_heic                      ? "image/heic"
               : at(8, "M4A ")                ? "audio/mp4"
               : at(8, "qt  ")                ? "video/quicktime"
                                              : "video/mp4";
    }
    if (at(0, "\x1a\x45\xdf\xa3")) {
        return "video/webm";
    }
    if (at(0, "\0\0\1\xba"sv) || at(0, "\0\0\1\xb3"sv)) {
        return "video/mpeg";
    }
    if (at(0, "II*\0"sv) || at(0, "MM\0*"sv)) {
        return "image/tiff";
    }
    if (at(0, "BM") && at(6, "\0\0\0\0"sv)) {
        return "image/bmp";
    }
    if (at(0, "\x76\x2f\x31\x01")) {
        return "image/x-exr";
    }
    if (at(0, "\0\0\0\x0cJXL \r\n\x87\n"sv)) {
        return "image/jxl";
    }
    if (at(0, "FORM") && (at(8, "AIFF") || at(8, "AIFC"))) {
        return "audio/aiff";
    }
    if (at(0, "\xff\xf1") || at(0, "\xff\xf9")) {
        return "audio/aac";
    }
    if (at(0, "fLaC")) {
        return "audio/flac";
    }
    if (at(0, "OggS")) {
        return "audio/ogg";
    }
    // An MPEG audio frame: eleven bits set, then a version, a layer (2 or 3), a bit rate and a
    // sample rate that exist.
    const bool is_frame = bytes.size() >= 3 && bytes[0] == '\xff' && (bytes[1] & 0xE0) == 0xE0 &&
                          (bytes[1] & 0x18) != 0x08 && (bytes[1] & 0x06) != 0 &&
                          (bytes[1] & 0x06) != 0x06 && (bytes[2] & 0xF0) != 0xF0 &&
                          (bytes[2] & 0x0C) != 0x0C;
    if (at(0, "ID3") || is_frame) {
        return "audio/mpeg";
    }
    return {};
}

// Length of the UTF-8 sequence that starts with `lead`; 0: none does.
std::size_t sequence_length(unsigned char lead) {
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead < 0xE0) {
        return 2;
    }
    if (lead >= 0xE0 && lead < 0xF0) {
        return 3;
    }
    return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool is_text(std::string_view bytes, bool is_whole) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const auto lead = static_cast<unsigned char>(bytes[at]);
        const bool is_control = lead < 0x20 && lead != '\t' && lead != '\n' && lead != '\r' &&
                                lead != '\f' && lead != 0x1B;
        const std::size_t length = sequence_length(lead);
        if (is_control || length == 0) {
            return false;
        }
        for (std::size_t i = 1; i < length; ++i) {
            if (at + i >= bytes.size()) {
                return !is_whole;  // cut in the middle of a character
            }
            if ((static_cast<unsigned char>(bytes[at + i]) & 0xC0) != 0x80) {
                return false;
            }
        }
        at += length;
    }
    return !bytes.empty();
}

bool is_json(std::string_view bytes, bool is_whole) {
    const auto first = bytes.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (bytes[first] != '{' && bytes[first] != '[')) {
        return false;
    }
    if (is_whole) {
        return json::parse(bytes).has_value();
    }
    // Of a longer document only the beginning is here: what follows the bracket must at least fit.
    const auto second = bytes.find_first_not_of(" \t\r\n", first + 1);
    return second != std::string_view::npos &&
           (bytes[second] == '"' ||
            (bytes[first] == '[' && (bytes[second] == '{' || bytes[second] == '[')));
}

}  // namespace

std::string guess_content_type(
    std::string_view file_name, std::string_view first_bytes, bool is_whole
) {
    const std::string_view by_name = net::content_type_of(file_name);
    if (by_name != kUnknown) {
        return std::string(by_name);
    }
    const std::string_view by_bytes = by_signature(first_bytes);
    if (!by_bytes.empty()) {
        return std::string(by_bytes);
    }
    if (!is_text(first_bytes, is_whole)) {
        return std::string(kUnknown);
    }
    return is_json(first_bytes, is_whole) ? "application/json" : "text/plain; charset=utf-8";
}

}  // namespace comfyd::assets
