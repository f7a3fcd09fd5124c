#include "engine/pictures/png.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "engine/pictures/png_chunks.hpp"
#include "engine/pictures/reader.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::function<bool()> kNeverStopped = [] { return false; };

std::string chunk(const std::string& type, const std::string& data) {
    const auto number = [](std::uint32_t value) {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8) {
            text += static_cast<char>(value >> shift & 0xFF);
        }
        return text;
    };
    const std::string body = type + data;
    const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
    const auto sum = static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(body.size())));
    return number(static_cast<std::uint32_t>(data.size())) + body + number(sum);
}

std::string header_bytes(std::uint32_t width, std::uint32_t height, int depth, int type) {
    std::string data;
    for (const std::uint32_t side : {width, height}) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            data += static_cast<char>(side >> shift & 0xFF);
        }
    }
    data += {static_cast<char>(depth), static_cast<char>(type), 0, 0, 0};
    return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", data);
}

struct Decoded {
    PngHeader header;
    std::vector<float> rgb;
    std::vector<float> mask;
};

tl::expected<Decoded, PngFailure> decode(std::string_view file) {
    const auto header = read_png_header(file);
    if (!header) {
        return tl::unexpected(header.error());
    }
    if (header->width * header->height > 1'000'000) {
        return tl::unexpected(PngFailure{"larger than these tests need"});
    }
    Decoded decoded{*header, {}, {}};
    decoded.rgb.resize(header->width * header->height * 3);
    decoded.mask.resize(header->width * header->height);
    std::vector<std::uint8_t> scratch(header->scratch_bytes);
    const auto done =
        decode_png(file, scratch.data(), decoded.rgb.data(), decoded.mask.data(), kNeverStopped);
    if (!done) {
        return tl::unexpected(done.error());
    }
    return decoded;
}

std::string encode(const PngPicture& picture, const std::vector<PngText>& texts = {}) {
    std::string file;
    const auto done = encode_png(
        picture,
        4,
        texts,
        [&file](const void* data, std::size_t size) {
            file.append(static_cast<const char*>(data), size);
            return true;
        },
        kNeverStopped
    );
    EXPECT_TRUE(done) << done.error().text;
    return file;
}

TEST(Png, EveryByteValueSurvivesEncodingAndDecoding) {
    std::vector<float> pixels(256 * 4);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = static_cast<float>((i * 7 + i / 256) % 256) / 255.0F;
    }
    const auto decoded = decode(encode({pixels.data(), 32, 8, 4}));
    ASSERT_TRUE(decoded);
    EXPECT_TRUE(decoded->header.has_mask);
    for (std::size_t i = 0; i < 256; ++i) {
        EXPECT_EQ(decoded->rgb[i * 3], pixels[i * 4]);
        EXPECT_EQ(decoded->mask[i], 1.0F - pixels[i * 4 + 3]);
    }
}

TEST(Png, ValuesOutsideAreClippedAndFractionsCutOff) {
    const std::vector<float> pixels = {
        -1.0F,
        2.0F,
        std::numeric_limits<float>::quiet_NaN(),
        0.999F,
        0.5F,
        std::numeric_limits<float>::infinity()
    };
    const auto decoded = decode(encode({pixels.data(), 2, 1, 3}));
    ASSERT_TRUE(decoded);
    const std::vector<int> expected = {0, 255, 0, 254, 127, 255};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(decoded->rgb[i], static_cast<float>(expected[i]) / 255.0F) << i;
    }
}

TEST(Png, InterlacedPicturesEqualPlainOnes) {
    // The same 5 x 3 gray picture, interlaced by hand: seven passes over the values 16 * (y * 5 +
    // x).
    const int width = 5;
    const int height = 3;
    const int starts[7][4] = {
        {0, 0, 8, 8},
        {4, 0, 8, 8},
        {0, 4, 4, 8},
        {2, 0, 4, 4},
        {0, 2, 2, 4},
        {1, 0, 2, 2},
        {0, 1, 1, 2}
    };
    std::string raw;
    for (const auto& [x0, y0, dx, dy] : starts) {
        for (int y = y0; y < height; y += dy) {
            std::string row;
            for (int x = x0; x < width; x += dx) {
                row += static_cast<char>(16 * (y * width + x));
            }
            raw += row.empty() ? "" : std::string(1, '\0') + row;
        }
    }
    std::string packed(compressBound(raw.size()), '\0');
    uLongf size = packed.size();
    compress(
        reinterpret_cast<Bytef*>(packed.data()),
        &size,
        reinterpret_cast<const Bytef*>(raw.data()),
        raw.size()
    );
    packed.resize(size);
    std::string file = header_bytes(width, height, 8, 0);
    file[28] = 1;  // interlace method
    const std::string header = file.substr(16, 13);
    file = file.substr(0, 8) + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
    const auto decoded = decode(file);
    ASSERT_TRUE(decoded) << decoded.error().text;
    EXPECT_GT(decoded->header.scratch_bytes, 0U);
    for (int i = 0; i < width * height; ++i) {
        EXPECT_FLOAT_EQ(
            decoded->rgb[static_cast<std::size_t>(i) * 3],
            static_cast<float>(i * 16 * 256) / 65535.0F
        );
    }
}

TEST(Png, HugeDimensionsAreRefusedBeforeAnyMemoryIsTaken) {
    for (const auto& [width, height] :
         {std::pair{16385U, 1U}, {1U, 16385U}, {0x7FFFFFFFU, 0x7FFFFFFFU}}) {
        const auto header = read_png_header(
            header_bytes(width, height, 8, 2) + chunk("IDAT", "") + chunk("IEND", "")
        );
        ASSERT_FALSE(header);
        EXPECT_THAT(header.error().text, HasSubstr("16384"));
    }
}

