#include "base/shared_lines.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/disk.hpp"

namespace comfyd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 64 * 1024;

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

private:
    int number_;
};

}  // namespace

Result<> SharedLines::read(
    const std::function<void()>& forget, const std::function<void(std::string_view)>& take
) {
    const Descriptor in(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat found{};
    if (in.number() < 0 && errno == ENOENT) {
        if (inode_ != 0) {
            forget();
        }
        inode_ = 0;
        offset_ = 0;
        return {};
    }
    if (in.number() < 0 || ::fstat(in.number(), &found) != 0) {
        return disk_error(file_, errno);
    }
    if (found.st_ino != inode_ || static_cast<std::uint64_t>(found.st_size) < offset_) {
        forget();
        inode_ = found.st_ino;
        offset_ = 0;
    }
    std::string rest;
    std::string piece(kPiece, '\0');
    std::uint64_t at = offset_;
    for (;;) {
        const ssize_t count =
            ::pread(in.number(), piece.data(), piece.size(), static_cast<off_t>(at));
        if (count < 0) {
            return disk_error(file_, errno);
        }
        if (count == 0) {
            return {};  // a line without its end is still being written, or was cut off by a crash
        }
        at += static_cast<std::uint64_t>(count);
        rest.append(piece.data(), static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (std::size_t end = rest.find('\n'); end != std::string::npos;
             end = rest.find('\n', begin)) {
            take(std::string_view(rest).substr(begin, end - begin));
            begin = end + 1;
        }
        offset_ += begin;
        rest.erase(0, begin);
    }
}

// The lock has a file of its own, because the other may be replaced by a new one.
Result<SharedLines::Turn> SharedLines::take_turn() const {
    std::error_code ignored;
    fs::create_directories(file_.parent_path(), ignored);
    const fs::path lock = file_.string() + ".lock";
    const int descriptor = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return disk_error(lock, errno);
    }
    Turn turn(descriptor);
    while (::flock(descriptor, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return disk_error(lock, errno);
        }
    }
    return turn;
}

// A crash may have left a part of a line, which must not swallow the next one.
Result<> SharedLines::append(std::string_view lines) const {
    const std::string mended = ends_within_a_line() ? "\n" : "";
    return append_file(file_, mended + std::string(lines));
}

bool SharedLines::ends_within_a_line() const {
    const Descriptor in(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    const off_t size = in.number() < 0 ? 0 : ::lseek(in.number(), 0, SEEK_END);
    char last = '\n';
    return size > 0 && ::pread(in.number(), &last, 1, size - 1) == 1 && last != '\n';
}

SharedLines::Turn::~Turn() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

}  // namespace comfyd
