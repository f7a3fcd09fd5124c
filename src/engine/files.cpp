#include "engine/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>
#include <system_error>
#include <utility>

#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "engine/nodes/node.hpp"
#include "engine/run/counters.hpp"

namespace comfyd::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCounterMax = 999'999'999'999;
constexpr std::size_t kListMax = 100'000;
constexpr std::size_t kWriteBuffer = 256 * 1024;
constexpr std::size_t kPrefixBytesMax = 4096;          // no path is longer
constexpr std::string_view kHiddenStart = ".comfyd-";  // of the names of unfinished files

class FileHandle {
public:
    explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
    ~FileHandle() { close(); }
    FileHandle(const FileHandle&) = delete;
    FileHandle& operator=(const FileHandle&) = delete;

    int get() const { return descriptor_; }
    bool close() {
        const int descriptor = std::exchange(descriptor_, -1);
        return descriptor < 0 || ::close(descriptor) == 0;
    }

private:
    int descriptor_;
};

tl::unexpected<Error> storage_error(int error, std::string_view doing, const std::string& name) {
    return fail(
        storage_code(error),
        "Cannot " + std::string(doing) + " '" + name +
            "': " + std::error_code(error, std::generic_category()).message()
    );
}

// `name` below `root`; nullopt when it leads out. By the text alone, as ComfyUI does it: symbolic
// links in the folders are the operator's decision.
std::optional<fs::path> inside(const fs::path& root, std::string_view name) {
    if (name.find('\0') != name.npos) {
        return std::nullopt;
    }
    const fs::path relative = fs::path(name).lexically_normal();
    if (relative.is_absolute() || (!relative.empty() && *relative.begin() == "..")) {
        return std::nullopt;
    }
    return root / relative;
}

constexpr std::array<std::string_view, 16> kPictures = {
    ".png",
    ".apng",
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".gif",
    ".webp",
    ".bmp",
    ".tif",
    ".tiff",
    ".ico",
    ".avif",
    ".heic",
    ".heif",
    ".svg"
};
constexpr std::array<std::string_view, 10> kSounds = {
    ".mp3", ".wav", ".flac", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".aif", ".aiff"
};
constexpr std::array<std::string_view, 9> kFilms = {
    ".mp4", ".m4v", ".webm", ".mkv", ".mov", ".avi", ".mpg", ".mpeg", ".qt"
};

bool has_extension(std::string_view name, std::span<const std::string_view> extensions) {
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) {
        return false;
    }
    std::string extension(name.substr(dot));
    for (char& c : extension) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return std::ranges::find(extensions, extension) != extensions.end();
}

