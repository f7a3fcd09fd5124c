// Blobs as files of a folder: blobs/ab/<62 hex digits>. What blocks on the disk runs on the pool.
//
// A blob's time of modification is when it was last handed out, by the store's clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assets/hashed_blobs.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

class FolderBlobs final : public HashedBlobs {
public:
    // In `directory`/blobs; `directory` is there, and what comes in is on its file system.
    FolderBlobs(std::filesystem::path directory, Millis young, Clock& clock, Pool& pool);

    Result<> open() override;
    Task<Result<Blob>> put(Incoming& content) override;
    Task<Result<std::optional<Place>>> find(std::string hash) override;
    Task<Result<std::string>> read(std::string hash, std::uint64_t bytes_max) override;
    Task<Result<bool>> keep(std::string hash) override;
    Task<Result<Removal>> remove_unless_young(std::string hash) override;
    Task<Result<std::vector<std::string>>> old_ones(std::uint8_t first_byte) override;

private:
    // These block.
    Result<Blob> publish(Incoming& content);
    Result<std::optional<Place>> look_for(const std::string& hash) const;
    Result<bool> make_young(const std::string& hash);
    Result<Removal> remove(const std::string& hash);
    Result<std::vector<std::string>> list_old(std::uint8_t first_byte) const;

    std::filesystem::path path_of(const std::string& hash) const;
    Result<bool> reuse(const std::filesystem::path& blob, std::uint64_t size);
    Result<> sync_folder(const std::filesystem::path& folder) const;
    bool is_young(Time modified_at) const;

    const std::filesystem::path blobs_;
    const Millis young_;
    Clock& clock_;
    Pool& pool_;
    // Held while a blob appears, is made young or is removed, so that none is removed that somebody
    // has just found.
    Mutex mutex_;
};

}  // namespace comfyd::assets
