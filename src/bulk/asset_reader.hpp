// The bytes of an asset part by part, wherever they are kept. One executor; blocking reads are made
// on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"

namespace comfyd::bulk {

class AssetReader {
public:
    // Both outlive it. Code::output_unavailable when the bytes are gone.
    static Task<Result<AssetReader>> open(assets::Store& store, Pool& pool, assets::Asset asset);

    // Fewer bytes than asked for only at the end.
    Task<Result<std::string>> read(std::uint64_t offset, std::size_t length);

private:
    class File;
    AssetReader() = default;
    Task<Result<std::string>> read_elsewhere(std::uint64_t offset, std::size_t length);

    // Where it is: in a file (shared with a read on the pool), in a store elsewhere, or here.
    std::shared_ptr<const File> file_;
    assets::Store* store_ = nullptr;
    assets::Asset asset_;
    std::string bytes_;
    Pool* pool_ = nullptr;
};

}  // namespace comfyd::bulk
