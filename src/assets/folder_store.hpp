// A store that is a folder of this machine, or one that several machines mount: each key a file.
//
// What blocks on the disk runs on the pool. Should the folder be gone (not mounted), nothing is
// made in its place: writing fails until it is back.
#pragma once

#include <filesystem>
#include <string>

#include "assets/blob_store.hpp"
#include "base/pool.hpp"

namespace comfyd::assets {

class FolderStore final : public BlobStore {
public:
    // `is_ours`: it is made when absent, in a folder that is there. Another's may be away for now.
    // `clock` and `pool` outlive it.
    FolderStore(std::filesystem::path directory, bool is_ours, Clock& clock, Pool& pool);

    Result<> open() override;
    Task<Result<std::string>> put(std::string key, Source source) override;
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) override;
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length)
        override;
    Task<Result<>> remove(std::string key) override;
    Task<Result<>> change_class(std::string key, StorageClass to) override;
    Task<Result<Page>> list(std::string after) override;
    Task<Result<>> remove_unfinished(Time before) override;

private:
    // These block.
    Result<std::string> publish(const std::string& key, const Source& source);
    Result<> place(const std::filesystem::path& file, const std::filesystem::path& target);
    Result<std::filesystem::path> copy(const Source& source);
    Result<Page> list_folder(const std::string& name) const;
    Result<> remove_parts(Time before);
    // Nullopt: that is no key of ours.
    std::optional<std::filesystem::path> path_of(std::string_view key) const;

    const std::filesystem::path directory_;
    const std::filesystem::path parts_;  // files that are on their way in
    const bool is_ours_;
    Clock& clock_;
    Pool& pool_;
};

}  // namespace comfyd::assets
