#include "comfy/user_store.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/disk.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace comfyd::comfy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettingsFile = "comfy.settings.json";
constexpr int kDepthMax = 32;

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

// As GET /v2/userdata tells of it.
struct Entry {
    UserFile file;
    bool is_folder = false;

    std::string name() const { return fs::path(file.path).filename().string(); }
    std::pair<bool, std::string> order() const { return {!is_folder, lower(name())}; }
    json::object to_json() const {
        json::object object;
        object["name"] = name();
        object["path"] = file.path;
        object["type"] = is_folder ? "directory" : "file";
        if (!is_folder) {
            object["size"] = file.size;
            object["modified"] = static_cast<double>(file.modified) / 1'000;  // seconds, here only
        }
        return object;
    }
};

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
    const auto inner = confined(folder_, name);
    if (!inner) {
        return fail(Code::forbidden, "the name leads out of the user's folder");
    }
    fs::path place = inner->lexically_normal();
    return place.has_filename() ? place : place.parent_path();
}

Result<UserFile> UserStore::about(const fs::path& path) const {
    return describe(path, folder_);
}

bool UserStore::exists() const {
    std::error_code error;
    return fs::is_directory(folder_, error);
}

Result<> UserStore::check_name(std::string_view name) const {
    auto place = place_of(name);
    return place ? Result<>() : fail(std::move(place.error()));
}

Result<> UserStore::check_share(std::uint64_t added) const {
    constexpr UserLimits kUnlimited;
    if (limits_.files_max == kUnlimited.files_max && limits_.bytes_max == kUnlimited.bytes_max) {
        return {};
    }
    std::size_t files = 1;
    std::uint64_t bytes = added;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code unreadable;
        if (entry->is_regular_file(unreadable)) {
            const auto size = entry->file_size(unreadable);
            ++files;
            bytes += unreadable ? 0 : size;
        }
        if (files > limits_.files_max || bytes > limits_.bytes_max) {
            return fail(Code::storage_full, "this user has too many or too large files stored");
        }
    }
    return {};
}

Result<json::object> UserStore::settings() const {
    auto text = read_file(folder_ / kSettingsFile, limits_.settings_bytes_max);
    if (!text && text.error().code == Code::not_found) {
        return json::object();
    }
    if (!text) {
        return fail(std::move(text.error()));
    }
    auto parsed = json::parse_object(*text);
    if (!parsed) {
        log::warning(
            "settings are damaged and not used", {{"file", (folder_ / kSettingsFile).string()}}
        );
        return json::object();
    }
    return parsed;
}

void UserStore::put_damaged_aside() const {
    const fs::path path = folder_ / kSettingsFile;
    const auto text = read_file(path, limits_.settings_bytes_max);
    if (text && !json::parse_object(*text)) {
        std::error_code ignored;
        fs::rename(path, path.string() + ".damaged", ignored);
    }
}

Result<> UserStore::change_settings(const json::object& changes) {
    const Lock lock(mutex_);
    auto all = settings();
    if (!all) {
        return fail(std::move(all.error()));
    }
    if (all->empty()) {
        put_damaged_aside();
    }
    for (const auto& [key, value] : changes) {
        (*all)[key] = value;
    }
    const std::string text = json::serialize(*all);
    if (text.size() > limits_.settings_bytes_max) {
        return fail(Code::payload_too_large, "the settings are too large");
    }
    return write_file(folder_ / kSettingsFile, text);
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
    if (!fs::exists(*place, error)) {
        return folder.empty() ? Result<json::array>(json::array())
                              : fail(Code::not_found, "there is no such folder");
    }
    if (!fs::is_directory(*place, error)) {
        return fail(Code::invalid_argument, "this is no folder");
    }
    std::vector<Entry> found;
    for (fs::recursive_directory_iterator entry(*place, error), end; !error && entry != end;
         entry.increment(error)) {
        if (found.size() >= kListedMax || entry.depth() > kDepthMax) {
            break;
        }
        std::error_code unreadable;
        found.push_back({describe(entry->path(), folder_), entry->is_directory(unreadable)});
    }
    std::ranges::sort(found, {}, &Entry::order);
    json::array list;
    for (const Entry& entry : found) {
        list.push_back(entry.to_json());
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
    const Lock lock(mutex_);
    std::error_code error;
    if (fs::is_directory(*place, error)) {
        return fail(Code::conflict, "there is a folder of this name");
    }
    if (!overwrite && fs::exists(*place, error)) {
        return fail(Code::conflict, "File already exists");
    }
    if (auto fits = check_share(bytes.size()); !fits) {
        return fail(std::move(fits.error()));
    }
    if (auto written = write_file(*place, bytes); !written) {
        return fail(std::move(written.error()));
    }
    return about(*place);
}

Result<> UserStore::remove(std::string_view file) {
    const Lock lock(mutex_);
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
    const Lock lock(mutex_);
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
