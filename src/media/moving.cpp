#include "media/moving.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/frame_converter.hpp"
#include "media/turn.hpp"

extern "C" {
#include <libavutil/display.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
}

namespace comfyd::media {
namespace {

namespace ffmpeg = engine::ffmpeg;
using engine::pictures::Bitmap;
using engine::pictures::Outcome;

// What ComfyUI and its custom nodes write. A decoder that nobody needs is one less to break.
constexpr const char* kDecoders =
    "h264,hevc,vp8,vp9,libvpx,libvpx-vp9,av1,libdav1d,libaom-av1,mpeg4,mjpeg,png,ffv1,prores,gif,"
    "aac,mp3,mp3float,flac,opus,libopus,vorbis,pcm_s16le,pcm_s24le,pcm_s32le,pcm_f32le,pcm_u8";
constexpr std::int64_t kProbeBytes = 4 << 20;
constexpr int kKeyFramesMax = 8;  // that are looked at for one that shows something
constexpr int kPacketsMax = 20'000;
constexpr double kPosterSecond = 1;
constexpr double kPosterPart = 0.1;
constexpr double kNearBlack = 18;  // of 255, on average

tl::unexpected<engine::pictures::Failure> refuse(std::string text) {
    return tl::unexpected(engine::pictures::Failure{std::move(text)});
}

const char* demuxer_of(std::string_view format) {
    static constexpr std::array<std::pair<std::string_view, const char*>, 9> kDemuxers{{
        {"mp4", "mov"},
        {"m4a", "mov"},
        {"avif", "mov"},
        {"matroska", "matroska"},
        {"avi", "avi"},
        {"flac", "flac"},
        {"ogg", "ogg"},
        {"mp3", "mp3"},
        {"wav", "wav"},
    }};
    for (const auto& [known, demuxer] : kDemuxers) {
        if (known == format) {
            return demuxer;
        }
    }
    return nullptr;
}

Outcome<std::unique_ptr<ffmpeg::Input>> open(std::string_view file, const Facts& facts) {
    const char* demuxer = demuxer_of(facts.format);
    if (demuxer == nullptr) {
        return refuse("it is in no format that can be looked into");
    }
    auto input = ffmpeg::Input::try_open(file, demuxer);
    if (!input) {
        return refuse("its data is damaged");
    }
    AVFormatContext* format = input->get();
    format->codec_whitelist = av_strdup(kDecoders);
    format->probesize = kProbeBytes;
    if (avformat_find_stream_info(format, nullptr) < 0) {
        return refuse("its data is damaged");
    }
    return input;
}

// How far the file asks to be turned: 0 to 3 quarters, clockwise.
int quarters(AVStream* stream) {
    std::size_t size = 0;
    const std::uint8_t* matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    if (matrix == nullptr || size < 9 * sizeof(std::int32_t)) {
        return 0;
    }
    std::array<std::int32_t, 9> values{};
    std::memcpy(values.data(), matrix, sizeof values);
    const double degrees = av_display_rotation_get(values.data());
    if (std::isnan(degrees)) {
        return 0;
    }
    const int turns = static_cast<int>(std::lround(-degrees / 90));
    return ((turns % 4) + 4) % 4;
}

bool has_workflow(AVFormatContext* format) {
    const auto has = [format](const char* name) {
        return av_dict_get(format->metadata, name, nullptr, 0) != nullptr;
    };
    const AVDictionaryEntry* comment = av_dict_get(format->metadata, "comment", nullptr, 0);
    return has("workflow") || has("prompt") ||
           (comment != nullptr &&
            std::string_view(comment->value).find("\"workflow\"") != std::string_view::npos);
}

bool has_alpha(const AVStream& stream) {
    const AVPixFmtDescriptor* pixels =
        av_pix_fmt_desc_get(static_cast<AVPixelFormat>(stream.codecpar->format));
    const AVDictionaryEntry* mode = av_dict_get(stream.metadata, "alpha_mode", nullptr, 0);
    return (pixels != nullptr && (pixels->flags & AV_PIX_FMT_FLAG_ALPHA) != 0) ||
           (mode != nullptr && std::string_view(mode->value) == "1");
}

void note_video(AVStream* stream, Facts& facts) {
    const AVCodecParameters& parameters = *stream->codecpar;
    facts.kind = Kind::video;
    facts.codec = avcodec_get_name(parameters.codec_id);
    auto width = static_cast<std::uint32_t>(std::max(parameters.width, 0));
    auto height = static_cast<std::uint32_t>(std::max(parameters.height, 0));
    if (quarters(stream) % 2 == 1) {
        std::swap(width, height);
    }
    facts.width = width;
    facts.height = height;
    facts.has_alpha = has_alpha(*stream);
    const AVRational rate =
        stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
    if (rate.num > 0 && rate.den > 0) {
        facts.fps = av_q2d(rate);
    }
    if (stream->nb_frames > 0) {
        facts.frames = static_cast<std::uint64_t>(stream->nb_frames);
    } else if (facts.fps && facts.duration_s) {
        facts.frames = static_cast<std::uint64_t>(std::llround(*facts.fps * *facts.duration_s));
    }
}

void note_sound(const AVStream& stream, Facts& facts) {
    const AVCodecParameters& parameters = *stream.codecpar;
    const char* codec = avcodec_get_name(parameters.codec_id);
    (facts.kind == Kind::video ? facts.audio_codec : facts.codec) = codec;
    if (parameters.sample_rate > 0) {
        facts.sample_rate = parameters.sample_rate;
    }
    if (parameters.ch_layout.nb_channels > 0) {
        facts.channels = parameters.ch_layout.nb_channels;
    }
}

Bitmap to_bitmap(const AVFrame& rgba, bool has_alpha) {
    Bitmap bitmap{
        .width = static_cast<std::size_t>(rgba.width),
        .height = static_cast<std::size_t>(rgba.height),
        .rgba = {},
        .has_alpha = has_alpha
    };
    bitmap.rgba.reserve(bitmap.width * bitmap.height * 4);
    for (int y = 0; y < rgba.height; ++y) {
        const std::uint8_t* row = rgba.data[0] + std::ptrdiff_t{y} * rgba.linesize[0];
        bitmap.rgba.insert(bitmap.rgba.end(), row, row + bitmap.width * 4);
    }
    return bitmap;
}

bool shows_something(const Bitmap& picture) {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    constexpr std::size_t kStep = 4 * 7;  // some of them say enough
    for (std::size_t i = 0; i + 2 < picture.rgba.size(); i += kStep) {
        sum += picture.rgba[i] + picture.rgba[i + 1] + picture.rgba[i + 2];
        count += 3;
    }
    return count != 0 && static_cast<double>(sum) / static_cast<double>(count) > kNearBlack;
}

// The pictures of one stream of a file.
class Pictures {
public:
    static Outcome<Pictures> open(ffmpeg::Input& input, int index, std::size_t pixels_max) {
        const AVCodecParameters* parameters = input.get()->streams[index]->codecpar;
        const AVCodec* decoder = avcodec_find_decoder(parameters->codec_id);
        if (decoder == nullptr || !is_known(decoder->name)) {
            return refuse("its pictures are in a format that is not decoded here");
        }
        Pictures pictures;
        pictures.format_ = input.get();
        pictures.index_ = index;
        pictures.codec_.reset(avcodec_alloc_context3(decoder));
        pictures.frame_.reset(av_frame_alloc());
        pictures.packet_.reset(av_packet_alloc());
        if (!pictures.codec_ || !pictures.frame_ || !pictures.packet_ ||
            avcodec_parameters_to_context(pictures.codec_.get(), parameters) < 0) {
            return refuse("there is no memory for a picture of it");
        }
        AVCodecContext& codec = *pictures.codec_;
        codec.thread_count = 1;
        codec.skip_frame = AVDISCARD_NONKEY;
        codec.max_pixels = static_cast<std::int64_t>(pixels_max);
        if (const int error = avcodec_open2(&codec, decoder, nullptr); error < 0) {
            return refuse("its decoder does not start: " + ffmpeg::error_text(error));
        }
        return pictures;
    }

