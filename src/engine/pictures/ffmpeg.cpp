#include "engine/pictures/ffmpeg.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace comfyd::engine::ffmpeg {
namespace {

constexpr int kIoBuffer = 64 * 1024;

}  // namespace

void be_quiet() {
    static std::once_flag once;
    std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

std::string error_text(int error) {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
    av_strerror(error, text.data(), text.size());
    return text.data();
}

std::unique_ptr<Input> Input::try_open(std::string_view file, const char* demuxer) {
    be_quiet();
    std::unique_ptr<Input> input(new Input(file));
    const AVInputFormat* format = av_find_input_format(demuxer);
    auto* buffer = static_cast<unsigned char*>(av_malloc(kIoBuffer));
    if (format == nullptr || buffer == nullptr) {
        av_free(buffer);
        return nullptr;
    }
    input->io_ =
        avio_alloc_context(buffer, kIoBuffer, 0, input.get(), &Input::read, nullptr, &Input::seek);
    input->format_ = input->io_ != nullptr ? avformat_alloc_context() : nullptr;
    if (input->format_ == nullptr) {
        if (input->io_ == nullptr) {
            av_free(buffer);
        }
        return nullptr;
    }
    input->format_->pb = input->io_;
    input->format_->flags |= AVFMT_FLAG_CUSTOM_IO;
    // Frees the context when it fails.
    if (avformat_open_input(&input->format_, nullptr, format, nullptr) < 0) {
        return nullptr;
    }
    return input;
}

Input::~Input() {
    if (format_ != nullptr) {
        avformat_close_input(&format_);
    }
    if (io_ != nullptr) {
        av_freep(&io_->buffer);
        avio_context_free(&io_);
    }
}

int Input::read(void* self, std::uint8_t* into, int size) {
    auto& input = *static_cast<Input*>(self);
    const std::size_t left = input.file_.size() - input.at_;
    const std::size_t count = std::min(left, static_cast<std::size_t>(std::max(size, 0)));
    if (count == 0) {
        return AVERROR_EOF;
    }
    std::memcpy(into, input.file_.data() + input.at_, count);
    input.at_ += count;
    return static_cast<int>(count);
}

std::int64_t Input::seek(void* self, std::int64_t offset, int whence) {
    auto& input = *static_cast<Input*>(self);
    const auto size = static_cast<std::int64_t>(input.file_.size());
    if ((whence & AVSEEK_SIZE) != 0) {
        return size;
    }
    const int from = whence & ~AVSEEK_FORCE;
    const std::int64_t start = from == SEEK_CUR   ? static_cast<std::int64_t>(input.at_)
                               : from == SEEK_END ? size
                                                  : 0;
    std::int64_t target = 0;
    if (__builtin_add_overflow(start, offset, &target) || target < 0 || target > size) {
        return AVERROR(EINVAL);
    }
    input.at_ = static_cast<std::size_t>(target);
    return target;
}

}  // namespace comfyd::engine::ffmpeg
