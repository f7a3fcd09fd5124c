#include "app/old_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

bool is_old_file(const fs::path& path, Time before) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           Time(std::chrono::seconds(status.st_mtim.tv_sec)) < before;
}

int remove_old_files(const fs::path& folder, Time before) {
    int removed = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        if (is_old_file(at->path(), before) && ::unlink(at->path().c_str()) == 0) {
            ++removed;
        }
    }
    return removed;
}

}  // namespace

int remove_old_engine_files(const fs::path& folder, Time before) {
    int removed = remove_old_files(folder / "output", before);
    removed += remove_old_files(folder / "temp", before);
    std::error_code error;
    for (fs::directory_iterator at(folder / "input", error), end; !error && at != end;
         at.increment(error)) {
        if (at->path().filename().string().starts_with("comfyd_")) {
            removed += remove_old_files(at->path(), before);
        }
    }
    return removed;
}

}  // namespace comfyd::app
