// Content on its way into the store: first in memory, then a file of the folder incoming/. Whatever
// the blobs are kept in, their bytes come together here, because their hash is their name.
//
// All but Inbox::create() and what stays in memory blocks on the disk: call it on the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "assets/blake3.hpp"
#include "assets/files.hpp"
#include "assets/store.hpp"
#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

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
    std::string hash() const;
    std::uint32_t crc32() const;
    bool is_in_memory() const { return !file_.is_open() && !failure_; }
    // All of the content, which is then gone from here. It counts among what is in memory until it
    // is given up, so that the outputs of any number of jobs that end are bounded too. REQUIRES:
    // is_in_memory().
    std::shared_ptr<const std::string> take();
    // The first kSniffBytes.
    const std::string& head() const { return head_; }
    // Of an append: the content is not what the caller meant.
    const std::optional<Error>& failure() const { return failure_; }

    // Makes it a file, if it is none yet, which is on disk when this returns and says that it was
    // modified at this time.
    Result<> sync(Time modified_at);
    // Of the file. REQUIRES: sync().
    const std::filesystem::path& path() const { return path_; }
    // Somebody has moved the file.
    void give_away() { given_away_ = true; }

private:
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
    std::uint32_t crc32_ = 0;  // of what is in the file
    std::uint64_t size_ = 0;
    std::string head_;
    std::optional<Error> failure_;
    bool given_away_ = false;
};

// Any thread.
class Inbox {
public:
    // `clock` outlives it. `is_shared`: other processes receive contents in the folder, too.
    Inbox(std::filesystem::path folder, std::uint64_t bytes_max, Clock& clock, bool is_shared)
        : folder_(std::move(folder)), bytes_max_(bytes_max), is_shared_(is_shared), clock_(clock) {}

    // Makes the folder and removes what an earlier crash left there; of a shared one, what nobody
    // has written to for a day.
    Result<> open();
    std::unique_ptr<Incoming> create();

private:
    const std::filesystem::path folder_;
    const std::uint64_t bytes_max_;
    const bool is_shared_;
    Clock& clock_;
    std::shared_ptr<std::atomic<std::uint64_t>> buffered_ =
        std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace comfyd::assets
