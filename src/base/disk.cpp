#include "base/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/id.hpp"

namespace comfyd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPathBytesMax = 1'024;
constexpr std::size_t kNameBytesMax = 255;

class File {
public:
    File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    ~File() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    bool write(std::string_view bytes) { return write_all(fd_, bytes) && ::fsync(fd_) == 0; }

private:
    int fd_;
};

Result<> make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        return disk_error(folder, error.value());
    }
    return {};
}

}  // namespace

Code storage_code(int number) {
    return number == ENOSPC || number == EDQUOT ? Code::storage_full : Code::storage_unavailable;
}

tl::unexpected<Error> disk_error(const fs::path& path, int number) {
    return fail(
        storage_code(number),
        "file '" + path.filename().string() + "': " + std::generic_category().message(number)
    );
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

Result<std::string> read_file(const fs::path& path, std::uint64_t bytes_max) {
    const File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);  // a pipe would hold us up
    struct stat about{};
    if (!file.is_open() || ::fstat(file.fd(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return fail(Code::not_found, "there is no such file");
    }
    if (static_cast<std::uint64_t>(about.st_size) > bytes_max) {
        return fail(Code::payload_too_large, "the file is too large");
    }
    std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return disk_error(path, errno);
        }
        if (count == 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
}

Result<> write_file(const fs::path& path, std::string_view bytes) {
    if (auto made = make_folder(path.parent_path()); !made) {
        return made;
    }
    const fs::path temporary =
        path.parent_path() / (".new-" + Uuid::make(SystemClock().now()).to_string());
    {
        File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
        if (!file.is_open() || !file.write(bytes)) {
            const int number = errno;
            ::unlink(temporary.c_str());
            return disk_error(path, number);
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const int number = errno;
        ::unlink(temporary.c_str());
        return disk_error(path, number);
    }
    const File folder(path.parent_path(), O_RDONLY | O_DIRECTORY);
    if (folder.is_open()) {
        ::fsync(folder.fd());
    }
    return {};
}

Result<> append_file(const fs::path& path, std::string_view bytes) {
    if (auto made = make_folder(path.parent_path()); !made) {
        return made;
    }
    File file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (!file.is_open() || !file.write(bytes)) {
        return disk_error(path, errno);
    }
    return {};
}

std::optional<fs::path> confined(const fs::path& outer, std::string_view inner) {
    if (inner.empty() || inner.size() > kPathBytesMax || inner.front() == '/' ||
        inner.find('\0') != std::string_view::npos || inner.find('\\') != std::string_view::npos) {
        return std::nullopt;
    }
    const fs::path path = fs::path(inner).lexically_normal();
    for (const fs::path& part : path) {
        if (part == ".." || part.native().size() > kNameBytesMax) {
            return std::nullopt;
        }
    }
    return outer / path;
}

}  // namespace comfyd
