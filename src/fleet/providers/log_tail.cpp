#include "fleet/providers/log_tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace comfyd::fleet {
namespace {

constexpr off_t kBytesMax = 1'000'000;
constexpr std::size_t kLineBytesMax = 300;

std::string read_end(const std::filesystem::path& log) {
    const int fd = ::open(log.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    std::string text;
    struct stat about{};
    if (fd >= 0 && ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        const off_t from = std::max<off_t>(about.st_size - kBytesMax, 0);
        text.resize(static_cast<std::size_t>(about.st_size - from));
        const ssize_t count = ::pread(fd, text.data(), text.size(), from);
        text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    if (fd >= 0) {
        ::close(fd);
    }
    return text;
}

// Terminals act on what a log says: only what can be read is passed on. Bytes of other scripts are
// left as they are.
void make_readable(std::string& text) {
    std::ranges::replace_if(
        text,
        [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; },
        '?'
    );
}

}  // namespace

std::string last_lines(const std::filesystem::path& log, int lines) {
    std::string text = read_end(log);
    if (text.empty() || lines <= 0) {
        return {};
    }
    if (text.back() != '\n') {
        text += '\n';
    }
    std::size_t begin = text.size() - 1;
    while (begin > 0) {
        begin = text.rfind('\n', begin - 1);
        if (begin == std::string::npos) {
            begin = 0;
            break;
        }
        if (--lines == 0) {
            ++begin;
            break;
        }
    }
    text.erase(0, begin);
    make_readable(text);
    return text;
}

std::string last_line(const std::filesystem::path& log) {
    const std::string line = last_lines(log, 1);
    return std::string(trim(line, " \t\r\n").substr(0, kLineBytesMax));
}

}  // namespace comfyd::fleet
