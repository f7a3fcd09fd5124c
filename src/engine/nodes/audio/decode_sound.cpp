#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/nodes/audio/codec.hpp"
#include "engine/pictures/ffmpeg.hpp"

namespace comfyd::engine::nodes {
namespace {

// A gigabyte of floats.
constexpr std::size_t kSamplesMax = std::size_t{256} * 1024 * 1024;

// FFmpeg's demuxer by the first bytes; nullptr for what is no sound file.
const char* demuxer_of(std::string_view file) {
    const auto at = [&](std::size_t offset, std::string_view text) {
        return file.size() >= offset + text.size() && file.substr(offset, text.size()) == text;
    };
    if (at(0, "RIFF") && at(8, "WAVE")) {
        return "wav";
    }
    if (at(0, "fLaC")) {
        return "flac";
    }
    if (at(0, "OggS")) {
        return "ogg";
    }
    if (at(0, "FORM") && (at(8, "AIFF") || at(8, "AIFC"))) {
        return "aiff";
    }
    if (at(4, "ftyp")) {
        return "mov";
    }
    if (at(0, "\x1a\x45\xdf\xa3")) {
        return "matroska";
    }
    if (at(0, "\xff\xf1") || at(0, "\xff\xf9")) {
        return "aac";
    }
    const bool frame = file.size() > 1 && file[0] == '\xff' && (file[1] & '\xe0') == '\xe0';
    return at(0, "ID3") || frame ? "mp3" : nullptr;
}

template <class Sample>
float read_sample(const std::uint8_t* from) {
    Sample sample;
    std::memcpy(&sample, from, sizeof sample);
    return static_cast<float>(sample);
}

float to_float(AVSampleFormat format, const std::uint8_t* from) {
    switch (format) {
        case AV_SAMPLE_FMT_U8:
            return (static_cast<float>(*from) - 128.0F) / 128.0F;
        case AV_SAMPLE_FMT_S16:
            return read_sample<std::int16_t>(from) / 32768.0F;
        case AV_SAMPLE_FMT_S32:
            return read_sample<std::int32_t>(from) / 2147483648.0F;
        case AV_SAMPLE_FMT_DBL:
            return read_sample<double>(from);
        default:
            return read_sample<float>(from);
    }
}

bool append(const AVFrame& frame, DecodedSound& sound) {
    const auto format = static_cast<AVSampleFormat>(frame.format);
    const AVSampleFormat packed = av_get_packed_sample_fmt(format);
    const auto channels = static_cast<std::size_t>(frame.ch_layout.nb_channels);
    const auto count = static_cast<std::size_t>(frame.nb_samples);
    if (channels != sound.channels.size() || packed == AV_SAMPLE_FMT_S64 ||
        packed == AV_SAMPLE_FMT_NONE ||
        (sound.channels[0].size() + count) * channels > kSamplesMax) {
        return false;
    }
    const auto bytes = static_cast<std::size_t>(av_get_bytes_per_sample(format));
    const bool planar = av_sample_fmt_is_planar(format) != 0;
    for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint8_t* from = planar ? frame.extended_data[c] + i * bytes
                                              : frame.extended_data[0] + (i * channels + c) * bytes;
            sound.channels[c].push_back(to_float(packed, from));
        }
    }
    return true;
}

tl::unexpected<std::string> unusable(std::string why) {
    return tl::unexpected(std::move(why));
}

struct Stream {
    int index = 0;
    ffmpeg::Codec codec;
};
std::optional<Stream> open_stream(ffmpeg::Input& input) {
    AVFormatContext* format = input.get();
    if (avformat_find_stream_info(format, nullptr) < 0) {
        return std::nullopt;
    }
    for (unsigned i = 0; i < format->nb_streams; ++i) {
        const AVCodecParameters* parameters = format->streams[i]->codecpar;
        const AVCodec* decoder = parameters->codec_type == AVMEDIA_TYPE_AUDIO
                                     ? avcodec_find_decoder(parameters->codec_id)
                                     : nullptr;
        ffmpeg::Codec codec(decoder != nullptr ? avcodec_alloc_context3(decoder) : nullptr);
        if (codec && avcodec_parameters_to_context(codec.get(), parameters) >= 0) {
            codec->thread_count = 1;
            if (avcodec_open2(codec.get(), decoder, nullptr) >= 0) {
                return Stream{static_cast<int>(i), std::move(codec)};
            }
        }
    }
    return std::nullopt;
}

}  // namespace

tl::expected<DecodedSound, std::string> decode_sound(
    std::string_view file, const std::function<bool(std::uint64_t bytes)>& go_on
) {
    const char* demuxer = demuxer_of(file);
    if (demuxer == nullptr) {
        return unusable("it is not a sound file in a known format");
    }
    const auto input = ffmpeg::Input::try_open(file, demuxer);
    auto stream = input ? open_stream(*input) : std::nullopt;
    if (!stream) {
        return unusable("it has no sound that can be decoded");
    }
    DecodedSound sound;
    sound.rate = stream->codec->sample_rate;
    const int channels = stream->codec->ch_layout.nb_channels;
    if (sound.rate < 1 || sound.rate > kSampleRateMax || channels < 1 ||
        channels > static_cast<int>(kChannelsMax)) {
        return unusable("its sample rate or number of channels is out of reach");
    }
    sound.channels.resize(static_cast<std::size_t>(channels));
    const ffmpeg::Packet packet(av_packet_alloc());
    const ffmpeg::Frame frame(av_frame_alloc());
    bool more = packet && frame;
    while (more && go_on(sound.channels[0].size() * sound.channels.size() * sizeof(float))) {
        more = av_read_frame(input->get(), packet.get()) >= 0;
        const bool wanted = !more || packet->stream_index == stream->index;
        if (wanted) {
            avcodec_send_packet(stream->codec.get(), more ? packet.get() : nullptr);
        }
        av_packet_unref(packet.get());
        while (wanted && avcodec_receive_frame(stream->codec.get(), frame.get()) >= 0) {
            if (!append(*frame, sound)) {
                return unusable("its sound is too long, or changes its form");
            }
            av_frame_unref(frame.get());
        }
    }
    if (sound.channels[0].empty()) {
        return unusable("no sound could be decoded from it");
    }
    return sound;
}

}  // namespace comfyd::engine::nodes