    void seek(double second) {
        const AVRational base = format_->streams[index_]->time_base;
        const auto at = static_cast<std::int64_t>(second / av_q2d(base));
        if (base.num > 0) {
            av_seek_frame(format_, index_, at, AVSEEK_FLAG_BACKWARD);
            avcodec_flush_buffers(codec_.get());
            ended_ = false;
        }
    }

    // nullptr: there is none any more.
    const AVFrame* next(const std::function<bool()>& stopped) {
        while (!stopped()) {
            av_frame_unref(frame_.get());
            const int got = avcodec_receive_frame(codec_.get(), frame_.get());
            if (got == 0 && frame_->width > 0 && frame_->height > 0) {
                return frame_.get();
            }
            if (got == AVERROR_EOF || ended_ || ++packets_ > kPacketsMax) {
                return nullptr;
            }
            if (av_read_frame(format_, packet_.get()) < 0) {
                ended_ = true;
                avcodec_send_packet(codec_.get(), nullptr);
                continue;
            }
            if (packet_->stream_index == index_) {
                avcodec_send_packet(codec_.get(), packet_.get());  // damaged ones are left out
            }
            av_packet_unref(packet_.get());
        }
        return nullptr;
    }

private:
    static bool is_known(std::string_view name) {
        const std::string_view known(kDecoders);
        for (std::size_t at = 0; at < known.size();) {
            const std::size_t end = std::min(known.find(',', at), known.size());
            if (known.substr(at, end - at) == name) {
                return true;
            }
            at = end + 1;
        }
        return false;
    }

