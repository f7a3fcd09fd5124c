#include "comfy/user_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/id.hpp"

namespace comfyd::comfy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettingsFile = "comfy.settings.json";
constexpr std::size_t kPathBytesMax = 1'024;
constexpr std::size_t kNameBytesMax = 255;
constexpr int kDepthMax = 32;

tl::unexpected<Error> disk_error(const fs::path& path, int number) {
    const bool full = number == ENOSPC || number == EDQUOT;
    return fail(
        full ? Code::storage_full : Code::storage_unavailable,
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

// Written beside and renamed, so that a reader sees the old or the new file.
Result<> write_whole(const fs::path& path, std::string_view bytes) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
        return disk_error(path, error.value());
    }
    const fs::path beside =
        path.parent_path() / (".new-" + Uuid::make(SystemClock().now()).to_string());
    const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write_all(fd, bytes) && ::fsync(fd) == 0;
    int number = done ? 0 : errno;
    if (fd >= 0) {
        ::close(fd);
    }
    if (done && ::rename(beside.c_str(), path.c_str()) != 0) {
        number = errno;
        done = false;
    }
    if (!done) {
        ::unlink(beside.c_str());
        return disk_error(path, number);
    }
    return {};
}

std::int64_t to_ms(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000 + time.tv_nsec / 1'000'000;
}

bool is_hidden(const fs::path& path) {
    return path.filename().native().starts_with('.');
}

UserFile describe(const fs::path& path, const fs::path& relative_to) {
    UserFile file;
    file.path = path.lexically_relative(relative_to).generic_string();
    struct stat about{};
    if (::stat(path.c_str(), &about) == 0) {
        file.size = static_cast<std::uint64_t>(about.st_size);
        file.modified = to_ms(about.st_mtim);
        file.created = to_ms(about.st_ctim);
    }
    return file;
}

void collect(const fs::path& folder, const fs::path& root, int depth, std::vector<UserFile>& into) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (is_hidden(entry->path()) || into.size() >= UserStore::kListedMax) {
            continue;
        }
        std::error_code unreadable;
        if (entry->is_regular_file(unreadable)) {
            into.push_back(describe(entry->path(), root));
        } else if (depth > 0 && entry->is_directory(unreadable)) {
            collect(entry->path(), root, depth - 1, into);
        }
    }
}

}  // namespace

json::object UserFile::to_json() const {
    json::object object;
    object["path"] = path;
    object["size"] = size;
    object["modified"] = modified;
    object["created"] = created;
    return object;
}

json::array to_json(const std::vector<UserFile>& files, bool full_info, bool split) {
    json::array list;
    for (const UserFile& file : files) {
        if (full_info) {
            list.push_back(file.to_json());
        } else if (split) {
            json::array parts{json::value(file.path)};
            for (const fs::path& part : fs::path(file.path)) {
                parts.emplace_back(part.string());
            }
            list.push_back(std::move(parts));
        } else {
            list.emplace_back(file.path);
        }
    }
    return list;
}

Result<fs::path> UserStore::place_of(std::string_view name) const {
    const bool is_plain = !name.empty() && name.size() <= kPathBytesMax && name.front() != '/' &&
                          name.find('\0') == std::string_view::npos &&
                          name.find('\\') == std::string_view::npos;
    const fs::path path = is_plain ? fs::path(name).lexically_normal() : fs::path("..");
    for (const fs::path& part : path) {
        if (part == ".." || part.native().size() > kNameBytesMax) {
            return fail(Code::forbidden, "the name leads out of the user's folder");
        }
    }
    fs::path place = (folder_ / path).lexically_normal();
    return place.has_filename() ? place : place.parent_path();
}

Result<UserFile> UserStore::about(const fs::path& path) const {
    return describe(path, folder_);
}

Result<json::object> UserStore::settings() const {
    const fs::path path = folder_ / kSettingsFile;
    std::error_code error;
    if (!fs::exists(path, error)) {
        return json::object();
    }
    if (fs::file_size(path, error) > kSettingsBytesMax || error) {
        return fail(Code::storage_unavailable, "the settings are too large");
    }
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    auto parsed = json::parse_object(text);
    if (!in || !parsed) {
        return fail(
            Code::storage_unavailable,
            "the settings in '" + path.string() + "' cannot be read: repair or remove that file"
        );
    }
    return parsed;
}

