#include "models/contents.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "models/wish.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kIndexBytesMax = 64 * 1024 * 1024;
constexpr std::int64_t kOldPartMs = std::int64_t{7} * 24 * 3600 * 1000;
constexpr std::string_view kPart = ".part";

std::int64_t now_ms() {
    return to_unix_ms(SystemClock().now());
}

std::int64_t to_ms(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

// A member that is an object, made where there is none.
json::object& section(json::object& index, std::string_view name) {
    json::value& member = index[boost::json::string_view(name.data(), name.size())];
    if (!member.is_object()) {
        member = json::object();
    }
    return member.get_object();
}

const json::object* find_section(const json::object& index, std::string_view name) {
    const json::value* member = json::find(index, name);
    return member == nullptr ? nullptr : member->if_object();
}

const json::object* find_content(const json::object& index, const std::string& sha256) {
    const json::object* contents = find_section(index, "contents");
    return contents == nullptr ? nullptr : find_section(*contents, sha256);
}

std::vector<std::string> texts_of(const json::object* in, std::string_view name) {
    std::vector<std::string> texts;
    const json::value* list = in == nullptr ? nullptr : json::find(*in, name);
    if (list != nullptr && list->is_array()) {
        for (const json::value& item : list->get_array()) {
            if (item.is_string()) {
                texts.emplace_back(item.get_string());
            }
        }
    }
    return texts;
}

// Whether a program has it open or mapped: the kernel gives a lease on a file only to who is alone
// with it. Where it gives none at all, nobody knows, and the file counts as in use.
bool is_in_use(const fs::path& path) {
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    // Who opens it just now waits until we have closed it, and we are told by a signal, which is to
    // be one that ends nobody.
    return !file || ::fcntl(file.number(), F_SETSIG, SIGURG) != 0 ||
           ::fcntl(file.number(), F_SETLEASE, F_WRLCK) != 0;
}

bool leads_to(const fs::path& link, const fs::path& content) {
    std::error_code error;
    return fs::read_symlink(link, error) == content && !error;
}

Result<std::string> hash_of(const fs::path& path, const std::function<bool()>& stop) {
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(
        EVP_MD_CTX_new(), EVP_MD_CTX_free
    );
    if (!file || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
        return disk_error(path, errno);
    }
    constexpr std::size_t kReadBytes = 1024 * 1024;
    std::string room(kReadBytes, '\0');
    ssize_t count = 1;
    while (count > 0) {
        if (stop()) {
            return fail(Code::cancelled, "the reading of a model was given up");
        }
        count = ::read(file.number(), room.data(), room.size());
        if (count > 0) {
            EVP_DigestUpdate(context.get(), room.data(), static_cast<std::size_t>(count));
        }
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (count < 0 || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) {
        return disk_error(path, count < 0 ? errno : EIO);
    }
    return to_hex(digest.data(), size);
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
    std::error_code error;
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
    auto hash = hash_of(path, stop);
    if (!hash) {
        return fail(std::move(hash.error()));
    }
    found.sha256 = *hash;
    auto held = lock();
    json::object index = read_index();
    section(index, "foreign")[mark] = *hash;
    static_cast<void>(write_index(index));  // it is read again then
    return std::optional(std::move(found));
}

std::vector<Contents::Entry> Contents::entries(const json::object& index) const {
    std::vector<Entry> found;
    std::error_code error;
    for (fs::directory_iterator file(options_.folder, error), end; !error && file != end;
         file.increment(error)) {
        const std::string name = file->path().filename();
        struct stat status{};
        const bool is_part = name.ends_with(kPart);
        if ((!is_part && !is_sha256(name)) || ::lstat(file->path().c_str(), &status) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        Entry entry{name, static_cast<std::uint64_t>(status.st_size), 0, is_part};
        const json::object* about = find_content(index, name);
        const json::value* used = about == nullptr ? nullptr : json::find(*about, "used");
        entry.used_ms = is_part ? to_ms(status.st_mtim) : to_ms(status.st_atim);
        if (used != nullptr && used->is_int64()) {
            entry.used_ms = std::max(entry.used_ms, used->get_int64());
        }
        found.push_back(std::move(entry));
    }
    return found;
}

bool Contents::is_pinned(const json::object& index, const std::string& sha256) const {
    const auto links = texts_of(find_content(index, sha256), "links");
    const json::object* pins = find_section(index, "pins");
    if (pins == nullptr) {
        return false;
    }
    for (const auto& [owner, paths] : *pins) {
        for (const std::string& path : texts_of(pins, view(owner))) {
            const bool leads =
                std::ranges::find(links, path) != links.end() && leads_to(path, path_of(sha256));
            if (leads) {
                return true;
            }
        }
    }
    return false;
}

// Links first, so that there is never a dead one. False: somebody uses it.
bool Contents::give_up(const Entry& entry, json::object& index) const {
    const fs::path path = options_.folder / entry.file;
    if (entry.is_part) {
        const std::string key = entry.file.substr(0, entry.file.size() - kPart.size());
        auto part = PartFile::open(options_.folder, key);
        if (part) {
            part->discard();
        }
        return part.has_value();
    }
    std::error_code ignored;
    for (const std::string& link : texts_of(find_content(index, entry.file), "links")) {
        if (leads_to(link, path)) {
            fs::remove(link, ignored);
        }
    }
    fs::remove(path, ignored);
    section(index, "contents").erase(entry.file);
    return true;
}

Result<> Contents::make_room(std::uint64_t bytes) {
    auto held = lock();
    if (!held) {
        return fail(std::move(held.error()));
    }
    json::object index = read_index();
    std::vector<Entry> all = entries(index);
    std::uint64_t total = bytes;
    for (const Entry& entry : all) {
        total += entry.bytes;
    }
    std::error_code error;
    const auto space = fs::space(options_.folder, error);
    const std::uint64_t free = error ? bytes : space.available;
    const std::uint64_t limit = options_.bytes_max;
    const std::uint64_t over = limit != 0 && total > limit ? total - limit : 0;
    const std::uint64_t needed = std::max(over, bytes > free ? bytes - free : 0);
    if (needed == 0) {
        return {};
    }
    std::erase_if(all, [&](const Entry& entry) {
        return !entry.is_part &&
               (is_pinned(index, entry.file) || is_in_use(options_.folder / entry.file));
    });
    std::ranges::sort(all, {}, &Entry::used_ms);
    std::uint64_t possible = 0;
    for (const Entry& entry : all) {
        possible += entry.is_part ? 0 : entry.bytes;
    }
    std::uint64_t freed = 0;
    // Nothing is given up where that would not be enough.
    for (const Entry& entry : all) {
        if (freed < needed && (entry.is_part || possible >= needed) && give_up(entry, index)) {
            freed += entry.bytes;
            log::info(
                "a model was given up for another", {{"file", entry.file}, {"bytes", entry.bytes}}
            );
        }
    }
    static_cast<void>(write_index(index));
    if (freed >= needed) {
        return {};
    }
    return fail(
        Code::storage_full,
        "there is no room for " + std::to_string(bytes) + " bytes more of models: " +
            (over > 0 ? "the cache may have " + std::to_string(limit) + " bytes"
                      : "the disk has " + std::to_string(free) + " bytes left") +
            ", and what is there is pinned or in use"
    );
}

}  // namespace comfyd::models