// The names directly in a folder, sorted as ComfyUI shows them.
std::vector<std::string> list_names(
    const fs::path& folder, const std::function<bool(std::string_view)>& wanted
) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        std::error_code kind_error;
        std::string name = at->path().filename().string();
        if (names.size() < kListMax && wanted(name) && at->is_regular_file(kind_error)) {
            names.push_back(std::move(name));
        }
    }
    std::ranges::sort(names);
    return names;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (std::size_t at = text.find(what); at != text.npos;
         at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

std::string two_digits(int number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
}

std::string expand(std::string_view prefix, std::size_t width, std::size_t height) {
    std::string text(prefix);
    if (text.find('%') == text.npos) {
        return text;
    }
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    replace_all(text, "%width%", std::to_string(width));
    replace_all(text, "%height%", std::to_string(height));
    replace_all(text, "%year%", std::to_string(local.tm_year + 1900));
    replace_all(text, "%month%", two_digits(local.tm_mon + 1));
    replace_all(text, "%day%", two_digits(local.tm_mday));
    replace_all(text, "%hour%", two_digits(local.tm_hour));
    replace_all(text, "%minute%", two_digits(local.tm_min));
    replace_all(text, "%second%", two_digits(local.tm_sec));
    return text;
}

// Of the process, as the folders are: engines may share them.
Counters& counters() {
    static Counters all;
    return all;
}

// A file that nobody sees until publish() gives it its name; removed otherwise.
class HiddenFile {
public:
    explicit HiddenFile(const fs::path& folder) : path_(folder / hidden_name()) {
        file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        error_ = file_ < 0 ? errno : 0;
        // Tells remove_leftovers() that somebody still writes it.
        ::flock(file_, LOCK_SH | LOCK_NB);
        buffer_.reserve(kWriteBuffer);
    }
    ~HiddenFile() {
        if (file_ >= 0) {
            ::close(file_);
        }
        if (made_) {
            ::unlink(path_.c_str());
        }
    }
    HiddenFile(const HiddenFile&) = delete;
    HiddenFile& operator=(const HiddenFile&) = delete;

    int error() const { return error_; }

    bool append(const void* data, std::size_t size) {
        if (buffer_.size() + size > kWriteBuffer && !flush()) {
            return false;
        }
        if (size > kWriteBuffer) {
            return write_all(static_cast<const char*>(data), size);
        }
        buffer_.append(static_cast<const char*>(data), size);
        return true;
    }

    bool finish() {
        const bool flushed = flush();
        const int closed = ::close(std::exchange(file_, -1));
        if (flushed && closed != 0) {
            error_ = errno;
        }
        return flushed && closed == 0;
    }

    // False with errno EEXIST when the name is taken.
    bool publish(const fs::path& name) {
        if (::link(path_.c_str(), name.c_str()) == 0) {
            return true;
        }
        if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) {
            return false;
        }
        // No hard links here: take the name with an empty file, then replace that.
        const int claim = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (claim < 0) {
            return false;
        }
        ::close(claim);
        if (::rename(path_.c_str(), name.c_str()) == 0) {
            made_ = false;
            return true;
        }
        const int error = errno;
        ::unlink(name.c_str());
        errno = error;
        return false;
    }

private:
    static std::string hidden_name() {
        std::array<unsigned char, 12> random{};
        random_bytes(random.data(), random.size());
        return std::string(kHiddenStart) + to_hex(random.data(), random.size());
    }

    bool flush() {
        const bool written = write_all(buffer_.data(), buffer_.size());
        buffer_.clear();
        return written;
    }

    bool write_all(const char* data, std::size_t size) {
        while (size > 0) {
            const ssize_t written = ::write(file_, data, size);
            if (written < 0 && errno == EINTR) {
                continue;
            }
            if (written <= 0) {
                error_ = written < 0 ? errno : EIO;
                return false;
            }
            data += written;
            size -= static_cast<std::size_t>(written);
        }
        return true;
    }

    fs::path path_;
    int file_ = -1;
    int error_ = 0;
    bool made_ = true;
    std::string buffer_;
};

std::string counted_name(
    const SavePlace& place,
    std::uint64_t counter,
    std::size_t batch_number,
    std::string_view extension
) {
    std::string base = place.base;
    replace_all(base, "%batch_num%", std::to_string(batch_number));
    std::string digits = std::to_string(counter);
    digits.insert(0, digits.size() < 5 ? 5 - digits.size() : 0, '0');
    return base + "_" + digits + std::string(place.tail) + "." + std::string(extension);
}

}  // namespace

std::optional<fs::path> find_input_file(std::string_view name, const Folders& folders) {
    const fs::path* root = &folders.input;
    const std::array<std::pair<std::string_view, const fs::path*>, 3> annotations = {
        {{"[output]", &folders.output}, {"[input]", &folders.input}, {"[temp]", &folders.temp}}
    };
    for (const auto& [annotation, folder] : annotations) {
        if (name.ends_with(annotation)) {
            root = folder;
            name.remove_suffix(std::min(name.size(), annotation.size() + 1));
            break;
        }
    }
    auto path = inside(*root, name);
    std::error_code error;
    if (!path || !fs::is_regular_file(*path, error)) {
        return std::nullopt;
    }
    return path;
}

std::vector<std::string> list_input_pictures(const Folders& folders) {
    return list_names(folders.input, [](std::string_view name) {
        return has_extension(name, kPictures);
    });
}

// ComfyUI offers films too where it wants sounds.
std::vector<std::string> list_input_audio(const Folders& folders) {
    return list_names(folders.input, [](std::string_view name) {
        return has_extension(name, kSounds) || has_extension(name, kFilms);
    });
}