TEST(Png, NonsenseHeadersAreRefused) {
    EXPECT_FALSE(decode(""));
    EXPECT_FALSE(decode("\x89PNG"));
    EXPECT_FALSE(decode(std::string("\x89PNG\r\n\x1a\n", 8)));
    EXPECT_FALSE(decode(header_bytes(0, 1, 8, 2) + chunk("IDAT", "") + chunk("IEND", "")));
    EXPECT_FALSE(decode(header_bytes(1, 1, 3, 2) + chunk("IDAT", "") + chunk("IEND", "")));
    EXPECT_FALSE(decode(header_bytes(1, 1, 8, 3) + chunk("IDAT", "") + chunk("IEND", ""))
    );  // no palette
    EXPECT_THAT(decode("GIF89a").error().text, HasSubstr("not a PNG"));
}

TEST(Png, EveryTruncationIsRefusedOrComplete) {
    const std::string file = slurp(kGolden / "inputs/palette_trans.png");
    const auto whole = decode(file);
    ASSERT_TRUE(whole);
    int complete = 0;
    for (std::size_t length = 0; length < file.size(); ++length) {
        const auto decoded = decode(std::string_view(file).substr(0, length));
        if (decoded) {
            ++complete;
            EXPECT_EQ(decoded->rgb, whole->rgb) << length;
            EXPECT_EQ(decoded->mask, whole->mask) << length;
        }
    }
    EXPECT_LT(complete, 20);  // only what follows the last pixel may be missing
}

TEST(Png, DamagedFilesNeverCrash) {
    std::mt19937 random(7);
    for (const char* name : {"rgba16.png", "palette.png", "la.png", "bit1.png"}) {
        const std::string good = slurp(kGolden / "inputs" / name);
        for (int round = 0; round < 200; ++round) {
            std::string file = good;
            for (int k = 0; k < 3; ++k) {
                file[random() % file.size()] = static_cast<char>(random());
            }
            (void)decode(file);
        }
    }
}

TEST(Png, AStoppedEncoderReportsAFailure) {
    const std::vector<float> pixels(64 * 64 * 3);
    const FileSink sink = [](const void*, std::size_t) { return true; };
    EXPECT_FALSE(encode_png({pixels.data(), 64, 64, 3}, 1, {}, sink, [] { return true; }));
}

TEST(Png, ASinkThatFailsEndsTheEncoding) {
    const std::vector<float> pixels(64 * 64 * 3);
    EXPECT_FALSE(encode_png(
        {pixels.data(), 64, 64, 3},
        1,
        {},
        [](const void*, std::size_t) { return false; },
        kNeverStopped
    ));
}

// A text that unpacks to far more than the file has.
std::string packed_text(std::size_t bytes) {
    const std::string text(bytes, 'x');
    std::string packed(compressBound(static_cast<uLong>(bytes)), '\0');
    auto size = static_cast<uLongf>(packed.size());
    compress(
        reinterpret_cast<Bytef*>(packed.data()),
        &size,
        reinterpret_cast<const Bytef*>(text.data()),
        static_cast<uLong>(bytes)
    );
    packed.resize(size);
    return chunk("zTXt", std::string("key\0\0", 5) + packed);
}

TEST(Png, TextsThatUnpackToTooMuchAreRefusedByEveryReader) {
    const float pixel[] = {0.1F, 0.2F, 0.3F};
    for (const int bit_depth : {8, 16}) {
        std::string file;
        const FileSink sink = [&file](const void* data, std::size_t size) {
            file.append(static_cast<const char*>(data), size);
            return true;
        };
        ASSERT_TRUE(encode_png({pixel, 1, 1, 3, bit_depth}, 1, {}, sink, kNeverStopped));
        std::string bomb = file;
        for (int i = 0; i < 30; ++i) {
            bomb.insert(33, packed_text(4'000'000));
        }
        ASSERT_LT(bomb.size(), 500'000U);
        std::string modest = file;
        modest.insert(33, packed_text(4'000'000));
        for (const auto& [picture, good] :
             {std::pair(file, true), std::pair(modest, true), std::pair(bomb, false)}) {
            EXPECT_EQ(bool(pictures::decode_rgba(picture, 100)), good);
            EXPECT_EQ(bool(pictures::open(picture, kNeverStopped)), good);
            EXPECT_EQ(bool(read_png_header(picture)), good);
        }
    }
}

// FFmpeg, which reads animations, would unpack all of them.
TEST(Png, TextsAreTakenOutBeforeFfmpegSeesThem) {
    const std::string file = slurp(kGolden / "inputs/anim_apng.png");
    EXPECT_EQ(pictures::without_texts(file), nullptr);
    std::string with_texts = file;
    for (const char* type : {"zTXt", "tEXt", "iTXt", "iCCP"}) {
        with_texts.insert(33, chunk(type, "anything"));
    }
    const auto without = pictures::without_texts(with_texts);
    ASSERT_NE(without, nullptr);
    EXPECT_EQ(*without, file);
    for (std::size_t size = 0; size < with_texts.size(); size += 7) {
        (void)pictures::without_texts(with_texts.substr(0, size));
    }
    EXPECT_TRUE(pictures::open(with_texts, kNeverStopped));
}

}  // namespace
}  // namespace comfyd::engine
