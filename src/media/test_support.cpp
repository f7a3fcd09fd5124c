#include "media/test_support.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "engine/pictures/apng.hpp"
#include "engine/pictures/encode.hpp"
#include "engine/pictures/exif.hpp"
#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/png.hpp"

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/mem.h>
}

namespace comfyd::media::test {
namespace {

namespace pictures = engine::pictures;
namespace ffmpeg = engine::ffmpeg;

std::string big_endian(std::uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(number >> shift & 0xFF);
    }
    return bytes;
}

std::string little_endian(std::uint32_t number, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
        bytes += static_cast<char>(number >> 8 * i & 0xFF);
    }
    return bytes;
}

std::string chunk(const std::string& type, const std::string& content) {
    const std::string named = type + content;
    const auto sum =
        ::crc32(0, reinterpret_cast<const Bytef*>(named.data()), static_cast<uInt>(named.size()));
    return big_endian(static_cast<std::uint32_t>(content.size())) + named +
           big_endian(static_cast<std::uint32_t>(sum));
}

std::string header_of(std::uint32_t width, std::uint32_t height, int interlace) {
    return std::string("\x89PNG\r\n\x1a\n", 8) +
           chunk(
               "IHDR",
               big_endian(width) + big_endian(height) +
                   std::string({8, 2, 0, 0, static_cast<char>(interlace)})
           );
}

// So many zeros, packed.
std::string packed_zeros(std::uint64_t count) {
    z_stream stream{};
    EXPECT_EQ(::deflateInit(&stream, 1), Z_OK);
    std::string packed;
    std::vector<Bytef> zeros(1 << 20);
    std::array<Bytef, 1 << 16> out{};
    for (int status = Z_OK; status != Z_STREAM_END;) {
        if (stream.avail_in == 0 && count > 0) {
            stream.next_in = zeros.data();
            stream.avail_in = static_cast<uInt>(std::min<std::uint64_t>(count, zeros.size()));
            count -= stream.avail_in;
        }
        stream.next_out = out.data();
        stream.avail_out = static_cast<uInt>(out.size());
        status = ::deflate(&stream, count == 0 ? Z_FINISH : Z_NO_FLUSH);
        packed.append(reinterpret_cast<const char*>(out.data()), out.size() - stream.avail_out);
    }
    ::deflateEnd(&stream);
    return packed;
}

pictures::Pixels pixels_of(const Bitmap& picture) {
    return {picture.rgba.data(), picture.width, picture.height, 4};
}

// One stream of a file that is being made.
struct Track {
    AVStream* stream = nullptr;
    ffmpeg::Codec codec;

    void write(AVFormatContext* muxer, const AVFrame* frame) {
        EXPECT_GE(avcodec_send_frame(codec.get(), frame), 0);
        const ffmpeg::Packet packet(av_packet_alloc());
        while (avcodec_receive_packet(codec.get(), packet.get()) >= 0) {
            packet->stream_index = stream->index;
            packet->duration = std::max<std::int64_t>(packet->duration, 1);
            av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
            EXPECT_GE(av_interleaved_write_frame(muxer, packet.get()), 0);
        }
    }
};

