// Small files that are there whole or not at all. Blocks: for the pool.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd {

// What an errno of the disk means: Code::storage_full or Code::storage_unavailable.
Code storage_code(int number);
// The same with the name of the file.
tl::unexpected<Error> disk_error(const std::filesystem::path& path, int number);
// All of it; else errno says why not.
bool write_all(int fd, std::string_view bytes);

// Code::not_found, Code::payload_too_large, Code::storage_unavailable.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max);
// Makes the folders above it; written beside, synced and renamed. Code::storage_full,
// Code::storage_unavailable.
Result<> write_file(const std::filesystem::path& path, std::string_view bytes);
// Synced when it returns. A crash may leave a part of the last line.
Result<> append_file(const std::filesystem::path& path, std::string_view bytes);

// `inner` below `outer`, or nullopt when it would lead out of it or could not be a path of ours.
std::optional<std::filesystem::path> confined(
    const std::filesystem::path& outer, std::string_view inner
);

}  // namespace comfyd
