#include "models/contents.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/disk.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "models/contents_notes.hpp"
#include "models/hash_file.hpp"
#include "models/wish.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kIndexBytesMax = 64 * 1024 * 1024;
constexpr std::int64_t kOldPartMs = std::int64_t{7} * 24 * 3600 * 1000;

std::int64_t now_ms() {
    return to_unix_ms(SystemClock().now());
}

std::int64_t to_ms(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

}  // namespace

fs::path Contents::path_of(const std::string& sha256) const {
    return options_.folder / sha256;
}

Result<net::Descriptor> Contents::lock() const {
    const fs::path path = options_.folder / "index.lock";
    net::Descriptor held(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    while (held && ::flock(held.number(), LOCK_EX) != 0) {
        if (errno != EINTR) {
            return disk_error(path, errno);
        }
    }
    if (!held) {
        return disk_error(path, errno);
    }
    return held;
}

json::object Contents::read_index() const {
    const auto text = read_file(options_.folder / "index.json", kIndexBytesMax);
    auto index = text ? json::parse_object(*text) : Result<json::object>(fail(text.error()));
    return index ? std::move(*index) : json::object();
}

Result<> Contents::write_index(const json::object& index) const {
    return write_file(options_.folder / "index.json", json::serialize(index));
}

Result<> Contents::open() {
    std::error_code error;
    for (fs::path* path : {&options_.folder, &options_.models, &options_.owner}) {
        *path = fs::absolute(*path).lexically_normal();
    }
    fs::create_directories(options_.folder, error);
    if (error) {
        return disk_error(options_.folder, error.value());
    }
    auto held = lock();
    if (!held) {
        return fail(std::move(held.error()));
    }
    json::object index = read_index();
    json::object& pins = section(index, "pins");
    json::object kept;
    for (const auto& [owner, paths] : pins) {
        if (fs::is_directory(fs::path(view(owner)), error)) {
            kept[owner] = paths;
        }
    }
    json::array own;
    for (const std::string& path : options_.pinned) {
        own.emplace_back((options_.models / path).string());
    }
    kept[options_.owner.string()] = std::move(own);
    pins = std::move(kept);
    for (const Entry& entry : entries(index)) {
        if (entry.is_part && entry.used_ms < now_ms() - kOldPartMs) {
            give_up(entry, index);
        }
    }
    return write_index(index);
}

std::optional<std::uint64_t> Contents::find(const std::string& sha256) {
    struct stat status{};
    if (!is_sha256(sha256) || ::lstat(path_of(sha256).c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode)) {
        return std::nullopt;
    }
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    const auto held = lock();
    json::object index = read_index();
    json::object& content = section(section(index, "contents"), sha256);
    const json::value* known = json::find(content, "bytes");
    if (known != nullptr && *known != json::value(bytes)) {
        log::warning("a model of the cache was changed: it is given up", {{"sha256", sha256}});
        give_up({sha256, bytes, 0, false}, index);
        static_cast<void>(write_index(index));
        return std::nullopt;
    }
    content["bytes"] = bytes;
    content["used"] = now_ms();
    static_cast<void>(write_index(index));  // it is the order of giving up that is lost
    return bytes;
}

std::optional<Origin> Contents::origin(const std::string& source) const {
    const json::object index = read_index();
    const json::object* sources = find_section(index, "sources");
    const json::object* known = sources == nullptr ? nullptr : find_section(*sources, source);
    if (known == nullptr) {
        return std::nullopt;
    }
    const auto sha256 = json::find_string(*known, "sha256");
    const auto etag = json::find_string(*known, "etag");
    if (!sha256 || !*sha256 || !etag) {
        return std::nullopt;
    }
    return Origin{**sha256, etag->value_or("")};
}

json::object Contents::about(const std::string& sha256) const {
    const json::object index = read_index();
    const json::object* content = find_content(index, sha256);
    return content == nullptr ? json::object() : *content;
}

Result<> Contents::note(
    const PartFile::Content& content, const std::string& source, const std::string& etag
) {
    auto held = lock();
    if (!held) {
        return fail(std::move(held.error()));
    }
    json::object index = read_index();
    json::object& about = section(section(index, "contents"), content.sha256);
    about["bytes"] = content.bytes;
    about["used"] = now_ms();
    if (content.info) {
        about["dtype"] = content.info->dtype;
        about["tensors"] = content.info->tensors;
        about["kind"] = content.info->family.kind;
        about["family"] = content.info->family.name;
    }
    section(index, "sources")[source] = json::object{{"sha256", content.sha256}, {"etag", etag}};
    return write_index(index);
}

Result<> Contents::link(
    const std::string& folder, const std::string& name, const std::string& sha256
) {
    const fs::path content = path_of(sha256);
    const fs::path path = options_.models / folder / name;
    auto held = lock();
    if (!held) {
        return fail(std::move(held.error()));
    }
    std::error_code error;
    if (!fs::exists(content, error)) {
        return fail(
            Code::storage_full,
            "'" + folder + "/" + name + "' was given up for another model as soon as it was there"
        );
    }
    json::object index = read_index();
    // Before the link is there: one that nobody knows of would be dead some day.
    auto links = texts_of(find_content(index, sha256), "links");
    if (std::ranges::find(links, path.string()) == links.end()) {
        links.push_back(path);
        section(section(index, "contents"), sha256)["links"] =
            json::array(links.begin(), links.end());
        if (auto written = write_index(index); !written) {
            return written;
        }
    }
    if (leads_to(path, content)) {
        return {};
    }
    const fs::path led = fs::read_symlink(path, error);
    const bool is_ours = !error && led.parent_path() == options_.folder;
    if (!is_ours && fs::symlink_status(path, error).type() != fs::file_type::not_found) {
        return fail(
            Code::conflict,
            "'" + folder + "/" + name + "' is there already, and was not put there by comfyd"
        );
    }
    fs::create_directories(path.parent_path(), error);
    // A new name beside it and a rename: ComfyUI sees one or the other, and that its folder
    // changed.
    const fs::path fresh = path.parent_path() / (".comfyd-" + sha256.substr(0, 16));
    fs::remove(fresh, error);
    fs::create_symlink(content, fresh, error);
    if (!error) {
        fs::rename(fresh, path, error);
    }
    if (error) {
        const int number = error.value();
        fs::remove(fresh, error);
        return disk_error(path, number);
    }
    return {};
}

Result<std::optional<Contents::Foreign>> Contents::find_foreign(
    const std::string& folder,
    const std::string& name,
    bool with_hash,
    const std::function<bool()>& stop
) {
    const fs::path path = options_.models / folder / name;
    std::error_code error;
    const fs::path led = fs::read_symlink(path, error);
    struct stat status{};
    if ((!error && led.parent_path() == options_.folder) || ::stat(path.c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode)) {
        return std::optional<Foreign>();
    }
    Foreign found{static_cast<std::uint64_t>(status.st_size), {}};
    if (!with_hash) {
        return std::optional(std::move(found));
    }
    const std::string mark = path.string() + "|" + std::to_string(found.bytes) + "|" +
                             std::to_string(to_ms(status.st_mtim));
    {
        const json::object index = read_index();
        const json::object* hashes = find_section(index, "foreign");
        const auto known = hashes == nullptr ? Result<std::optional<std::string>>(std::nullopt)
                                             : json::find_string(*hashes, mark);
        if (known && *known) {
            found.sha256 = **known;
            return std::optional(std::move(found));
        }
    }
    found.sha256 = hash_file(path, stop);
    if (found.sha256.empty()) {
        return fail(
            stop() ? Code::cancelled : Code::storage_unavailable,
            "'" + folder + "/" + name + "' cannot be read"
        );
    }
    auto held = lock();
    json::object index = read_index();
    section(index, "foreign")[mark] = found.sha256;
    static_cast<void>(write_index(index));  // it is read again then
    return std::optional(std::move(found));
}

}  // namespace comfyd::models
