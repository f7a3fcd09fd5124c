#include "audit/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

namespace comfyd::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "audit-";
constexpr std::string_view kSuffix = ".jsonl";

std::string name_of(std::uint64_t number) {
    char name[64];
    std::snprintf(name, sizeof name, "audit-%08llu.jsonl", static_cast<unsigned long long>(number));
    return name;
}

// 0: it is none of ours.
std::uint64_t number_of(const fs::path& file) {
    const std::string name = file.filename();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) {
        return 0;
    }
    std::uint64_t number = 0;
    const char* end = name.data() + name.size() - kSuffix.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
    return error == std::errc() && stop == end ? number : 0;
}

tl::unexpected<Error> cannot(const std::string& what, const fs::path& where) {
    return fail(
        Code::storage_unavailable,
        "the audit log: cannot " + what + " '" + where.string() + "': " + std::strerror(errno)
    );
}

bool write_whole(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(file, text.data(), text.size());
        if (count < 0 && errno != EINTR) {
            return false;
        }
        text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return true;
}

// Where the last whole line of a file ends, and that line.
struct Tail {
    std::uint64_t end = 0;  // 0: there is none
    std::string line;
};
Tail tail_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
    const std::uint64_t looked_at = std::min<std::uint64_t>(size, 3 * kLineBytesMax);
    std::string text(looked_at, '\0');
    in.seekg(static_cast<std::streamoff>(size - looked_at));
    in.read(text.data(), static_cast<std::streamsize>(looked_at));
    const std::size_t last = text.rfind('\n');
    if (last == std::string::npos) {
        return {};
    }
    const std::size_t before = last == 0 ? std::string::npos : text.rfind('\n', last - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return {size - looked_at + last + 1, text.substr(begin, last - begin)};
}

}  // namespace

std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (number_of(entry.path()) != 0) {
            files.push_back(entry.path());
        }
    }
    std::ranges::sort(files, {}, number_of);
    return files;
}

Result<std::unique_ptr<Files>> Files::open(fs::path folder, FileLimits limits) {
    std::error_code error;
    if (fs::create_directories(folder, error)) {
        fs::permissions(folder, fs::perms::owner_all, error);
    }
    const fs::path lock_file = folder / "lock";
    const int lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        return cannot("open", lock_file);
    }
    std::unique_ptr<Files> files(new Files(std::move(folder), limits, lock));
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
        return fail(
            Code::conflict,
            "another process writes the audit log in '" + files->folder_.string() +
                "': each needs a folder of its own (audit.folder)"
        );
    }
    if (auto looked = files->look(); !looked) {
        return fail(std::move(looked.error()));
    }
    return files;
}

Files::~Files() {
    if (file_ >= 0) {
        ::close(file_);
    }
    ::close(lock_);
}

Result<> Files::look() {
    const auto files = files_in(folder_);
    if (files.empty()) {
        return open_file(1);
    }
    if (auto opened = open_file(number_of(files.back())); !opened) {
        return opened;
    }
    if (auto cut = cut_torn_line(); !cut || !found_.damaged.empty()) {
        return cut;
    }
    // One that was begun just before the end has no line yet.
    const bool is_empty = size_ == 0 && files.size() > 1;
    const fs::path& latest = is_empty ? files[files.size() - 2] : files.back();
    const Tail last = tail_of(latest);
    if (last.end == 0) {
        return {};
    }
    const auto line = read_line(last.line);
    if (!line || !line->is_whole) {
        found_.damaged = latest.filename();
        return begin_next();
    }
    found_.link = {line->seq, line->hash};
    return {};
}

Result<> Files::cut_torn_line() {
    const std::uint64_t end = tail_of(folder_ / name_of(number_)).end;
    // A line is never that long: what is there instead was not written by us.
    if (size_ - end > kLineBytesMax) {
        found_.damaged = name_of(number_);
        return begin_next();
    }
    found_.torn_bytes = size_ - end;
    if (::ftruncate(file_, static_cast<off_t>(end)) != 0) {
        return cannot("shorten", folder_ / name_of(number_));
    }
    size_ = end;
    return {};
}

Result<> Files::open_file(std::uint64_t number) {
    const fs::path path = folder_ / name_of(number);
    constexpr int kHow = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    const int file = ::open(path.c_str(), kHow, 0600);
    struct stat about{};
    if (file < 0 || ::fstat(file, &about) != 0) {
        return cannot("open", path);
    }
    if (file_ >= 0) {
        ::close(file_);
    }
    file_ = file;
    number_ = number;
    size_ = static_cast<std::uint64_t>(about.st_size);
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        ::fsync(folder);
        ::close(folder);
    }
    return {};
}

Result<> Files::begin_next() {
    if (auto synced = sync(); !synced) {
        return synced;
    }
    if (auto opened = open_file(number_ + 1); !opened) {
        return opened;
    }
    auto files = files_in(folder_);
    for (std::size_t i = 0; i + limits_.files_max < files.size(); ++i) {
        std::error_code ignored;
        fs::remove(files[i], ignored);
    }
    return {};
}

Result<> Files::append(std::string_view lines) {
    if (size_ >= limits_.bytes_max) {
        if (auto begun = begin_next(); !begun) {
            return begun;
        }
    }
    if (!write_whole(file_, lines)) {
        const auto failure = cannot("write", folder_ / name_of(number_));
        if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) {
            size_ = limits_.bytes_max;  // what stands there of a line has the next file after it
        }
        return failure;
    }
    size_ += lines.size();
    return {};
}

Result<> Files::sync() {
    return ::fdatasync(file_) == 0 ? Result<>() : cannot("sync", folder_ / name_of(number_));
}

}  // namespace comfyd::audit
