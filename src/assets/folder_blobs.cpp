#include "assets/folder_blobs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "assets/content_type.hpp"
#include "assets/files.hpp"
#include "assets/guarded.hpp"
#include "assets/incoming.hpp"
#include "base/crypto.hpp"
#include "base/disk.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrefixes = 256;  // folders, by the first byte of the hash
constexpr std::size_t kHashAt = std::string_view("blake3:").size();

Time modified_at(const struct stat& status) {
    return Time(std::chrono::seconds(status.st_mtim.tv_sec)) +
           std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
}

}  // namespace

FolderBlobs::FolderBlobs(fs::path directory, Millis young, Clock& clock, Pool& pool)
    : blobs_(directory / "blobs"), young_(young), clock_(clock), pool_(pool) {}

Result<> FolderBlobs::open() {
    const fs::path directory = blobs_.parent_path();
    if (auto made = make_folder(blobs_); !made) {
        return made;
    }
    // All at once, so that a blob never waits for its folder to be on disk.
    for (unsigned prefix = 0; prefix < kPrefixes; ++prefix) {
        const auto byte = static_cast<std::uint8_t>(prefix);
        auto made = make_folder(blobs_ / to_hex(&byte, 1));
        if (!made) {
            return made;
        }
    }
    for (const fs::path& folder : {blobs_, directory}) {
        auto synced = sync_folder(folder);
        if (!synced) {
            return synced;
        }
    }
    return {};
}

Task<Result<Blob>> FolderBlobs::put(Incoming& content) {
    return pool_.run(guarded([this, &content] { return publish(content); }));
}

Task<Result<std::optional<HashedBlobs::Place>>> FolderBlobs::find(std::string hash) {
    return pool_.run(guarded([this, hash = std::move(hash)] { return look_for(hash); }));
}

Task<Result<std::string>> FolderBlobs::read(std::string hash, std::uint64_t bytes_max) {
    return pool_.run(guarded([this, hash = std::move(hash), bytes_max]() -> Result<std::string> {
        if (!is_blake3_name(hash)) {
            return fail(Code::not_found, "there is no blob '" + hash + "'");
        }
        return read_file(path_of(hash), bytes_max);
    }));
}

Task<Result<bool>> FolderBlobs::keep(std::string hash) {
    return pool_.run(guarded([this, hash = std::move(hash)] { return make_young(hash); }));
}

Task<Result<HashedBlobs::Removal>> FolderBlobs::remove_unless_young(std::string hash) {
    return pool_.run(guarded([this, hash = std::move(hash)] { return remove(hash); }));
}

Task<Result<std::vector<std::string>>> FolderBlobs::old_ones(std::uint8_t first_byte) {
    return pool_.run(guarded([this, first_byte] { return list_old(first_byte); }));
}

Result<Blob> FolderBlobs::publish(Incoming& content) {
    if (content.failure()) {
        return fail(*content.failure());
    }
    Blob blob{.hash = content.hash(), .size_bytes = content.size(), .is_new = false};
    const fs::path target = path_of(blob.hash);
    auto reused = [&] {
        const Lock lock(mutex_);
        return reuse(target, blob.size_bytes);
    }();
    if (reused && !*reused) {
        if (auto synced = content.sync(clock_.now()); !synced) {
            return fail(std::move(synced.error()));
        }
        const Lock lock(mutex_);
        reused = reuse(target, blob.size_bytes);  // somebody may have been faster
        if (reused && !*reused) {
            if (auto moved = content.move_to(target); !moved) {
                return fail(std::move(moved.error()));
            }
            blob.is_new = true;
        }
    }
    if (!reused) {
        return fail(reused.error());
    }
    // Also for a reused one: whoever wrote it may not have come to this yet.
    auto synced = sync_folder(target.parent_path());
    return synced ? Result<Blob>(std::move(blob)) : fail(synced.error());
}

// Under the lock. A file of another size is not what its name says (a damaged disk): it is
// replaced.
Result<bool> FolderBlobs::reuse(const fs::path& blob, std::uint64_t size) {
    struct stat status{};
    if (::stat(blob.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<bool>(false) : fail(storage_error("read", blob, errno));
    }
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != size) {
        return false;
    }
    const timespec now = to_timespec(clock_.now());
    const timespec times[2] = {now, now};
    if (utimensat(AT_FDCWD, blob.c_str(), times, 0) != 0) {
        return fail(storage_error("write", blob, errno));
    }
    return true;
}

Result<std::optional<HashedBlobs::Place>> FolderBlobs::look_for(const std::string& hash) const {
    if (!is_blake3_name(hash)) {
        return std::nullopt;
    }
    fs::path path = path_of(hash);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<std::optional<Place>>(std::nullopt)
                               : fail(storage_error("read", path, errno));
    }
    return Place{std::move(path), static_cast<std::uint64_t>(status.st_size)};
}

Result<bool> FolderBlobs::make_young(const std::string& hash) {
    if (!is_blake3_name(hash)) {
        return false;
    }
    const fs::path path = path_of(hash);
    const Lock lock(mutex_);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<bool>(false) : fail(storage_error("read", path, errno));
    }
    return reuse(path, static_cast<std::uint64_t>(status.st_size));
}

Result<HashedBlobs::Removal> FolderBlobs::remove(const std::string& hash) {
    if (!is_blake3_name(hash)) {
        return Removal::absent;
    }
    const fs::path path = path_of(hash);
    const Lock lock(mutex_);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<Removal>(Removal::absent)
                               : fail(storage_error("read", path, errno));
    }
    if (is_young(modified_at(status))) {
        return Removal::too_young;
    }
    if (::unlink(path.c_str()) != 0) {
        return fail(storage_error("remove", path, errno));
    }
    return Removal::removed;
}

Result<std::vector<std::string>> FolderBlobs::list_old(std::uint8_t first_byte) const {
    const std::string start = to_hex(&first_byte, 1);
    const fs::path folder = blobs_ / start;
    std::vector<std::string> hashes;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        struct stat status{};
        if (name.size() == 62 && is_hex(name) && ::stat(at->path().c_str(), &status) == 0 &&
            !is_young(modified_at(status))) {
            hashes.push_back("blake3:" + start + name);
        }
    }
    if (error) {
        return fail(storage_error("list", folder, error.value()));
    }
    return hashes;
}

fs::path FolderBlobs::path_of(const std::string& hash) const {
    return blobs_ / hash.substr(kHashAt, 2) / hash.substr(kHashAt + 2);
}

Result<> FolderBlobs::sync_folder(const fs::path& folder) const {
    const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!handle.is_open() || fsync(handle.get()) != 0) {
        return fail(storage_error("write", folder, errno));
    }
    return {};
}

// A time in the future counts as young: clocks are set back at times, and nothing is lost by
// waiting.
bool FolderBlobs::is_young(Time modified) const {
    return modified > clock_.now() - young_;
}

std::unique_ptr<HashedBlobs> make_hashed_blobs(
    HashedBlobsOptions options, Clock& clock, Pool& pool
) {
    return std::make_unique<FolderBlobs>(std::move(options.directory), options.young, clock, pool);
}

}  // namespace comfyd::assets
