// Under which key a store keeps a content: "ab/<62 hex digits>.<generation>", behind a folder where
// one was asked for. The first two digits are folders, because a folder of a million files is slow.
//
// A content that was given up and comes again is another generation: its key was never used before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::assets {

// Never the same for two that are made; later ones are larger. 0: a file from before there were
// generations, whose name has none.
std::uint64_t make_generation(Time now);
// When it was made.
Time made_at(std::uint64_t generation);

// REQUIRES: `hash` is "blake3:<64 hex digits>"; `folder` is empty or ends without a slash.
std::string make_blob_key(
    std::string_view hash, std::uint64_t generation, std::string_view folder = {}
);

struct BlobName {
    std::string hash;
    std::uint64_t generation = 0;
    std::string folder{};
};
// What such a key, also one behind a folder, is the key of; nullopt: it is none.
std::optional<BlobName> parse_blob_key(std::string_view key);

}  // namespace comfyd::assets