    AVFormatContext* format_ = nullptr;
    int index_ = 0;
    ffmpeg::Codec codec_;
    ffmpeg::Frame frame_;
    ffmpeg::Packet packet_;
    bool ended_ = false;
    int packets_ = 0;
};

}  // namespace

Outcome<Facts> inspect_moving(std::string_view file, Facts facts) {
    auto input = open(file, facts);
    if (!input) {
        return tl::unexpected(input.error());
    }
    AVFormatContext* format = (*input)->get();
    if (format->duration > 0) {
        facts.duration_s = static_cast<double>(format->duration) / AV_TIME_BASE;
    }
    facts.has_workflow = has_workflow(format);
    const auto stream_of = [format](AVMediaType type) -> AVStream* {
        const int index = av_find_best_stream(format, type, -1, -1, nullptr, 0);
        return index < 0 ? nullptr : format->streams[index];
    };
    AVStream* pictures = stream_of(AVMEDIA_TYPE_VIDEO);
    AVStream* sound = stream_of(AVMEDIA_TYPE_AUDIO);
    // The cover of an album makes no video of it.
    const bool is_cover =
        pictures != nullptr && (pictures->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
    if (pictures != nullptr && !is_cover) {
        note_video(pictures, facts);
    } else if (sound != nullptr) {
        facts.kind = Kind::audio;
    }
    if (sound != nullptr) {
        note_sound(*sound, facts);
    }
    if (facts.format == "matroska" && file.substr(0, 64).find("webm") != std::string_view::npos) {
        facts.format = "webm";
    }
    return facts;
}

Outcome<Bitmap> poster_of(
    std::string_view file,
    const Facts& facts,
    std::size_t pixels_max,
    const std::function<bool()>& stopped
) {
    Facts headers = facts;
    headers.format = facts.format == "webm" ? "matroska" : facts.format;
    auto input = open(file, headers);
    if (!input) {
        return tl::unexpected(input.error());
    }
    AVFormatContext* format = (*input)->get();
    const int index = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (index < 0) {
        return refuse("it has no pictures");
    }
    auto pictures = Pictures::open(**input, index, pixels_max);
    if (!pictures) {
        return tl::unexpected(pictures.error());
    }
    std::unique_ptr<Bitmap> found;
    const double duration_s = facts.duration_s.value_or(0);
    for (const double second : {std::min(kPosterSecond, duration_s * kPosterPart), 0.0}) {
        pictures->seek(second);
        for (int looked = 0; looked < kKeyFramesMax; ++looked) {
            const AVFrame* frame = pictures->next(stopped);
            if (frame == nullptr) {
                break;
            }
            if (static_cast<std::size_t>(frame->width) * static_cast<std::size_t>(frame->height) >
                pixels_max) {
                return refuse(
                    "its pictures have more than the " + std::to_string(pixels_max) +
                    " pixels that are decoded"
                );
            }
            const ffmpeg::Frame rgba = engine::pictures::in_format(*frame, AV_PIX_FMT_RGBA);
            if (!rgba) {
                return refuse("its pixels cannot be converted");
            }
            auto picture =
                std::make_unique<Bitmap>(to_bitmap(*rgba, facts.has_alpha.value_or(false)));
            const bool is_good = shows_something(*picture);
            if (is_good || !found) {
                found = std::move(picture);
            }
            if (is_good) {
                return turn(
                    std::move(*found), orientation_of_quarters(quarters(format->streams[index]))
                );
            }
        }
        if (found) {
            return turn(
                std::move(*found), orientation_of_quarters(quarters(format->streams[index]))
            );
        }
    }
    return refuse(stopped() ? "it takes too long to read" : "none of its pictures can be decoded");
}

}  // namespace comfyd::media
