// FFmpeg's objects with owners, and files that it reads from memory.
//
// Whoever reads untrusted bytes names the demuxer or decoder; FFmpeg never guesses, so that no
// file can make it open another one.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace comfyd::engine::ffmpeg {

struct Free {
    void operator()(AVFrame* frame) const { av_frame_free(&frame); }
    void operator()(AVPacket* packet) const { av_packet_free(&packet); }
    void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
    void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
using Frame = std::unique_ptr<AVFrame, Free>;
using Packet = std::unique_ptr<AVPacket, Free>;
using Codec = std::unique_ptr<AVCodecContext, Free>;
using Scaler = std::unique_ptr<SwsContext, Free>;

// FFmpeg writes to the standard error stream unless told not to. Call before anything else.
void be_quiet();

std::string error_text(int error);

// How long it is shown, in the units of its stream. Later versions have another name for it.
inline std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    return frame.duration;
#else
    return frame.pkt_duration;
#endif
}

// A container that FFmpeg reads from memory, with the demuxer named `demuxer`.
class Input {
public:
    // nullptr when the file does not open. `file` must outlive the input.
    static std::unique_ptr<Input> try_open(std::string_view file, const char* demuxer);
    ~Input();
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;

    AVFormatContext* get() { return format_; }

private:
    explicit Input(std::string_view file) : file_(file) {}
    static int read(void* self, std::uint8_t* into, int size);
    static std::int64_t seek(void* self, std::int64_t offset, int whence);

    std::string_view file_;
    std::size_t at_ = 0;
    AVFormatContext* format_ = nullptr;
    AVIOContext* io_ = nullptr;
};

}  // namespace comfyd::engine::ffmpeg