Result<> UserStore::change_settings(const json::object& changes) {
    const std::lock_guard lock(mutex_);
    auto all = settings();
    if (!all) {
        return fail(std::move(all.error()));
    }
    for (const auto& [key, value] : changes) {
        (*all)[key] = value;
    }
    const std::string text = json::serialize(*all);
    if (text.size() > kSettingsBytesMax) {
        return fail(Code::payload_too_large, "the settings would be too large");
    }
    return write_whole(folder_ / kSettingsFile, text);
}

Result<std::vector<UserFile>> UserStore::list(std::string_view folder, bool recurse) const {
    auto place = place_of(folder);
    if (!place) {
        return fail(std::move(place.error()));
    }
    std::error_code error;
    if (!fs::is_directory(*place, error)) {
        return fail(Code::not_found, "there is no such folder");
    }
    std::vector<UserFile> files;
    collect(*place, *place, recurse ? kDepthMax : 0, files);
    std::ranges::sort(files, {}, &UserFile::path);
    return files;
}

Result<json::array> UserStore::entries(std::string_view folder) const {
    auto place = folder.empty() ? Result<fs::path>(folder_) : place_of(folder);
    if (!place) {
        return fail(std::move(place.error()));
    }
    std::error_code error;
    if (!fs::is_directory(*place, error)) {
        return folder.empty() ? Result<json::array>(json::array())
                              : fail(Code::not_found, "there is no such folder");
    }
    json::array list;
    for (fs::directory_iterator entry(*place, error), end; !error && entry != end;
         entry.increment(error)) {
        if (list.size() >= kListedMax) {
            break;
        }
        const UserFile file = describe(entry->path(), folder_);
        std::error_code unreadable;
        json::object object;
        object["name"] = entry->path().filename().string();
        object["path"] = file.path;
        const bool is_folder = entry->is_directory(unreadable);
        object["type"] = is_folder ? "directory" : "file";
        if (!is_folder) {
            object["size"] = file.size;
            object["modified"] = file.modified;
        }
        list.push_back(std::move(object));
    }
    return list;
}

Result<fs::path> UserStore::find(std::string_view file) const {
    auto place = place_of(file);
    if (!place) {
        return place;
    }
    std::error_code error;
    if (!fs::is_regular_file(*place, error)) {
        return fail(Code::not_found, "there is no such file");
    }
    return place;
}

Result<UserFile> UserStore::write(std::string_view file, std::string_view bytes, bool overwrite) {
    auto place = place_of(file);
    if (!place) {
        return fail(std::move(place.error()));
    }
    const std::lock_guard lock(mutex_);
    std::error_code error;
    if (fs::is_directory(*place, error)) {
        return fail(Code::conflict, "there is a folder of this name");
    }
    if (!overwrite && fs::exists(*place, error)) {
        return fail(Code::conflict, "File already exists");
    }
    if (auto written = write_whole(*place, bytes); !written) {
        return fail(std::move(written.error()));
    }
    return about(*place);
}

Result<> UserStore::remove(std::string_view file) {
    const std::lock_guard lock(mutex_);
    auto place = find(file);
    if (!place) {
        return fail(std::move(place.error()));
    }
    std::error_code error;
    if (!fs::remove(*place, error)) {
        return disk_error(*place, error.value());
    }
    return {};
}

Result<UserFile> UserStore::move(std::string_view from, std::string_view to, bool overwrite) {
    const std::lock_guard lock(mutex_);
    auto source = find(from);
    if (!source) {
        return fail(std::move(source.error()));
    }
    auto target = place_of(to);
    if (!target) {
        return fail(std::move(target.error()));
    }
    std::error_code error;
    if (fs::is_directory(*target, error) || (!overwrite && fs::exists(*target, error))) {
        return fail(Code::conflict, "File already exists");
    }
    fs::create_directories(target->parent_path(), error);
    fs::rename(*source, *target, error);
    if (error) {
        return disk_error(*target, error.value());
    }
    return about(*target);
}

}  // namespace comfyd::comfy
