#include "assets/folder_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/files.hpp"
#include "assets/guarded.hpp"
#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/id.hpp"
#include "base/log.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrefixes = 256;  // folders, by the first byte of the hash
constexpr std::size_t kCopyBytes = 1024 * 1024;

Time modified_at(const struct stat& status) {
    return Time(std::chrono::seconds(status.st_mtim.tv_sec)) +
           std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

Result<> sync_folder(const fs::path& folder) {
    const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!handle.is_open() || fsync(handle.get()) != 0) {
        return fail(storage_error("write", folder, errno));
    }
    return {};
}

Result<> copy_bytes(const fs::path& from, const fs::path& to, int into) {
    const FileHandle file(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) {
        return fail(storage_error("read", from, errno));
    }
    std::string piece(kCopyBytes, '\0');
    for (;;) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail(storage_error("read", from, errno));
        }
        if (count == 0) {
            return {};
        }
        if (!write_all(into, std::string_view(piece).substr(0, static_cast<std::size_t>(count)))) {
            return fail(storage_error("write", to, errno));
        }
    }
}

}  // namespace

FolderStore::FolderStore(fs::path directory, bool is_ours, Clock& clock, Pool& pool)
    : directory_(std::move(directory)),
      parts_(directory_ / "parts"),
      is_ours_(is_ours),
      clock_(clock),
      pool_(pool) {}

Result<> FolderStore::open() {
    std::error_code error;
    if (!is_ours_ && !fs::is_directory(directory_, error)) {
        log::warning(
            "the folder of a store is not there; outputs wait for it",
            {{"folder", directory_.string()}}
        );
        return {};
    }
    if (auto made = make_folder(directory_); !made) {
        return made;
    }
    // All at once, so that a blob never waits for its folder to be on disk.
    for (unsigned prefix = 0; prefix < kPrefixes; ++prefix) {
        const auto byte = static_cast<std::uint8_t>(prefix);
        auto made = make_folder(directory_ / to_hex(&byte, 1));
        if (!made) {
            return made;
        }
    }
    if (auto made = make_folder(parts_); !made) {
        return made;
    }
    for (const fs::path& folder : {directory_, directory_.parent_path()}) {
        auto synced = sync_folder(folder);
        if (!synced) {
            return synced;
        }
    }
    return {};
}

Task<Result<std::string>> FolderStore::put(std::string key, Source source) {
    return pool_.run(guarded([this, key = std::move(key), source = std::move(source)] {
        return publish(key, source);
    }));
}

Task<Result<std::optional<Place>>> FolderStore::find(std::string key, LinkTerms) {
    return pool_.run(guarded([this, key = std::move(key)]() -> Result<std::optional<Place>> {
        auto path = path_of(key);
        if (!path) {
            return std::nullopt;
        }
        struct stat status{};
        if (::stat(path->c_str(), &status) != 0) {
            return errno == ENOENT ? Result<std::optional<Place>>(std::nullopt)
                                   : fail(storage_error("read", *path, errno));
        }
        return Place(std::move(*path));
    }));
}

Task<Result<std::string>> FolderStore::read(
    std::string key, std::uint64_t first, std::uint64_t length
) {
    return pool_.run(guarded([this, key = std::move(key), first, length]() -> Result<std::string> {
        const auto path = path_of(key);
        if (!path) {
            return fail(Code::not_found, "there is no blob '" + key + "'");
        }
        return read_part(*path, first, length);
    }));
}

Task<Result<>> FolderStore::remove(std::string key) {
    return pool_.run(guarded([this, key = std::move(key)]() -> Result<> {
        const auto path = path_of(key);
        if (path && ::unlink(path->c_str()) != 0 && errno != ENOENT) {
            return fail(storage_error("remove", *path, errno));
        }
        // A folder that is not mounted has no files either.
        if (path && ::access(directory_.c_str(), W_OK) != 0) {
            return fail(storage_error("remove", *path, errno));
        }
        return {};
    }));
}

Task<Result<>> FolderStore::change_class(std::string, StorageClass) {
    co_return Result<>();
}

Task<Result<BlobStore::Page>> FolderStore::list(std::string after) {
    return pool_.run(guarded([this, after = std::move(after)] { return list_folder(after); }));
}

Task<Result<>> FolderStore::remove_unfinished(Time before) {
    return pool_.run(guarded([this, before] { return remove_parts(before); }));
}

