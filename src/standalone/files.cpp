#include "standalone/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/disk.hpp"
#include "base/id.hpp"
#include "engine/files.hpp"

namespace comfyd::standalone {
namespace {

namespace fs = std::filesystem;

constexpr int kRenamesMax = 10'000;
constexpr std::size_t kListedMax = 10'000;

tl::unexpected<Error> not_stored(int number) {
    return fail(
        storage_code(number),
        "the file cannot be stored: " + std::generic_category().message(number)
    );
}

// A file of its own beside the final place; taken away again unless it was put there.
class Beside {
public:
    explicit Beside(const fs::path& folder)
        : path_(folder / (".new-" + Uuid::make(SystemClock().now()).to_string())) {}
    ~Beside() { ::unlink(path_.c_str()); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

    Result<> write(std::string_view bytes) {
        const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        const bool done = fd >= 0 && write_all(fd, bytes);
        const int number = errno;
        if (fd >= 0) {
            ::close(fd);
        }
        return done ? Result<>() : not_stored(number);
    }
    // False when there is a file of this name.
    Result<bool> put(const fs::path& place, bool replace) const {
        const int done =
            replace ? ::rename(path_.c_str(), place.c_str()) : ::link(path_.c_str(), place.c_str());
        if (done == 0) {
            return true;
        }
        if (!replace && errno == EEXIST) {
            return false;
        }
        return not_stored(errno);
    }

private:
    fs::path path_;
};

bool has_content(const fs::path& path, std::string_view bytes) {
    std::error_code error;
    if (fs::file_size(path, error) != bytes.size() || error) {
        return false;
    }
    const auto content = engine::read_file(path);
    return content && *content == bytes;
}

// "a.png", 2 -> "a (2).png"
std::string numbered(const std::string& name, int number) {
    const auto dot = name.rfind('.');
    const auto end = dot == std::string::npos || dot == 0 ? name.size() : dot;
    return name.substr(0, end) + " (" + std::to_string(number) + ")" + name.substr(end);
}

}  // namespace

const fs::path* folder_of(const engine::Folders& folders, std::string_view type) {
    if (type == "input") {
        return &folders.input;
    }
    if (type == "output") {
        return &folders.output;
    }
    return type == "temp" ? &folders.temp : nullptr;
}

Result<fs::path> place_below(const fs::path& outer, std::string_view inner) {
    const auto found = inner.empty() ? std::optional(outer) : confined(outer, inner);
    if (!found) {
        return fail(Code::forbidden, "the name leads out of its folder");
    }
    fs::path place = found->lexically_normal();
    return place.has_filename() ? place : place.parent_path();
}

Result<fs::path> find_file(const engine::Folders& folders, const FileName& file) {
    const fs::path* root = folder_of(folders, file.type);
    auto folder = root == nullptr ? Result<fs::path>(fail(Code::not_found, "type"))
                                  : place_below(*root, file.subfolder);
    auto place = folder ? place_below(*folder, file.name) : folder;
    std::error_code error;
    if (!place || !fs::is_regular_file(*place, error)) {
        return fail(Code::not_found, "there is no such file");
    }
    return place;
}

Result<FileName> store_upload(
    const engine::Folders& folders, FileName wanted, std::string_view bytes, bool overwrite
) {
    const fs::path* root = folder_of(folders, wanted.type);
    auto place = root == nullptr ? Result<fs::path>(fail(Code::invalid_argument, "type"))
                                 : place_below(*root, wanted.subfolder);
    auto inner = place ? place_below(*place, wanted.name) : place;
    if (!inner || wanted.name.empty() || wanted.name.ends_with('/') || *inner == *place) {
        return fail(Code::invalid_argument, "this is no name for a file");
    }
    // A name with folders is stored below them; the answer names it as it was given.
    const fs::path folder = inner->parent_path();
    const std::string name = inner->filename().string();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        return not_stored(error.value());
    }
    Beside file(folder);
    if (auto written = file.write(bytes); !written) {
        return fail(std::move(written.error()));
    }
    std::string taken = name;
    for (int number = 1; number <= kRenamesMax; ++number) {
        auto put = file.put(folder / taken, overwrite);
        if (!put) {
            return fail(std::move(put.error()));
        }
        if (*put || has_content(folder / taken, bytes)) {
            const auto slash = wanted.name.rfind('/');
            wanted.name.resize(slash == std::string::npos ? 0 : slash + 1);
            wanted.name += taken;
            return wanted;
        }
        taken = numbered(name, number);
    }
    return fail(Code::storage_unavailable, "there are too many files of this name");
}

std::vector<std::string> list_newest_first(const fs::path& folder) {
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code unreadable;
        std::string name = entry->path().filename().string();
        if (entry->is_regular_file(unreadable) && !name.starts_with('.') &&
            found.size() < kListedMax) {
            found.emplace_back(entry->last_write_time(unreadable), std::move(name));
        }
    }
    std::ranges::sort(found, std::greater<>());
    std::vector<std::string> names;
    for (auto& [time, name] : found) {
        names.push_back(std::move(name));
    }
    return names;
}

}  // namespace comfyd::standalone
