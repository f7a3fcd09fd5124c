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
constexpr std::uint64_t kBlock = 512;  // of stat()

std::uint64_t beyond(std::uint64_t wanted, std::uint64_t had) {
    return wanted > had ? wanted - had : 0;
}

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
        entry.claimed = PartFile::claimed_by(file->path());
        entry.on_disk = static_cast<std::uint64_t>(status.st_blocks) * kBlock;
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

// The least recently used, until so many bytes are free; gives how many are not. No content is
// given up where that would not be enough.
std::uint64_t Contents::free(std::vector<Entry> entries, json::object& index, std::uint64_t needed)
    const {
    std::erase_if(entries, [&](const Entry& entry) {
        return entry.claimed > 0 || (!entry.is_part && (is_pinned(index, entry.file) ||
                                                        is_in_use(options_.folder / entry.file)));
    });
    std::ranges::sort(entries, {}, &Entry::used_ms);
    std::uint64_t possible = 0;
    for (const Entry& entry : entries) {
        possible += entry.is_part ? 0 : entry.bytes;
    }
    const bool is_enough = possible >= needed;
    std::uint64_t freed = 0;
    for (const Entry& entry : entries) {
        if (freed < needed && (entry.is_part || is_enough) && give_up(entry, index)) {
            freed += entry.bytes;
            log::info(
                "a model was given up for another", {{"file", entry.file}, {"bytes", entry.bytes}}
            );
        }
    }
    static_cast<void>(write_index(index));
    return beyond(needed, is_enough ? freed : freed + possible);
}

Result<bool> Contents::make_room(PartFile& part, std::uint64_t total) {
    auto held = lock();
    if (!held) {
        return fail(std::move(held.error()));
    }
    json::object index = read_index();
    std::vector<Entry> others = entries(index);
    std::uint64_t to_come = total;  // to the disk
    std::erase_if(others, [&](const Entry& entry) {
        const bool is_own = entry.file == part.name();
        to_come = is_own ? beyond(total, entry.on_disk) : to_come;
        return is_own;
    });
    std::uint64_t taken = total;  // of the cache
    std::uint64_t promised = 0;   // of that, to others that are on their way
    for (const Entry& entry : others) {
        taken += std::max(entry.bytes, entry.claimed);
        promised += entry.claimed;
        to_come += beyond(entry.claimed, entry.on_disk);
    }
    std::error_code error;
    const auto space = fs::space(options_.folder, error);
    const std::uint64_t left = error ? to_come : space.available;
    const std::uint64_t limit = options_.bytes_max;
    const std::uint64_t over = limit != 0 ? beyond(taken, limit) : 0;
    const std::uint64_t needed = std::max(over, beyond(to_come, left));
    const std::uint64_t missing = needed == 0 ? 0 : free(std::move(others), index, needed);
    if (missing == 0) {
        part.claim(total);
        return true;
    }
    // What those bring may be given up when it is there, and what they do not bring is free.
    if (missing <= promised && !part.has_claimed()) {
        return false;
    }
    return fail(
        Code::storage_full,
        "there is no room for a model of " + std::to_string(total) + " bytes: " +
            (over > 0 ? "the cache may have " + std::to_string(limit) + " bytes"
                      : "the disk has " + std::to_string(left) + " bytes left") +
            ", and what is there is pinned, in use or on its way"
    );
}

}  // namespace comfyd::models