Track add_track(AVFormatContext* muxer, const char* encoder, const auto& configure) {
    const AVCodec* known = avcodec_find_encoder_by_name(encoder);
    Track track{avformat_new_stream(muxer, nullptr), ffmpeg::Codec(avcodec_alloc_context3(known))};
    configure(*track.codec);
    if ((muxer->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
        track.codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    }
    EXPECT_GE(avcodec_open2(track.codec.get(), known, nullptr), 0);
    EXPECT_GE(avcodec_parameters_from_context(track.stream->codecpar, track.codec.get()), 0);
    track.stream->time_base = track.codec->time_base;
    return track;
}

void write_pictures(AVFormatContext* muxer, Track& track, const Video& what) {
    for (int i = 0; i < what.frames; ++i) {
        const ffmpeg::Frame frame(av_frame_alloc());
        frame->format = AV_PIX_FMT_YUV420P;
        frame->width = what.width;
        frame->height = what.height;
        EXPECT_GE(av_frame_get_buffer(frame.get(), 0), 0);
        const bool is_black = i < what.black_frames;
        for (int plane = 0; plane < 3; ++plane) {
            const int rows = plane == 0 ? what.height : (what.height + 1) / 2;
            const int value = plane == 0 ? (is_black ? 16 : 180) : (is_black ? 128 : 100 + plane);
            std::memset(
                frame->data[plane],
                value,
                static_cast<std::size_t>(frame->linesize[plane]) * static_cast<std::size_t>(rows)
            );
        }
        frame->pts = i;
        track.write(muxer, frame.get());
    }
    track.write(muxer, nullptr);
}

void write_sound(AVFormatContext* muxer, Track& track, double seconds) {
    const int rate = track.codec->sample_rate;
    const int piece = track.codec->frame_size > 0 ? track.codec->frame_size : 1024;
    for (int at = 0; at < static_cast<int>(rate * seconds); at += piece) {
        const ffmpeg::Frame frame(av_frame_alloc());
        frame->format = track.codec->sample_fmt;
        frame->nb_samples = piece;
        frame->sample_rate = rate;
        EXPECT_GE(av_channel_layout_copy(&frame->ch_layout, &track.codec->ch_layout), 0);
        EXPECT_GE(av_frame_get_buffer(frame.get(), 0), 0);
        for (int plane = 0; plane < AV_NUM_DATA_POINTERS && frame->data[plane] != nullptr;
             ++plane) {
            std::memset(frame->data[plane], 0, static_cast<std::size_t>(frame->linesize[0]));
        }
        frame->pts = at;
        track.write(muxer, frame.get());
    }
    track.write(muxer, nullptr);
}

}  // namespace

Bitmap gradient(std::size_t width, std::size_t height, bool has_alpha) {
    Bitmap picture{.width = width, .height = height, .rgba = {}, .has_alpha = has_alpha};
    const auto part = [](std::size_t at, std::size_t length) {
        return static_cast<std::uint8_t>(length < 2 ? 128 : at * 255 / (length - 1));
    };
    for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t x = 0; x < width; ++x) {
            picture.rgba.push_back(part(x, width));
            picture.rgba.push_back(part(y, height));
            picture.rgba.push_back(static_cast<std::uint8_t>(128 + part(x, width) / 4));
            picture.rgba.push_back(has_alpha ? part(x, width) : 255);
        }
    }
    return picture;
}

std::string png(const Bitmap& picture, const Texts& texts) {
    std::vector<engine::PngText> kept;
    for (const auto& [name, text] : texts) {
        kept.push_back({name, text});
    }
    std::vector<std::uint8_t> pixels;
    const std::size_t channels = picture.has_alpha ? 4 : 3;
    for (std::size_t i = 0; i < picture.rgba.size(); i += 4) {
        pixels.insert(
            pixels.end(),
            picture.rgba.begin() + static_cast<std::ptrdiff_t>(i),
            picture.rgba.begin() + static_cast<std::ptrdiff_t>(i + channels)
        );
    }
    return *engine::encode_png(
        engine::PngBytes{pixels.data(), picture.width, picture.height, channels}, 1, kept
    );
}

std::string jpeg(const Bitmap& picture) {
    return *pictures::encode_jpeg(pixels_of(picture), 95);
}

std::string turned_jpeg(const Bitmap& picture, int orientation) {
    // As cameras write it: the bytes of numbers in the other order, another tag before it.
    std::string tiff("II\x2A\0\x08\0\0\0\x02\0", 10);
    tiff += std::string("\x00\x01\x04\0\x01\0\0\0\x10\0\0\0", 12);
    tiff += std::string("\x12\x01\x03\0\x01\0\0\0", 8) + static_cast<char>(orientation) +
            std::string(3 + 4, '\0');
    const std::string block = std::string("Exif\0\0", 6) + tiff;
    std::string file = jpeg(picture);
    return file.insert(
        2, std::string("\xFF\xE1\0", 3) + static_cast<char>(block.size() + 2) + block
    );
}

