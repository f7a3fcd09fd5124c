#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/nodes/audio/codec.hpp"
#include "engine/pictures/ffmpeg.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kIoBuffer = 64 * 1024;
constexpr int kFrameSamples = 4096;

// A container that FFmpeg writes into memory.
class Output {
public:
    static std::unique_ptr<Output> try_make(const std::string& container) {
        std::unique_ptr<Output> output(new Output);
        auto* buffer = static_cast<unsigned char*>(av_malloc(kIoBuffer));
        output->io_ =
            buffer == nullptr
                ? nullptr
                : avio_alloc_context(
                      buffer, kIoBuffer, 1, output.get(), nullptr, &Output::write, &Output::seek
                  );
        if (output->io_ == nullptr) {
            av_free(buffer);
            return nullptr;
        }
        if (avformat_alloc_output_context2(&output->format_, nullptr, container.c_str(), nullptr) <
            0) {
            return nullptr;
        }
        output->format_->pb = output->io_;
        output->format_->flags |= AVFMT_FLAG_CUSTOM_IO;
        return output;
    }
    ~Output() {
        avformat_free_context(format_);
        if (io_ != nullptr) {
            av_freep(&io_->buffer);
            avio_context_free(&io_);
        }
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    AVFormatContext* get() { return format_; }
    std::string take() { return std::move(file_); }

private:
    Output() = default;

    // FFmpeg before 7 hands over bytes that are not const.
    template <class Byte>
    static int write(void* self, Byte* data, int size) {
        auto& output = *static_cast<Output*>(self);
        const auto count = static_cast<std::size_t>(size);
        output.file_.resize(std::max(output.file_.size(), output.at_ + count));
        std::memcpy(output.file_.data() + output.at_, data, count);
        output.at_ += count;
        return size;
    }
    static std::int64_t seek(void* self, std::int64_t offset, int whence) {
        auto& output = *static_cast<Output*>(self);
        const auto size = static_cast<std::int64_t>(output.file_.size());
        if ((whence & AVSEEK_SIZE) != 0) {
            return size;
        }
        const std::int64_t start = whence == SEEK_CUR   ? static_cast<std::int64_t>(output.at_)
                                   : whence == SEEK_END ? size
                                                        : 0;
        if (start + offset < 0 || start + offset > size) {
            return AVERROR(EINVAL);
        }
        output.at_ = static_cast<std::size_t>(start + offset);
        return start + offset;
    }

    AVFormatContext* format_ = nullptr;
    AVIOContext* io_ = nullptr;
    std::string file_;
    std::size_t at_ = 0;
};

template <class Sample>
void write_sample(std::uint8_t* into, Sample sample) {
    std::memcpy(into, &sample, sizeof sample);
}

void store(AVSampleFormat packed, float value, std::uint8_t* into) {
    const double clipped = std::isnan(value) ? 0.0 : static_cast<double>(value);
    if (packed == AV_SAMPLE_FMT_S16) {
        const double scaled = std::clamp(std::nearbyint(clipped * 32768.0), -32768.0, 32767.0);
        write_sample(into, static_cast<std::int16_t>(scaled));
    } else if (packed == AV_SAMPLE_FMT_S32) {
        const double scaled =
            std::clamp(std::nearbyint(clipped * 2147483648.0), -2147483648.0, 2147483647.0);
        write_sample(into, static_cast<std::int32_t>(scaled));
    } else {
        write_sample(into, value);
    }
}

// The one that the encoder prefers; AV_SAMPLE_FMT_NONE where it takes no sound.
AVSampleFormat preferred_sample_format(const AVCodecContext& codec) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void* formats = nullptr;
    avcodec_get_supported_config(
        &codec, codec.codec, AV_CODEC_CONFIG_SAMPLE_FORMAT, 0, &formats, nullptr
    );
    const auto* first = static_cast<const AVSampleFormat*>(formats);
#else
    const AVSampleFormat* first = codec.codec->sample_fmts;
#endif
    return first != nullptr ? *first : AV_SAMPLE_FMT_NONE;
}

ffmpeg::Codec open_encoder(const Sound& sound, const SoundFormat& format) {
    const AVCodec* encoder = avcodec_find_encoder_by_name(format.encoder.c_str());
    ffmpeg::Codec codec(encoder != nullptr ? avcodec_alloc_context3(encoder) : nullptr);
    if (!codec) {
        return nullptr;
    }
    codec->sample_fmt = preferred_sample_format(*codec);
    if (codec->sample_fmt == AV_SAMPLE_FMT_NONE) {
        return nullptr;
    }
    codec->sample_rate = sound.rate();
    codec->time_base = {1, sound.rate()};
    codec->bit_rate = format.bit_rate;
    codec->flags |= format.best_quality ? AV_CODEC_FLAG_QSCALE : 0;
    codec->thread_count = 1;
    av_channel_layout_default(&codec->ch_layout, static_cast<int>(sound.channels()));
    if (avcodec_open2(codec.get(), encoder, nullptr) < 0) {
        return nullptr;
    }
    return codec;
}

