// Everything that FFmpeg decodes: JPEG, GIF, animated PNG, still WebP, BMP, TIFF and deep PNG.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/formats.hpp"
#include "engine/pictures/frame_converter.hpp"
#include "engine/pictures/png_chunks.hpp"

namespace comfyd::engine::pictures {
namespace {

AVCodecID codec_of(Format format) {
    switch (format) {
        case Format::png:
            return AV_CODEC_ID_PNG;
        case Format::apng:
            return AV_CODEC_ID_APNG;
        case Format::jpeg:
            return AV_CODEC_ID_MJPEG;
        case Format::gif:
            return AV_CODEC_ID_GIF;
        case Format::webp:
        case Format::animated_webp:
            return AV_CODEC_ID_WEBP;
        case Format::bmp:
            return AV_CODEC_ID_BMP;
        case Format::tiff:
            return AV_CODEC_ID_TIFF;
    }
    return AV_CODEC_ID_NONE;
}

// nullptr for formats whose file is one packet.
const char* demuxer_of(Format format) {
    return format == Format::gif ? "gif" : format == Format::apng ? "apng" : nullptr;
}

// Where the packets of a file come from.
class Packets {
public:
    static std::optional<Packets> open(std::string_view file, Format format) {
        Packets packets;
        if (const char* demuxer = demuxer_of(format)) {
            packets.input_ = ffmpeg::Input::try_open(file, demuxer);
            if (!packets.input_ || packets.input_->get()->nb_streams == 0) {
                return std::nullopt;
            }
        }
        packets.file_ = file;
        return packets;
    }

    const AVCodecParameters* parameters() const {
        return input_ ? input_->get()->streams[0]->codecpar : nullptr;
    }

    // In which its times are told.
    AVRational time_base() const {
        return input_ ? input_->get()->streams[0]->time_base : AVRational{1, 1};
    }

    // False at the end of the file, or where it is damaged.
    bool next(AVPacket* packet) {
        if (input_) {
            return av_read_frame(input_->get(), packet) >= 0;
        }
        constexpr auto kMax = static_cast<std::size_t>(
            std::numeric_limits<int>::max() - AV_INPUT_BUFFER_PADDING_SIZE
        );
        if (std::exchange(done_, true) || file_.size() > kMax ||
            av_new_packet(packet, static_cast<int>(file_.size())) < 0) {
            return false;
        }
        std::copy(file_.begin(), file_.end(), packet->data);
        return true;
    }

private:
    std::unique_ptr<ffmpeg::Input> input_;
    std::string_view file_;
    bool done_ = false;
};

Outcome<std::size_t> count_frames(std::string_view file, Format format) {
    if (demuxer_of(format) == nullptr) {
        return 1;
    }
    auto packets = Packets::open(file, format);
    const ffmpeg::Packet packet(av_packet_alloc());
    std::size_t count = 0;
    while (packets && packet && packets->next(packet.get())) {
        av_packet_unref(packet.get());
        if (++count > kFramesMax) {
            return refuse(
                "it has more than " + std::to_string(kFramesMax) + " frames, which is the limit"
            );
        }
    }
    return std::max<std::size_t>(count, 1);
}

// The frames of a file, one after the other.
class Frames {
public:
    static Outcome<Frames> open(std::string_view file, Format format, std::uint64_t pixels_max) {
        ffmpeg::be_quiet();
        auto packets = Packets::open(file, format);
        const AVCodec* decoder = avcodec_find_decoder(codec_of(format));
        if (decoder == nullptr) {
            return refuse("this FFmpeg has no decoder for it");
        }
        ffmpeg::Codec codec(avcodec_alloc_context3(decoder));
        ffmpeg::Frame frame(av_frame_alloc());
        ffmpeg::Packet packet(av_packet_alloc());
        if (!packets || !codec || !frame || !packet) {
            return refuse("its data is damaged");
        }
        if (const AVCodecParameters* parameters = packets->parameters()) {
            if (avcodec_parameters_to_context(codec.get(), parameters) < 0) {
                return refuse("its data is damaged");
            }
        }
        codec->thread_count = 1;
        // FFmpeg counts the pixels that it adds at the edges too; the callers look at the real
        // ones.
        constexpr std::uint64_t kEdges = 1 << 20;
        codec->max_pixels = static_cast<std::int64_t>(pixels_max + pixels_max / 8 + kEdges);
        if (const int error = avcodec_open2(codec.get(), decoder, nullptr); error < 0) {
            return refuse("its decoder does not start: " + ffmpeg::error_text(error));
        }
        return Frames(std::move(*packets), std::move(codec), std::move(frame), std::move(packet));
    }

