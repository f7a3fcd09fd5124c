#include "media/headers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "media/bytes.hpp"
#include "media/metadata.hpp"

namespace comfyd::media {
namespace {

// More parts than this of one file are not looked at.
constexpr int kPartsMax = 200'000;

bool names_workflow(std::string_view keyword) {
    return keyword == "workflow" || keyword == "prompt";
}

// As ComfyUI writes them into EXIF: "workflow:{…}".
bool has_workflow_text(std::string_view exif) {
    return exif.find("workflow:{") != std::string_view::npos ||
           exif.find("prompt:{") != std::string_view::npos;
}

// `duration_s`: a sum, of which the last digits are nobody's.
void note_animation(Facts& facts, std::uint64_t frames, double duration_s) {
    constexpr double kDigits = 1e6;
    duration_s = std::round(duration_s * kDigits) / kDigits;
    facts.frames = frames;
    if (frames > 1) {
        facts.kind = Kind::animated_image;
        facts.duration_s = duration_s;
        if (duration_s > 0) {
            facts.fps = static_cast<double>(frames) / duration_s;
        }
    }
}

Facts picture(const char* format) {
    Facts facts;
    facts.kind = Kind::image;
    facts.format = format;
    return facts;
}

Facts read_png(std::string_view file) {
    Facts facts = picture("png");
    facts.width = big_endian(file, 16, 4);
    facts.height = big_endian(file, 20, 4);
    facts.bit_depth = byte_at(file, 24);
    const std::uint8_t colour = byte_at(file, 25);
    facts.has_alpha = colour == 4 || colour == 6;
    facts.has_workflow = false;
    bool is_animated = false;
    std::uint64_t frames = 0;
    double duration_s = 0;
    std::size_t at = 8;
    for (int parts = 0; parts < kPartsMax && at + 12 <= file.size(); ++parts) {
        const std::size_t length = big_endian(file, at, 4);
        const std::string_view type = part(file, at + 4, 4);
        const std::string_view content = part(file, at + 8, length);
        if (type == "tRNS") {
            facts.has_alpha = true;
        } else if (type == "tEXt" || type == "zTXt" || type == "iTXt" || type == "comf") {
            const auto keyword = content.substr(0, std::min(content.find('\0'), content.size()));
            facts.has_workflow = *facts.has_workflow || names_workflow(keyword);
        } else if (type == "acTL") {
            is_animated = true;
            frames = big_endian(content, 0, 4);
        } else if (type == "fcTL") {
            const std::uint32_t parts_of_second = big_endian(content, 22, 2);
            duration_s += big_endian(content, 20, 2) /
                          static_cast<double>(parts_of_second == 0 ? 100 : parts_of_second);
        }
        // Of a still one, ComfyUI's texts come before the pixels.
        if (type == "IEND" || (type == "IDAT" && !is_animated)) {
            break;
        }
        at += length + 12;
    }
    note_animation(facts, is_animated ? frames : 1, duration_s);
    return facts;
}

Facts read_jpeg(std::string_view file) {
    Facts facts = picture("jpeg");
    facts.has_alpha = false;
    facts.has_workflow = false;
    facts.frames = 1;
    std::size_t at = 2;
    for (int parts = 0; parts < kPartsMax && at + 4 <= file.size(); ++parts) {
        if (byte_at(file, at) != 0xFF) {
            break;
        }
        const std::uint8_t marker = byte_at(file, at + 1);
        if (marker == 0xFF) {  // padding
            ++at;
            continue;
        }
        if (marker == 0xDA || marker == 0xD9) {
            break;
        }
        const std::size_t length = big_endian(file, at + 2, 2);
        const bool is_frame =
            marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
        if (is_frame) {
            facts.bit_depth = byte_at(file, at + 4);
            facts.height = big_endian(file, at + 5, 2);
            facts.width = big_endian(file, at + 7, 2);
        } else if (marker == 0xE1) {
            facts.has_workflow =
                *facts.has_workflow || has_workflow_text(part(file, at + 4, length));
        }
        at += 2 + std::max<std::size_t>(length, 2);
    }
    if (exchanges_sides(jpeg_orientation(file))) {
        std::swap(facts.width, facts.height);
    }
    return facts;
}

Facts read_webp(std::string_view file) {
    Facts facts = picture("webp");
    facts.bit_depth = 8;
    facts.has_alpha = false;
    facts.has_workflow = false;
    std::uint64_t frames = 0;
    double duration_s = 0;
    std::size_t at = 12;
    for (int parts = 0; parts < kPartsMax && at + 8 <= file.size(); ++parts) {
        const std::string_view type = part(file, at, 4);
        const std::size_t length = little_endian(file, at + 4, 4);
        const std::string_view content = part(file, at + 8, length);
        if (type == "VP8X") {
            facts.has_alpha = (byte_at(content, 0) & 0x10) != 0;
            facts.width = little_endian(content, 4, 3) + 1;
            facts.height = little_endian(content, 7, 3) + 1;
        } else if (type == "VP8 " && !facts.width) {
            facts.width = little_endian(content, 6, 2) & 0x3FFF;
            facts.height = little_endian(content, 8, 2) & 0x3FFF;
        } else if (type == "VP8L" && !facts.width) {
            const std::uint32_t bits = little_endian(content, 1, 4);
            facts.width = (bits & 0x3FFF) + 1;
            facts.height = (bits >> 14 & 0x3FFF) + 1;
            facts.has_alpha = (bits >> 28 & 1) != 0;
        } else if (type == "ANMF") {
            ++frames;
            duration_s += little_endian(content, 12, 3) / 1000.0;
        } else if (type == "EXIF") {
            facts.has_workflow = has_workflow_text(content);
        }
        at += 8 + length + (length & 1);
    }
    note_animation(facts, std::max<std::uint64_t>(frames, 1), duration_s);
    return facts;
}

// Where the small blocks that begin here end.
std::size_t skip_gif_blocks(std::string_view file, std::size_t at) {
    while (byte_at(file, at) != 0) {
        at += 1 + byte_at(file, at);
    }
    return at + 1;
}

std::size_t gif_palette_bytes(std::uint8_t flags) {
    return (flags & 0x80) != 0 ? std::size_t{3} << ((flags & 7) + 1) : 0;
}

constexpr std::uint32_t kShortestGifDelay = 2;
constexpr std::uint32_t kUsualGifDelay = 10;

Facts read_gif(std::string_view file) {
    Facts facts = picture("gif");
    facts.bit_depth = 8;
    facts.width = little_endian(file, 6, 2);
    facts.height = little_endian(file, 8, 2);
    facts.has_alpha = false;
    std::uint64_t frames = 0;
    std::uint64_t duration = 0;  // in hundredths, like the next
    std::uint32_t delay = 0;     // of the next frame
    std::size_t at = 13 + gif_palette_bytes(byte_at(file, 10));
    for (int parts = 0; parts < kPartsMax && at < file.size(); ++parts) {
        const std::uint8_t what = byte_at(file, at);
        if (what == 0x21 && byte_at(file, at + 1) == 0xF9) {
            facts.has_alpha = *facts.has_alpha || (byte_at(file, at + 3) & 1) != 0;
            delay = little_endian(file, at + 4, 2);
            at = skip_gif_blocks(file, at + 2);
        } else if (what == 0x21) {
            at = skip_gif_blocks(file, at + 2);
        } else if (what == 0x2C) {
            ++frames;
            // Who asks for no time at all is given what browsers give.
            duration += delay < kShortestGifDelay ? kUsualGifDelay : delay;
            delay = 0;
            at = skip_gif_blocks(file, at + 11 + gif_palette_bytes(byte_at(file, at + 9)));
        } else {
            break;
        }
    }
    note_animation(facts, std::max<std::uint64_t>(frames, 1), static_cast<double>(duration) / 100);
    return facts;
}

// Calls `with(type, content)` for the boxes of an ISO file, one behind the other.
template <class With>
void each_box(std::string_view file, const With& with) {
    std::size_t at = 0;
    for (int parts = 0; parts < kPartsMax && at + 8 <= file.size(); ++parts) {
        const std::size_t said = big_endian(file, at, 4);
        const std::size_t size = said == 0 ? file.size() - at : said;
        if (size < 8) {
            break;  // also those of more than 4 GB: nothing that is looked for comes behind them
        }
        with(part(file, at + 4, 4), part(file, at + 8, size - 8));
        at += size;
    }
}

// The content of the first box of a type; empty: there is none.
std::string_view box(std::string_view file, std::string_view wanted) {
    std::string_view found;
    each_box(file, [&](std::string_view type, std::string_view content) {
        found = type == wanted && found.empty() ? content : found;
    });
    return found;
}

// A sequence is written as a film has its pictures.
void note_sequence(std::string_view file, Facts& facts) {
    facts.kind = Kind::animated_image;
    const std::string_view media = box(box(box(file, "moov"), "trak"), "mdia");
    const std::string_view clock = box(media, "mdhd");
    const std::string_view sizes = box(box(box(media, "minf"), "stbl"), "stsz");
    if (clock.empty() || sizes.empty()) {
        return;
    }
    const bool is_wide = byte_at(clock, 0) == 1;  // times of 64 bits, whose upper half is 0
    const std::uint32_t parts_of_second = big_endian(clock, is_wide ? 20 : 12, 4);
    const std::uint32_t duration = big_endian(clock, is_wide ? 28 : 16, 4);
    note_animation(
        facts,
        big_endian(sizes, 8, 4),
        parts_of_second == 0 ? 0 : duration / static_cast<double>(parts_of_second)
    );
}

Facts read_avif(std::string_view file) {
    Facts facts = picture("avif");
    facts.has_alpha = false;
    constexpr std::size_t kFullBox = 4;  // version and flags
    const std::string_view meta = box(file, "meta");
    const std::string_view properties = box(box(part(meta, kFullBox, meta.size()), "iprp"), "ipco");
    each_box(properties, [&facts](std::string_view type, std::string_view content) {
        if (type == "ispe") {
            facts.width = std::max(facts.width.value_or(0), big_endian(content, 4, 4));
            facts.height = std::max(facts.height.value_or(0), big_endian(content, 8, 4));
        } else if (type == "auxC") {
            facts.has_alpha = content.find("alpha") != std::string_view::npos;
        } else if (type == "pixi") {
            facts.bit_depth = byte_at(content, 5);
        }
    });
    if (part(file, 8, 4) == "avis") {
        note_sequence(file, facts);
    }
    return facts;
}

Facts read_bmp(std::string_view file) {
    Facts facts = picture("bmp");
    facts.frames = 1;
    facts.width = little_endian(file, 18, 4);
    const auto height = static_cast<std::int32_t>(little_endian(file, 22, 4));
    facts.height =
        height < 0 ? 0U - static_cast<std::uint32_t>(height) : static_cast<std::uint32_t>(height);
    return facts;
}

Facts read_tiff(std::string_view file) {
    Facts facts = picture("tiff");
    facts.width = tiff_number(file, 0x0100);
    facts.height = tiff_number(file, 0x0101);
    return facts;
}

struct Mark {
    std::size_t at;
    std::string_view bytes;
    Kind kind;
    const char* format;
};
constexpr std::array kMarks{
    Mark{0, std::string_view("\x1A\x45\xDF\xA3", 4), Kind::video, "matroska"},
    Mark{0, "fLaC", Kind::audio, "flac"},
    Mark{0, "OggS", Kind::audio, "ogg"},
    Mark{0, "ID3", Kind::audio, "mp3"},
    Mark{0, "\xFF\xFB", Kind::audio, "mp3"},
    Mark{0, "\xFF\xF3", Kind::audio, "mp3"},
    Mark{8, "WAVE", Kind::audio, "wav"},
    Mark{8, "AVI ", Kind::video, "avi"},
    Mark{0, "glTF", Kind::model_3d, "glb"},
};

std::string extension_of(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    std::string extension(dot == std::string_view::npos ? "" : name.substr(dot + 1));
    std::ranges::transform(extension, extension.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return extension;
}

Facts by_name(std::string_view name, std::string_view content_type) {
    static constexpr std::array<std::string_view, 10> k3d{
        "glb", "gltf", "obj", "stl", "ply", "fbx", "usdz", "splat", "ksplat", "spz"
    };
    Facts facts;
    const std::string extension = extension_of(name);
    if (std::ranges::find(k3d, extension) != k3d.end() || content_type.starts_with("model/")) {
        facts.kind = Kind::model_3d;
        facts.format = extension;
    } else if (content_type.starts_with("text/") || content_type == "application/json") {
        facts.kind = Kind::text;
    } else if (content_type.starts_with("video/")) {
        facts.kind = Kind::video;
    } else if (content_type.starts_with("audio/")) {
        facts.kind = Kind::audio;
    } else if (content_type.starts_with("image/")) {
        facts.kind = Kind::image;
    }
    return facts;
}

Facts read_iso(std::string_view file) {
    const std::string_view brand = part(file, 8, 4);
    if (brand == "avif" || brand == "avis") {
        return read_avif(file);
    }
    Facts facts;
    facts.kind = brand == "M4A " ? Kind::audio : Kind::video;
    facts.format = brand == "M4A " ? "m4a" : "mp4";
    return facts;
}

}  // namespace

Facts read_headers(std::string_view file, std::string_view name, std::string_view content_type) {
    if (file.starts_with(std::string_view("\x89PNG\r\n\x1a\n", 8))) {
        return read_png(file);
    }
    if (file.starts_with("\xff\xd8\xff")) {
        return read_jpeg(file);
    }
    if (file.starts_with("RIFF") && part(file, 8, 4) == "WEBP") {
        return read_webp(file);
    }
    if (file.starts_with("GIF87a") || file.starts_with("GIF89a")) {
        return read_gif(file);
    }
    if (part(file, 4, 4) == "ftyp") {
        return read_iso(file);
    }
    if (file.starts_with("BM") && content_type == "image/bmp") {
        return read_bmp(file);
    }
    if (file.starts_with(std::string_view("II*\0", 4)) ||
        file.starts_with(std::string_view("MM\0*", 4))) {
        return read_tiff(file);
    }
    for (const Mark& mark : kMarks) {
        if (part(file, mark.at, mark.bytes.size()) == mark.bytes) {
            Facts facts;
            facts.kind = mark.kind;
            facts.format = mark.format;
            return facts;
        }
    }
    return by_name(name, content_type);
}

}  // namespace comfyd::media
