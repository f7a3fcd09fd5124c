#include "agent/log_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/disk.hpp"

namespace comfyd::agent {
namespace fs = std::filesystem;

LogFile::LogFile(fs::path path, std::uint64_t bytes_max, int files_max)
    : path_(std::move(path)), bytes_max_(bytes_max), files_max_(files_max) {
    open();
}

void LogFile::open() {
    file_ = net::Descriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)
    );
    struct stat status{};
    size_ = file_ && ::fstat(file_.number(), &status) == 0
                ? static_cast<std::uint64_t>(status.st_size)
                : 0;
}

void LogFile::turn() {
    std::error_code ignored;
    const auto numbered = [this](int number) {
        return number == 0 ? path_ : fs::path(path_.string() + "." + std::to_string(number));
    };
    for (int number = files_max_ - 1; number > 0; --number) {
        fs::rename(numbered(number - 1), numbered(number), ignored);
    }
    open();
}

void LogFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        if (size_ >= bytes_max_) {
            turn();
        }
        const auto room = static_cast<std::size_t>(
            std::min<std::uint64_t>(bytes.size(), bytes_max_ - std::min(size_, bytes_max_))
        );
        const std::string_view piece = bytes.substr(0, std::max<std::size_t>(room, 1));
        if (!file_ || !write_all(file_.number(), piece)) {
            return;
        }
        size_ += piece.size();
        bytes.remove_prefix(piece.size());
    }
}

}  // namespace comfyd::agent
