#include "assets/incoming.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "assets/content_type.hpp"
#include "assets/crc32.hpp"
#include "base/id.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 4 * 1024 * 1024;
constexpr std::size_t kAllBuffersBytes = 128 * 1024 * 1024;

}  // namespace

Incoming::Incoming(
    fs::path path, std::uint64_t bytes_max, std::shared_ptr<std::atomic<std::uint64_t>> buffered
)
    : buffered_(std::move(buffered)), path_(std::move(path)), bytes_max_(bytes_max) {}

Incoming::~Incoming() {
    *buffered_ -= buffer_.size();
    if (file_.is_open() && !given_away_) {
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
    crc32_ = update_crc32(crc32_, piece);
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

std::string Incoming::hash() const {
    Blake3 hasher = hasher_;
    hasher.update(buffer_);
    return "blake3:" + hasher.hex();
}

std::uint32_t Incoming::crc32() const {
    return update_crc32(crc32_, buffer_);
}

std::shared_ptr<const std::string> Incoming::take() {
    auto owned = std::make_unique<const std::string>(std::exchange(buffer_, {}));
    return {owned.release(), [buffered = buffered_](const std::string* bytes) {
                *buffered -= bytes->size();
                delete bytes;
            }};
}

Result<> Incoming::sync(Time modified_at) {
    if (failure_) {
        return fail(*failure_);
    }
    if (auto spilled = spill(); !spilled) {
        return spilled;
    }
    const timespec time = to_timespec(modified_at);
    const timespec times[2] = {time, time};
    if (futimens(file_.get(), times) != 0 || fsync(file_.get()) != 0) {
        return fail(storage_error("write", path_, errno));
    }
    return {};
}

namespace {

constexpr auto kAbandonedAfter = std::chrono::hours(24);

bool is_in_use(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    return error || written > fs::file_time_type::clock::now() - kAbandonedAfter;
}

}  // namespace

Result<> Inbox::open() {
    if (auto made = make_folder(folder_); !made) {
        return made;
    }
    std::error_code error;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        if (is_shared_ && is_in_use(at->path())) {
            continue;
        }
        if (::unlink(at->path().c_str()) != 0 && errno != ENOENT) {
            return fail(storage_error("remove", at->path(), errno));
        }
    }
    if (error) {
        return fail(storage_error("list", folder_, error.value()));
    }
    return {};
}

std::unique_ptr<Incoming> Inbox::create() {
    return std::make_unique<Incoming>(
        folder_ / Uuid::make(clock_.now()).to_string(), bytes_max_, buffered_
    );
}

}  // namespace comfyd::assets