ffmpeg::Frame make_frame(
    const AVCodecContext& codec, const Sound& sound, std::size_t item, std::size_t at, int count
) {
    ffmpeg::Frame frame(av_frame_alloc());
    if (!frame) {
        return nullptr;
    }
    frame->format = codec.sample_fmt;
    frame->nb_samples = count;
    frame->sample_rate = codec.sample_rate;
    frame->pts = static_cast<std::int64_t>(at);
    if (av_channel_layout_copy(&frame->ch_layout, &codec.ch_layout) < 0 ||
        av_frame_get_buffer(frame.get(), 0) < 0) {
        return nullptr;
    }
    const AVSampleFormat packed = av_get_packed_sample_fmt(codec.sample_fmt);
    const bool planar = av_sample_fmt_is_planar(codec.sample_fmt) != 0;
    const auto bytes = static_cast<std::size_t>(av_get_bytes_per_sample(codec.sample_fmt));
    for (std::size_t c = 0; c < sound.channels(); ++c) {
        const float* from = sound.channel(item, c) + at;
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            std::uint8_t* into = planar
                                     ? frame->extended_data[c] + i * bytes
                                     : frame->extended_data[0] + (i * sound.channels() + c) * bytes;
            store(packed, from[i], into);
        }
    }
    return frame;
}

// Hands a frame, or the end, to the encoder and writes what comes out.
bool push(AVCodecContext* codec, const AVFrame* frame, Output& output, AVPacket* packet) {
    if (avcodec_send_frame(codec, frame) < 0) {
        return false;
    }
    while (avcodec_receive_packet(codec, packet) >= 0) {
        AVStream* stream = output.get()->streams[0];
        av_packet_rescale_ts(packet, codec->time_base, stream->time_base);
        packet->stream_index = 0;
        if (av_interleaved_write_frame(output.get(), packet) < 0) {
            return false;
        }
    }
    return true;
}

bool write_all(
    AVCodecContext* codec,
    const Sound& sound,
    std::size_t item,
    Output& output,
    const std::function<bool()>& stopped
) {
    const ffmpeg::Packet packet(av_packet_alloc());
    const int step = codec->frame_size > 0 ? codec->frame_size : kFrameSamples;
    for (std::size_t at = 0; at < sound.length(); at += static_cast<std::size_t>(step)) {
        const auto count = static_cast<int>(
            std::min<std::size_t>(static_cast<std::size_t>(step), sound.length() - at)
        );
        const ffmpeg::Frame frame = make_frame(*codec, sound, item, at, count);
        if (stopped() || !packet || !frame || !push(codec, frame.get(), output, packet.get())) {
            return false;
        }
    }
    return packet && push(codec, nullptr, output, packet.get()) &&
           av_write_trailer(output.get()) >= 0;
}

}  // namespace

tl::expected<std::string, std::string> encode_sound(
    const Sound& sound,
    std::size_t item,
    const SoundFormat& format,
    const std::vector<std::pair<std::string, std::string>>& texts,
    const std::function<bool()>& stopped
) {
    ffmpeg::be_quiet();
    const ffmpeg::Codec codec = open_encoder(sound, format);
    if (!codec) {
        return tl::unexpected(
            "this FFmpeg has no encoder " + format.encoder + " for " +
            std::to_string(sound.rate()) + " Hz and " + std::to_string(sound.channels()) +
            " channels"
        );
    }
    const auto output = Output::try_make(format.container);
    AVStream* stream = output ? avformat_new_stream(output->get(), nullptr) : nullptr;
    if (stream == nullptr || avcodec_parameters_from_context(stream->codecpar, codec.get()) < 0) {
        return tl::unexpected("this FFmpeg cannot write " + format.container + " files");
    }
    stream->time_base = codec->time_base;
    for (const auto& [key, text] : texts) {
        av_dict_set(&output->get()->metadata, key.c_str(), text.c_str(), 0);
    }
    if (avformat_write_header(output->get(), nullptr) < 0 ||
        !write_all(codec.get(), sound, item, *output, stopped)) {
        return tl::unexpected("the sound cannot be written as " + format.container);
    }
    avio_flush(output->get()->pb);
    return output->take();
}

}  // namespace comfyd::engine::nodes