std::string webp(const Bitmap& picture, const Texts& texts) {
    pictures::WebpOptions options;
    options.lossless = true;
    options.method = 0;
    return *pictures::encode_webp(
        pixels_of(picture),
        options,
        [] { return false; },
        texts.empty() ? std::string() : pictures::make_exif(texts)
    );
}

namespace {

constexpr int kShownMs = 100;
constexpr int kLastShownMs = 500;

// The pictures of which animations are made here.
class Growing {
public:
    Growing(std::size_t width, std::size_t height, std::size_t frames, bool has_alpha)
        : picture_(gradient(width, height, has_alpha)), frames_(frames) {}

    pictures::Outcome<std::optional<pictures::TimedPixels>> next() {
        if (index_ == frames_) {
            return std::nullopt;
        }
        for (std::size_t i = 2; i < picture_.rgba.size(); i += 4) {
            picture_.rgba[i] = static_cast<std::uint8_t>(index_ * 40);
        }
        ++index_;
        return pictures::TimedPixels{
            pixels_of(picture_), index_ == frames_ ? kLastShownMs : kShownMs
        };
    }

private:
    Bitmap picture_;
    std::size_t frames_;
    std::size_t index_ = 0;
};

}  // namespace

std::string animated_webp(
    std::size_t width, std::size_t height, std::size_t frames, bool has_alpha
) {
    Growing growing(width, height, frames, has_alpha);
    return *pictures::encode_webp_animation(
        [&growing] { return growing.next(); }, 3, {}, "", [] { return false; }
    );
}

std::string animated_png(
    std::size_t width, std::size_t height, std::size_t frames, const Texts& texts
) {
    std::vector<pictures::PngChunk> chunks;
    for (const auto& [keyword, text] : texts) {
        chunks.emplace_back("comf", keyword + '\0' + text);
    }
    Growing growing(width, height, frames, false);
    const auto next = [&growing]() -> pictures::Outcome<std::optional<pictures::ApngFrame>> {
        const auto frame = *growing.next();
        if (!frame) {
            return std::nullopt;
        }
        const pictures::Pixels& pixels = frame->pixels;
        return pictures::ApngFrame{
            *engine::encode_png(
                engine::PngBytes{pixels.data, pixels.width, pixels.height, pixels.channels}, 1, {}
            ),
            frame->duration_ms
        };
    };
    return *pictures::assemble_apng(next, 3, chunks);
}

std::string gif(std::uint16_t width, std::uint16_t height, std::size_t frames) {
    std::string file = "GIF89a" + little_endian(width, 2) + little_endian(height, 2) +
                       std::string("\x80\0\0", 3) + std::string("\0\0\0\xff\xff\xff", 6);
    for (std::size_t i = 0; i < frames; ++i) {
        file += std::string("\x21\xF9\x04\0\x0A\0\0\0", 8);
        file += std::string("\x2C\0\0\0\0\1\0\1\0\0", 10);
        file += i % 2 == 0 ? std::string("\x02\x02\x44\x01\0", 5)   // black
                           : std::string("\x02\x02\x4C\x01\0", 5);  // white
    }
    return file + ";";
}

std::string flat_png(std::uint32_t width, std::uint32_t height, int interlace) {
    // Interlaced ones have more rows, each with a byte of its own: too many zeros do no harm.
    const std::uint64_t rows = (interlace == 0 ? 1ULL : 2ULL) * height;
    const std::uint64_t bytes = std::uint64_t{width} * 3 * height + rows + 64;
    return header_of(width, height, interlace) + chunk("IDAT", packed_zeros(bytes)) +
           chunk("IEND", "");
}

std::string png_header(std::uint32_t width, std::uint32_t height) {
    return header_of(width, height, 0) + chunk("IDAT", packed_zeros(100)) + chunk("IEND", "");
}

