// Pieces of what goes into a store, for stores that send it piece by piece. Blocks: for the pool.
#pragma once

#include <cstdint>
#include <string>

#include "assets/blob_store.hpp"

namespace comfyd::assets {

// Exactly that many bytes. Code::storage_unavailable where a file has fewer: it was changed.
Result<std::string> read_source(const Source& source, std::uint64_t first, std::uint64_t length);

}  // namespace comfyd::assets