    // nullptr after the last; frames that do not decode are left out, as in ComfyUI.
    const AVFrame* next() {
        while (true) {
            av_frame_unref(frame_.get());
            const int got = avcodec_receive_frame(codec_.get(), frame_.get());
            if (got == 0 && frame_->width > 0 && frame_->height > 0) {
                return frame_.get();
            }
            if (got == AVERROR_EOF || ended_) {
                return nullptr;
            }
            if (packets_.next(packet_.get())) {
                error_ = std::min(0, avcodec_send_packet(codec_.get(), packet_.get()));
                av_packet_unref(packet_.get());
            } else {
                ended_ = avcodec_send_packet(codec_.get(), nullptr) < 0;
            }
        }
    }

    AVRational time_base() const { return packets_.time_base(); }

    std::string why_none() const {
        return "its data is damaged" + (error_ < 0 ? ": " + ffmpeg::error_text(error_) : "");
    }

private:
    Frames(Packets packets, ffmpeg::Codec codec, ffmpeg::Frame frame, ffmpeg::Packet packet)
        : packets_(std::move(packets)),
          codec_(std::move(codec)),
          frame_(std::move(frame)),
          packet_(std::move(packet)) {}

    Packets packets_;
    ffmpeg::Codec codec_;
    ffmpeg::Frame frame_;
    ffmpeg::Packet packet_;
    bool ended_ = false;
    int error_ = 0;
};

class FfmpegReader : public Reader {
public:
    // `file`: which the frames are read from, where it is not the caller's.
    FfmpegReader(
        std::unique_ptr<const std::string> file,
        Frames frames,
        const AVFrame* first,
        std::size_t frames_max
    )
        : file_(std::move(file)), frames_(std::move(frames)), current_(first), converter_(*first) {
        facts_ = {
            .width = converter_.width(),
            .height = converter_.height(),
            .frames_max = frames_max,
            .has_alpha = converter_.has_alpha(),
            .scratch_bytes = converter_.scratch_bytes()
        };
    }

    const Facts& facts() const override { return facts_; }

    Outcome<bool> read(std::uint8_t* scratch, float* rgb, float* mask) override {
        if (current_ == nullptr) {
            return false;
        }
        const auto converted = converter_.convert(*current_, scratch, rgb, mask);
        if (!converted) {
            return tl::unexpected(converted.error());
        }
        current_ = frames_.next();
        return true;
    }

private:
    std::unique_ptr<const std::string> file_;
    Frames frames_;
    const AVFrame* current_;  // owned by frames_
    FrameConverter converter_;
    Facts facts_;
};

struct Begun {
    Frames frames;
    const AVFrame* first;  // owned by frames
};

// A file that has a picture, and not too large a one.
Outcome<Begun> begin_reading(std::string_view file, Format format, std::size_t pixels_max) {
    auto frames = Frames::open(file, format, pixels_max);
    if (!frames) {
        return tl::unexpected(frames.error());
    }
    const AVFrame* first = frames->next();
    if (first == nullptr) {
        return refuse(frames->why_none());
    }
    const auto fits = check_size(
        static_cast<std::uint64_t>(first->width),
        static_cast<std::uint64_t>(first->height),
        pixels_max
    );
    if (!fits) {
        return tl::unexpected(fits.error());
    }
    return Begun{std::move(*frames), first};
}

Outcome<Bitmap> to_bitmap(const AVFrame& frame, bool has_alpha) {
    const ffmpeg::Frame rgba = in_format(frame, AV_PIX_FMT_RGBA);
    if (!rgba) {
        return refuse("its pixels cannot be converted");
    }
    Bitmap bitmap{
        .width = static_cast<std::size_t>(rgba->width),
        .height = static_cast<std::size_t>(rgba->height),
        .rgba = {},
        .has_alpha = has_alpha
    };
    bitmap.rgba.reserve(bitmap.width * bitmap.height * 4);
    for (int y = 0; y < rgba->height; ++y) {
        const std::uint8_t* row = rgba->data[0] + std::ptrdiff_t{y} * rgba->linesize[0];
        bitmap.rgba.insert(bitmap.rgba.end(), row, row + bitmap.width * 4);
    }
    return bitmap;
}

class FfmpegAnimation : public Animation {
public:
    // `file`: as for a FfmpegReader.
    FfmpegAnimation(std::unique_ptr<const std::string> file, Begun begun, int loops)
        : file_(std::move(file)),
          frames_(std::move(begun.frames)),
          current_(begun.first),
          has_alpha_(FrameConverter(*begun.first).has_alpha()),
          loops_(loops) {}