std::string video(const Video& what) {
    ffmpeg::be_quiet();
    AVFormatContext* muxer = nullptr;
    EXPECT_GE(avformat_alloc_output_context2(&muxer, nullptr, what.muxer, nullptr), 0);
    EXPECT_GE(avio_open_dyn_buf(&muxer->pb), 0);
    for (const auto& [name, text] : what.metadata) {
        av_dict_set(&muxer->metadata, name.c_str(), text.c_str(), 0);
    }
    Track pictures_track = add_track(muxer, "mpeg4", [&what](AVCodecContext& codec) {
        codec.width = what.width;
        codec.height = what.height;
        codec.pix_fmt = AV_PIX_FMT_YUV420P;
        codec.time_base = {1, what.fps};
        codec.framerate = {what.fps, 1};
        codec.gop_size = 10;
        codec.thread_count = 1;
    });
    Track sound;
    if (what.has_sound) {
        sound = add_track(muxer, "aac", [](AVCodecContext& codec) {
            codec.sample_rate = 44'100;
            codec.sample_fmt = AV_SAMPLE_FMT_FLTP;
            av_channel_layout_default(&codec.ch_layout, 2);
            codec.time_base = {1, 44'100};
        });
    }
    AVDictionary* options = nullptr;
    av_dict_set(&options, "movflags", "use_metadata_tags", 0);
    EXPECT_GE(avformat_write_header(muxer, &options), 0);
    av_dict_free(&options);
    write_pictures(muxer, pictures_track, what);
    if (what.has_sound) {
        write_sound(muxer, sound, static_cast<double>(what.frames) / what.fps);
    }
    EXPECT_GE(av_write_trailer(muxer), 0);
    std::uint8_t* bytes = nullptr;
    const int size = avio_close_dyn_buf(muxer->pb, &bytes);
    std::string file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    av_free(bytes);
    avformat_free_context(muxer);
    return file;
}

std::string wav(int sample_rate, double seconds) {
    const auto bytes = static_cast<std::uint32_t>(sample_rate * seconds) * 2;
    const auto rate = static_cast<std::uint32_t>(sample_rate);
    return "RIFF" + little_endian(36 + bytes, 4) + "WAVEfmt " + little_endian(16, 4) +
           little_endian(1, 2) + little_endian(1, 2) + little_endian(rate, 4) +
           little_endian(rate * 2, 4) + little_endian(2, 2) + little_endian(16, 2) + "data" +
           little_endian(bytes, 4) + std::string(bytes, '\0');
}

int largest_difference(const Bitmap& a, const Bitmap& b) {
    EXPECT_EQ(a.rgba.size(), b.rgba.size());
    int largest = 0;
    for (std::size_t i = 0; i + 3 < std::min(a.rgba.size(), b.rgba.size()); i += 4) {
        const bool is_seen = a.rgba[i + 3] > 8 || b.rgba[i + 3] > 8;
        for (std::size_t c = i; is_seen && c < i + 4; ++c) {
            largest = std::max(largest, std::abs(a.rgba[c] - b.rgba[c]));
        }
    }
    return largest;
}

double mean_difference(const Bitmap& a, const Bitmap& b) {
    EXPECT_EQ(a.rgba.size(), b.rgba.size());
    double sum = 0;
    double count = 1;
    for (std::size_t i = 0; i + 3 < std::min(a.rgba.size(), b.rgba.size()); i += 4) {
        for (std::size_t c = i; a.rgba[i + 3] > 8 && c < i + 4; ++c) {
            sum += std::abs(a.rgba[c] - b.rgba[c]);
            ++count;
        }
    }
    return sum / count;
}

std::vector<pictures::Shown> all_decoded(std::string_view file) {
    const auto animation = *pictures::open_animation(file, 1'000'000);
    std::vector<pictures::Shown> all;
    for (auto shown = *animation->next(); shown; shown = *animation->next()) {
        all.push_back(std::move(*shown));
    }
    return all;
}

Bitmap decoded(std::string_view file) {
    auto picture = pictures::decode_rgba(file, 1 << 28);
    EXPECT_TRUE(picture) << (picture ? "" : picture.error().text);
    return picture ? std::move(*picture) : Bitmap{};
}

}  // namespace comfyd::media::test