Result<std::string> read_file(const fs::path& path) {
    const std::string name = path.filename().string();
    // Not blocking, so that a pipe in the folder cannot hold a thread.
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status{};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
        if (errno == ENOENT) {
            return fail(Code::not_found, "There is no file '" + name + "'");
        }
        return storage_error(errno, "read", name);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(Code::not_found, "'" + name + "' is not a file");
    }
    if (static_cast<std::uint64_t>(status.st_size) > kFileBytesMax) {
        return fail(
            Code::payload_too_large,
            "'" + name + "' has " + std::to_string(status.st_size) + " bytes; at most " +
                std::to_string(kFileBytesMax) + " can be read"
        );
    }
    std::string content(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t have = 0;
    while (have < content.size()) {
        const ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return storage_error(errno, "read", name);
        }
        if (got == 0) {
            break;  // became shorter meanwhile
        }
        have += static_cast<std::size_t>(got);
    }
    content.resize(have);
    return content;
}

void remove_leftovers(const fs::path& root) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(root, options, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code ignored;
        if (!at->path().filename().string().starts_with(kHiddenStart) ||
            !at->is_regular_file(ignored)) {
            continue;
        }
        const FileHandle file(::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            fs::remove(at->path(), ignored);
        }
    }
}

Result<SavePlace> make_save_place(
    const fs::path& root, std::string_view prefix, std::size_t width, std::size_t height
) {
    if (prefix.size() > kPrefixBytesMax) {
        return node_error("OSError", "[Errno 36] File name too long");
    }
    const fs::path wanted = fs::path(expand(prefix, width, height)).lexically_normal();
    const fs::path subfolder = wanted.parent_path();
    std::string base = wanted.filename().string();
    // "a/" is "a" to ComfyUI, and an empty prefix is ".".
    fs::path parent = subfolder;
    if (base.empty() && !subfolder.empty()) {
        base = subfolder.filename().string();
        parent = subfolder.parent_path();
    }
    base = base.empty() ? "." : base;
    const auto folder = inside(root, parent.string());
    if (!folder || base == ".." || base.find('\0') != base.npos) {
        return node_error(
            "Exception",
            "The prefix '" + std::string(prefix) +
                "' leads out of the output folder. Saving outside of it is not allowed."
        );
    }
    std::error_code error;
    fs::create_directories(*folder, error);
    if (error) {
        return storage_error(error.value(), "make the folder", parent.string());
    }
    const std::uint64_t counter = counters().next(*folder, base);
    return SavePlace{
        .folder = *folder, .subfolder = parent.string(), .base = std::move(base), .counter = counter
    };
}

Result<std::string> save_counted(
    const SavePlace& place,
    std::uint64_t counter,
    std::size_t batch_number,
    std::string_view extension,
    const std::function<Result<>(const FileSink& sink)>& write
) {
    if (extension.find('/') != extension.npos || extension.find('\0') != extension.npos) {
        return node_error("ValueError", "No file name ends with '" + std::string(extension) + "'");
    }
    HiddenFile file(place.folder);
    if (file.error() != 0) {
        return storage_error(file.error(), "make a file for", place.base);
    }
    const auto written =
        write([&file](const void* data, std::size_t size) { return file.append(data, size); });
    if (file.error() != 0 || (written && !file.finish())) {
        return storage_error(file.error(), "write", place.base);
    }
    if (!written) {
        return fail(written.error());
    }
    for (; counter <= kCounterMax; ++counter) {
        std::string name = counted_name(place, counter, batch_number, extension);
        if (file.publish(place.folder / name)) {
            counters().used(place.folder, place.base, counter);
            return name;
        }
        if (errno == ENAMETOOLONG) {
            return node_error("OSError", "The file name '" + name + "' is too long");
        }
        if (errno != EEXIST) {
            return storage_error(errno, "write", name);
        }
    }
    return fail(Code::storage_unavailable, "No free file name is left for '" + place.base + "'");
}

}  // namespace comfyd::engine
