#include "support/double/pictures.hpp"

#include <zlib.h>

#include "base/crypto.hpp"

namespace comfyd::support {
namespace {

void add_chunk(std::string& png, std::string_view type, std::string_view data) {
    png += big_endian(static_cast<unsigned>(data.size()));
    const std::size_t start = png.size();
    png += type;
    png += data;
    const auto* checked = reinterpret_cast<const Bytef*>(png.data() + start);
    png +=
        big_endian(static_cast<unsigned>(::crc32(0, checked, static_cast<uInt>(png.size() - start)))
        );
}

// One zlib stream with one stored block: no compressor needed for four bytes.
std::string stored(std::string_view data) {
    std::string out = "\x78\x01\x01";
    const auto size = static_cast<unsigned>(data.size());
    for (const unsigned half : {size, ~size}) {
        out += static_cast<char>(half & 0xFF);
        out += static_cast<char>((half >> 8) & 0xFF);
    }
    out += data;
    const auto* checked = reinterpret_cast<const Bytef*>(data.data());
    out += big_endian(static_cast<unsigned>(::adler32(1, checked, static_cast<uInt>(data.size()))));
    return out;
}

}  // namespace

std::string big_endian(unsigned value) {
    std::string out(4, '\0');
    for (std::size_t i = 0; i < 4; ++i) {
        out[i] = static_cast<char>((value >> (24 - 8 * i)) & 0xFF);
    }
    return out;
}

std::string make_png(std::string_view text, unsigned index, std::size_t bytes_min) {
    return make_png(text, index, {{"prompt", std::string(text)}}, bytes_min);
}

std::string make_png(
    std::string_view colour, unsigned index, const PictureTexts& texts, std::size_t bytes_min
) {
    const Digest digest = sha256(colour);
    std::string row(1, '\0');
    for (std::size_t i = 0; i < 3; ++i) {
        row += static_cast<char>(static_cast<unsigned char>(digest[i] + index));
    }
    std::string png = "\x89PNG\r\n\x1a\n";
    using namespace std::string_view_literals;
    add_chunk(png, "IHDR", "\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"sv);
    for (const auto& [name, text] : texts) {
        add_chunk(png, "tEXt", name + '\0' + text);
    }
    if (png.size() < bytes_min) {
        // A private, ancillary chunk that decoders skip.
        add_chunk(png, "paDd", std::string(bytes_min - png.size(), 'x'));
    }
    add_chunk(png, "IDAT", stored(row));
    add_chunk(png, "IEND", "");
    return png;
}

std::string make_mp4(std::string_view text) {
    std::string type_box = "ftypisom";
    type_box += big_endian(512);
    type_box += "isomiso2mp41";
    std::string mp4 = big_endian(static_cast<unsigned>(type_box.size() + 4)) + type_box;
    mp4 += big_endian(static_cast<unsigned>(text.size() + 8));
    mp4 += "free";
    mp4 += text;
    return mp4;
}

std::string make_flac(std::string_view text) {
    std::string flac = "fLaC";
    flac += std::string("\0\0\0\x22", 4);  // stream information, 34 bytes
    flac += std::string("\x10\x00\x10\x00\0\0\0\0\0\0\x0A\xC4\x42\xF0", 14);
    flac += std::string(20, '\0');
    std::string size = big_endian(static_cast<unsigned>(text.size() + 4));
    size[0] = static_cast<char>(0x82);  // last block, application data
    flac += size;
    flac += "prmt";
    flac += text;
    return flac;
}

}  // namespace comfyd::support
