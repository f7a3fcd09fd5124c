// The store's files: blobs/ab/<62 hex digits> and, while they are written, incoming/<uuid>.
//
// Every member but create() blocks on the disk; call them on the pool. Small contents stay in
// memory until publish(), so that append() touches the disk only for large ones. Any number of
// threads at once. A blob is there whole or not at all, also after a crash. A blob's time of
// modification is when it was last handed out for a new record, by the store's clock: what is young
// is in use even if no record refers to it yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assets/blake3.hpp"
#include "assets/store.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

// A file descriptor that closes itself.
class FileHandle {
public:
    explicit FileHandle(int fd = -1) : fd_(fd) {}
    ~FileHandle();
    FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

private:
    int fd_;
};

// Code::storage_full when the disk or the quota is, else Code::storage_unavailable.
Error storage_error(std::string_view doing, const std::filesystem::path& path, int error_number);

// Content on its way to become a blob: first in memory, then a file in incoming/.
class Incoming final : public BlobWriter {
public:
    // `buffered`: what all contents of the store hold in memory together.
    Incoming(
        std::filesystem::path path,
        std::uint64_t bytes_max,
        std::shared_ptr<std::atomic<std::uint64_t>> buffered
    );
    ~Incoming() override;
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    Result<> append(std::string_view piece) override;
    // append() of so many bytes would not touch the disk.
    bool may_buffer(std::size_t bytes) const;
    std::uint64_t size() const { return size_; }
    // All of the content, also what is in memory still.
    std::string hash();
    bool is_in_memory() const { return !file_.is_open() && !failure_; }
    // All of the content, which is then gone from here. It counts among what is in memory until it
    // is given up, so that the outputs of any number of jobs that end are bounded too. REQUIRES:
    // is_in_memory().
    std::shared_ptr<const std::string> take();
    // The first kSniffBytes.
    const std::string& head() const { return head_; }

private:
    friend class BlobFiles;
    Result<> count(std::string_view piece);
    // Makes the file and moves what is in memory there.
    Result<> spill();
    Result<> write(std::string_view piece);

    FileHandle file_;
    std::string buffer_;                                    // not yet hashed, not yet in the file
    std::shared_ptr<std::atomic<std::uint64_t>> buffered_;  // shared by the store's contents
    std::filesystem::path path_;
    std::uint64_t bytes_max_;
    Blake3 hasher_;
    std::uint64_t size_ = 0;
    std::string head_;
    std::optional<Error> failure_;  // of an append: the file is not what the caller meant
    bool moved_ = false;            // it is a blob now
};

class BlobFiles {
public:
    // `young`: for how long a blob that was handed out counts as in use.
    BlobFiles(std::filesystem::path directory, std::uint64_t bytes_max, Millis young, Clock& clock);

    // Makes the folders and empties incoming/.
    Result<> open();

    Result<std::unique_ptr<Incoming>> create();
    // Over the bytes of a finished file, which stays where it is: a second name of it where the
    // file system allows, else a copy. Code::not_found.
    Result<std::unique_ptr<Incoming>> adopt(const std::filesystem::path& file);
    // On disk when this returns. Equal bytes that are there already are kept.
    Result<Blob> publish(Incoming& incoming);

    // Nullopt when there is none.
    Result<std::optional<std::filesystem::path>> find(const std::string& hash) const;
    // Makes an existing blob young, so that it stays until a record refers to it. False when there
    // is none.
    Result<bool> keep(const std::string& hash);
    enum class Removal { removed, too_young, absent };
    Result<Removal> remove_unless_young(const std::string& hash);
    // The blobs of one of the kPrefixes folders that are not young.
    static constexpr unsigned kPrefixes = 256;
    Result<std::vector<std::string>> old_ones(unsigned prefix) const;

private:
    std::filesystem::path path_of(const std::string& hash) const;
    Result<bool> reuse(const std::filesystem::path& blob, std::uint64_t size);
    Result<> sync_folder(const std::filesystem::path& folder) const;
    bool is_young(Time modified_at) const;

    std::filesystem::path blobs_;
    std::filesystem::path incoming_;
    std::uint64_t bytes_max_;
    Millis young_;
    Clock& clock_;
    std::shared_ptr<std::atomic<std::uint64_t>> buffered_ =
        std::make_shared<std::atomic<std::uint64_t>>(0);
    // Held while a blob appears, is made young or is removed, so that none is removed that somebody
    // has just found.
    Mutex mutex_;
};

}  // namespace comfyd::assets
