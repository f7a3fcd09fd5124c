// The cache of models: what goes when it is full.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "models/contents.hpp"
#include "models/contents_notes.hpp"
#include "models/wish.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPart = ".part";

std::int64_t to_ms(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
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

}  // namespace

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
