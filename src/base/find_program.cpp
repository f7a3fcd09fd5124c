#include "base/find_program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace comfyd {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& file) {
    std::error_code error;
    return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return is_program(name) ? name : std::string();
    }
    const char* folders = std::getenv("PATH");
    std::string_view left = folders == nullptr ? "/usr/local/bin:/usr/bin:/bin" : folders;
    while (!left.empty() && !name.empty()) {
        const auto end = left.find(':');
        const fs::path file = fs::path(left.substr(0, end)) / name;
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
        // Not from wherever we happen to stand.
        if (file.is_absolute() && is_program(file)) {
            return file;
        }
    }
    return {};
}

}  // namespace comfyd
