#include "ledger/sqlite/log_room.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace comfyd::ledger::sqlite {
namespace {

// A commit of a few jobs.
constexpr std::uint64_t kLittle = 256 * 1024;
constexpr std::uint64_t kFirst = 1024 * 1024;
constexpr std::array<char, 64 * 1024> kZeros{};

bool write_zeros(int file, std::uint64_t from, std::uint64_t to) {
    while (from < to) {
        const auto bytes =
            static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), to - from));
        const ssize_t written = ::pwrite(file, kZeros.data(), bytes, static_cast<off_t>(from));
        if (written <= 0) {
            return false;
        }
        from += static_cast<std::uint64_t>(written);
    }
    return ::fdatasync(file) == 0;
}

}  // namespace

void LogRoom::make(std::uint64_t used) {
    if (used + kLittle <= has_ || used >= bytes_max_) {
        return;
    }
    const int file = ::open(log_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    struct stat status{};
    if (::fstat(file, &status) == 0) {
        const auto length = static_cast<std::uint64_t>(status.st_size);
        const std::uint64_t wanted = std::min(std::max(kFirst, 2 * used), bytes_max_);
        // Not tried again after a failure: a disk that is full has no room to spare.
        has_ = std::max(length, wanted);
        if (length < wanted && !write_zeros(file, length, wanted)) {
            static_cast<void>(::ftruncate(file, status.st_size));
        }
    }
    ::close(file);
}

}  // namespace comfyd::ledger::sqlite