Result<std::string> FolderStore::publish(const std::string& key, const Source& source) {
    const auto target = path_of(key);
    if (!target) {
        return fail(Code::internal, "'" + key + "' is not the key of a blob");
    }
    const auto* given = std::get_if<fs::path>(&source.bytes);
    if (given != nullptr && source.may_move) {
        if (auto placed = place(*given, *target); placed || errno != EXDEV) {
            return placed ? Result<std::string>(key) : fail(std::move(placed.error()));
        }
    }
    const auto part = copy(source);
    if (!part) {
        return fail(part.error());
    }
    auto placed = place(*part, *target);
    if (!placed) {
        ::unlink(part->c_str());
        return fail(std::move(placed.error()));
    }
    return key;
}

// errno is that of the renaming when it fails.
Result<> FolderStore::place(const fs::path& file, const fs::path& target) {
    if (::rename(file.c_str(), target.c_str()) != 0) {
        const fs::path folder = target.parent_path();
        std::error_code error;
        if (errno == ENOENT && fs::is_directory(directory_, error)) {
            fs::create_directories(folder, error);
            for (fs::path above = folder; above != directory_; above = above.parent_path()) {
                static_cast<void>(sync_folder(above.parent_path()));
            }
        }
        if (::rename(file.c_str(), target.c_str()) != 0) {
            const int number = errno;
            auto failure = storage_error("write", target, number);
            errno = number;
            return fail(std::move(failure));
        }
    }
    return sync_folder(target.parent_path());
}

Result<fs::path> FolderStore::copy(const Source& source) {
    const fs::path part = parts_ / Uuid::make(clock_.now()).to_string();
    const auto create = [&part] {
        return FileHandle(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    };
    FileHandle file = create();
    if (!file.is_open() && errno == ENOENT && mkdir(parts_.c_str(), 0700) == 0) {
        file = create();  // it was away when it was to be opened
    }
    if (!file.is_open()) {
        return fail(storage_error("create", part, errno));
    }
    Result<> copied;
    if (const auto* from = std::get_if<fs::path>(&source.bytes)) {
        copied = copy_bytes(*from, part, file.get());
    } else if (!write_all(file.get(), *std::get<1>(source.bytes))) {
        copied = fail(storage_error("write", part, errno));
    }
    const timespec now = to_timespec(clock_.now());
    const timespec times[2] = {now, now};
    if (copied && (futimens(file.get(), times) != 0 || fsync(file.get()) != 0)) {
        copied = fail(storage_error("write", part, errno));
    }
    if (!copied) {
        ::unlink(part.c_str());
        return fail(std::move(copied.error()));
    }
    return part;
}

// A page is what one folder of the first level holds; `name` is the last one that was listed.
Result<BlobStore::Page> FolderStore::list_folder(const std::string& name) const {
    std::error_code error;
    std::string next;
    for (fs::directory_iterator at(directory_, error), end; !error && at != end;
         at.increment(error)) {
        std::string other = at->path().filename().string();
        if (other > name && (next.empty() || other < next) && at->path() != parts_) {
            next = std::move(other);
        }
    }
    Page page;
    if (!next.empty() && !error) {
        fs::recursive_directory_iterator at(directory_ / next, error);
        for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
            std::string key = at->path().lexically_relative(directory_).generic_string();
            struct stat status{};
            if (parse_blob_key(key) && ::lstat(at->path().c_str(), &status) == 0 &&
                S_ISREG(status.st_mode)) {
                const auto size = static_cast<std::uint64_t>(status.st_size);
                page.blobs.push_back({key, key, size, modified_at(status)});
            }
        }
    }
    if (error) {
        return fail(storage_error("list", directory_, error.value()));
    }
    page.next = std::move(next);
    return page;
}

Result<> FolderStore::remove_parts(Time before) {
    std::error_code error;
    for (fs::directory_iterator at(parts_, error), end; !error && at != end; at.increment(error)) {
        struct stat status{};
        const bool is_old =
            ::lstat(at->path().c_str(), &status) == 0 && modified_at(status) < before;
        if (is_old && ::unlink(at->path().c_str()) != 0 && errno != ENOENT) {
            return fail(storage_error("remove", at->path(), errno));
        }
    }
    return error ? fail(storage_error("list", parts_, error.value())) : Result<>();
}

std::optional<fs::path> FolderStore::path_of(std::string_view key) const {
    return parse_blob_key(key) ? confined(directory_, key) : std::nullopt;
}

}  // namespace comfyd::assets
