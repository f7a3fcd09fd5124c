#include "assets/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace comfyd::assets
