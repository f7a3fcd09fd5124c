#include "assets/blob_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "assets/content_type.hpp"
#include "base/crypto.hpp"
#include "base/disk.hpp"
#include "base/id.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 256 * 1024;
constexpr std::size_t kBufferBytes = 4 * 1024 * 1024;
constexpr std::size_t kAllBuffersBytes = 128 * 1024 * 1024;
constexpr std::size_t kHashAt = std::string_view("blake3:").size();

timespec to_timespec(Time time) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    return {
        .tv_sec = whole.time_since_epoch().count(),
        .tv_nsec = std::chrono::nanoseconds(time - whole).count(),
    };
}

Time modified_at(const struct stat& status) {
    return Time(std::chrono::seconds(status.st_mtim.tv_sec)) +
           std::chrono::duration_cast<Millis>(std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

Result<> make_folder(const fs::path& folder) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail(storage_error("make the folder", folder, errno));
    }
    return {};
}

// Gives every piece of the file to `take`.
template <class Take>
Result<> read_all(const FileHandle& file, const fs::path& path, Take take) {
    std::string buffer(kReadBytes, '\0');
    for (;;) {
        const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(storage_error("read", path, errno));
        }
        if (got == 0) {
            return {};
        }
        auto taken = take(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
        if (!taken) {
            return taken;
        }
    }
}

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
}

}  // namespace

FileHandle::~FileHandle() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Error storage_error(std::string_view doing, const fs::path& path, int error_number) {
    const Code code = storage_code(error_number);
    std::string message = "cannot ";
    message += doing;
    message += " '" + path.string() +
               "': " + std::error_code(error_number, std::generic_category()).message();
    message += code == Code::storage_full ? "; free disk space and try again"
                                          : "; check the folder and its permissions";
    return Error(code, std::move(message), {{"path", path.string()}});
}

Incoming::Incoming(
    fs::path path, std::uint64_t bytes_max, std::shared_ptr<std::atomic<std::uint64_t>> buffered
)
    : buffered_(std::move(buffered)), path_(std::move(path)), bytes_max_(bytes_max) {}

Incoming::~Incoming() {
    *buffered_ -= buffer_.size();
    if (file_.is_open() && !moved_) {
        ::unlink(path_.c_str());
    }
}

Result<> Incoming::count(std::string_view piece) {
    if (piece.size() > bytes_max_ - size_) {
        failure_ = Error(
            Code::payload_too_large,
            "the content is larger than " + std::to_string(bytes_max_) +
                " bytes, the most that is stored",
            {{"bytes_max", bytes_max_}}
        );
        return fail(*failure_);
    }
    size_ += piece.size();
    head_ += piece.substr(0, kSniffBytes - head_.size());
    return {};
}

Result<> Incoming::append(std::string_view piece) {
    if (failure_) {
        return fail(*failure_);
    }
    auto counted = count(piece);
    if (!counted) {
        return counted;
    }
    if (may_buffer(piece.size())) {
        *buffered_ += piece.size();
        buffer_ += piece;
        return {};
    }
    if (auto spilled = spill(); !spilled) {
        return spilled;
    }
    return write(piece);
}

bool Incoming::may_buffer(std::size_t bytes) const {
    return !file_.is_open() && buffer_.size() + bytes <= kBufferBytes &&
           buffered_->load(std::memory_order_relaxed) + bytes <= kAllBuffersBytes;
}

Result<> Incoming::spill() {
    if (file_.is_open()) {
        return {};
    }
    file_ = FileHandle(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_.is_open()) {
        failure_ = storage_error("create", path_, errno);
        return fail(*failure_);
    }
    const std::string held = std::exchange(buffer_, {});
    *buffered_ -= held.size();
    return write(held);
}