    int loops() const override { return loops_; }

    Outcome<std::optional<Shown>> next() override {
        if (current_ == nullptr) {
            return std::nullopt;
        }
        auto picture = to_bitmap(*current_, has_alpha_);
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        // By the sum, so that what is lost of each millisecond does not add up.
        duration_ += std::max<std::int64_t>(ffmpeg::duration_of(*current_), 0);
        const std::int64_t end_ms = av_rescale_q(duration_, frames_.time_base(), {1, 1000});
        Shown shown{
            std::move(*picture),
            static_cast<int>(std::min<std::int64_t>(
                end_ms - std::exchange(time_ms_, end_ms), std::numeric_limits<int>::max()
            ))
        };
        current_ = frames_.next();
        return shown;
    }

private:
    std::unique_ptr<const std::string> file_;
    Frames frames_;
    const AVFrame* current_;  // owned by frames_
    bool has_alpha_;
    int loops_;
    std::int64_t duration_ = 0;  // so far, as the file counts
    std::int64_t time_ms_ = 0;
};

// Which FFmpeg does not tell. A GIF without the extension is shown once; with it, so many times
// more than once.
int loops_of(std::string_view file, Format format) {
    const auto byte = [file](std::size_t at) {
        return at < file.size() ? static_cast<unsigned char>(file[at]) : 0U;
    };
    if (format == Format::gif) {
        constexpr std::string_view kExtension("NETSCAPE2.0\x03\x01", 13);
        const std::size_t at = file.find(kExtension);
        if (at == std::string_view::npos) {
            return 1;
        }
        const std::size_t loops = at + kExtension.size();
        const unsigned more = byte(loops) | byte(loops + 1) << 8U;
        return more == 0 ? 0 : static_cast<int>(more + 1);
    }
    const std::size_t at = file.find("acTL");
    constexpr std::size_t kPlays = 8;  // behind the type and the number of pictures
    if (at == std::string_view::npos || byte(at + kPlays) != 0 || byte(at + kPlays + 1) != 0) {
        return 0;  // or so often that nobody sees the end
    }
    return static_cast<int>(byte(at + kPlays + 2) << 8U | byte(at + kPlays + 3));
}

}  // namespace

Outcome<std::unique_ptr<Reader>> open_ffmpeg_reader(
    std::string_view file, Format format, std::function<bool()> /*stopped*/
) {
    auto own = without_texts(file);
    file = own ? std::string_view(*own) : file;
    const auto count = count_frames(file, format);
    if (!count) {
        return tl::unexpected(count.error());
    }
    auto begun = begin_reading(file, format, pixels_max_of_any());
    if (!begun) {
        return tl::unexpected(begun.error());
    }
    return std::make_unique<FfmpegReader>(
        std::move(own), std::move(begun->frames), begun->first, *count
    );
}

Outcome<Bitmap> decode_rgba_ffmpeg(std::string_view file, Format format, std::size_t pixels_max) {
    auto begun = begin_reading(file, format, pixels_max);
    if (!begun) {
        return tl::unexpected(begun.error());
    }
    return to_bitmap(*begun->first, FrameConverter(*begun->first).has_alpha());
}

Outcome<std::unique_ptr<Animation>> open_ffmpeg_animation(
    std::string_view file, Format format, std::size_t pixels_max
) {
    const int loops = loops_of(file, format);
    auto own = without_texts(file);
    auto begun = begin_reading(own ? std::string_view(*own) : file, format, pixels_max);
    if (!begun) {
        return tl::unexpected(begun.error());
    }
    return std::make_unique<FfmpegAnimation>(std::move(own), std::move(*begun), loops);
}

}  // namespace comfyd::engine::pictures
