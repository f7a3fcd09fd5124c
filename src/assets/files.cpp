#include "assets/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/disk.hpp"

namespace comfyd::assets {

FileHandle::~FileHandle() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Error storage_error(std::string_view doing, const std::filesystem::path& path, int error_number) {
    const Code code = storage_code(error_number);
    std::string message = "cannot ";
    message += doing;
    message += " '" + path.string() +
               "': " + std::error_code(error_number, std::generic_category()).message();
    message += code == Code::storage_full ? "; free disk space and try again"
                                          : "; check the folder and its permissions";
    return Error(code, std::move(message), {{"path", path.string()}});
}

timespec to_timespec(Time time) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    return {
        .tv_sec = whole.time_since_epoch().count(),
        .tv_nsec = std::chrono::nanoseconds(time - whole).count(),
    };
}

Result<> make_folder(const std::filesystem::path& folder) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail(storage_error("make the folder", folder, errno));
    }
    return {};
}

Result<std::string> read_part(
    const std::filesystem::path& path, std::uint64_t first, std::uint64_t length
) {
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat status{};
    if (!file.is_open() || fstat(file.get(), &status) != 0) {
        return errno == ENOENT ? fail(Code::not_found, "there is no such file")
                               : fail(storage_error("read", path, errno));
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    std::string bytes(first < size ? std::min(length, size - first) : 0, '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::pread(
            file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(first + done)
        );
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return fail(storage_error("read", path, count < 0 ? errno : EIO));
        }
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

}  // namespace comfyd::assets