Result<> Incoming::write(std::string_view piece) {
    hasher_.update(piece);
    while (!piece.empty()) {
        const ssize_t written = ::write(file_.get(), piece.data(), piece.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            failure_ = storage_error("write", path_, errno);
            return fail(*failure_);
        }
        piece.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

std::string Incoming::hash() {
    Blake3 hasher = hasher_;
    hasher.update(buffer_);
    return "blake3:" + hasher.hex();
}

std::shared_ptr<const std::string> Incoming::take() {
    auto owned = std::make_unique<const std::string>(std::exchange(buffer_, {}));
    return {owned.release(), [buffered = buffered_](const std::string* bytes) {
                *buffered -= bytes->size();
                delete bytes;
            }};
}

BlobFiles::BlobFiles(fs::path directory, std::uint64_t bytes_max, Millis young, Clock& clock)
    : blobs_(directory / "blobs"),
      incoming_(directory / "incoming"),
      bytes_max_(bytes_max),
      young_(young),
      clock_(clock) {}

Result<> BlobFiles::open() {
    const fs::path directory = blobs_.parent_path();
    std::error_code error;
    fs::create_directories(directory.parent_path(), error);
    if (error) {
        return fail(storage_error("make the folder", directory.parent_path(), error.value()));
    }
    for (const fs::path& folder : {directory, blobs_, incoming_}) {
        auto made = make_folder(folder);
        if (!made) {
            return made;
        }
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
    for (fs::directory_iterator at(incoming_, error), end; !error && at != end;
         at.increment(error)) {
        if (::unlink(at->path().c_str()) != 0) {
            return fail(storage_error("remove", at->path(), errno));
        }
    }
    if (error) {
        return fail(storage_error("list", incoming_, error.value()));
    }
    return {};
}

Result<std::unique_ptr<Incoming>> BlobFiles::create() {
    return std::make_unique<Incoming>(
        incoming_ / Uuid::make(clock_.now()).to_string(), bytes_max_, buffered_
    );
}

Result<std::unique_ptr<Incoming>> BlobFiles::adopt(const fs::path& file) {
    FileHandle source(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!source.is_open()) {
        return errno == ENOENT ? fail(Code::not_found, "there is no file '" + file.string() + "'")
                               : fail(storage_error("read", file, errno));
    }
    struct stat status{};
    if (fstat(source.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return fail(Code::invalid_argument, "'" + file.string() + "' is not a regular file");
    }
    const fs::path path = incoming_ / Uuid::make(clock_.now()).to_string();
    const bool is_linked = linkat(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), 0) == 0;
    if (is_linked) {
        auto linked = std::make_unique<Incoming>(path, bytes_max_, buffered_);
        linked->file_ = FileHandle(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        if (!linked->file_.is_open() || fchmod(linked->file_.get(), 0600) != 0) {
            return fail(storage_error("take over", file, errno));
        }
        auto hashed = read_all(linked->file_, file, [&](std::string_view piece) {
            linked->hasher_.update(piece);
            return linked->count(piece);
        });
        return hashed ? Result<std::unique_ptr<Incoming>>(std::move(linked)) : fail(hashed.error());
    }
    auto copy = create();
    if (!copy) {
        return copy;
    }
    auto copied =
        read_all(source, file, [&](std::string_view piece) { return (*copy)->append(piece); });
    return copied ? std::move(copy) : fail(copied.error());
}

Result<Blob> BlobFiles::publish(Incoming& incoming) {
    if (incoming.failure_) {
        return fail(*incoming.failure_);
    }
    Blob blob{.hash = incoming.hash(), .size_bytes = incoming.size(), .is_new = false};
    const fs::path target = path_of(blob.hash);
    auto reused = [&] {
        const Lock lock(mutex_);
        return reuse(target, blob.size_bytes);
    }();
    if (reused && !*reused) {
        if (auto spilled = incoming.spill(); !spilled) {
            return fail(std::move(spilled.error()));
        }
        const timespec now = to_timespec(clock_.now());
        const timespec times[2] = {now, now};
        if (futimens(incoming.file_.get(), times) != 0 || fsync(incoming.file_.get()) != 0) {
            return fail(storage_error("write", incoming.path_, errno));
        }
        const Lock lock(mutex_);
        reused = reuse(target, blob.size_bytes);  // somebody may have been faster
        if (reused && !*reused) {
            if (::rename(incoming.path_.c_str(), target.c_str()) != 0) {
                return fail(storage_error("write", target, errno));
            }
            incoming.moved_ = true;
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
Result<bool> BlobFiles::reuse(const fs::path& blob, std::uint64_t size) {
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

Result<std::optional<fs::path>> BlobFiles::find(const std::string& hash) const {
    if (!is_blake3_name(hash)) {
        return std::nullopt;
    }
    fs::path path = path_of(hash);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<std::optional<fs::path>>(std::nullopt)
                               : fail(storage_error("read", path, errno));
    }
    return path;
}

Result<bool> BlobFiles::keep(const std::string& hash) {
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

Result<BlobFiles::Removal> BlobFiles::remove_unless_young(const std::string& hash) {
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

Result<std::vector<std::string>> BlobFiles::old_ones(unsigned prefix) const {
    const auto byte = static_cast<std::uint8_t>(prefix);
    const std::string start = to_hex(&byte, 1);
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

fs::path BlobFiles::path_of(const std::string& hash) const {
    return blobs_ / hash.substr(kHashAt, 2) / hash.substr(kHashAt + 2);
}

Result<> BlobFiles::sync_folder(const fs::path& folder) const {
    const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!handle.is_open() || fsync(handle.get()) != 0) {
        return fail(storage_error("write", folder, errno));
    }
    return {};
}

// A time in the future counts as young: clocks are set back at times, and nothing is lost by
// waiting.
bool BlobFiles::is_young(Time modified) const {
    return modified > clock_.now() - young_;
}

}  // namespace comfyd::assets
