// A zip archive that is never made: where each byte of it lies is known from the names, sizes and
// CRC-32 of its files, so that its length can be told at first and any part of it sent. Files are
// stored, not deflated (pictures and films do not shrink); headers are final, without descriptors
// behind the data, which some programs cannot read. Zip64 only where the numbers need it. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace comfyd::bulk {

struct ZipEntry {
    std::string name;  // UTF-8, relative, '/' between folders; no two have the same
    std::uint64_t size_bytes = 0;
    std::uint32_t crc32 = 0;
};

class ZipLayout {
public:
    // `modified` is shown as the date of all files.
    ZipLayout(std::vector<ZipEntry> entries, Time modified);

    std::uint64_t size_bytes() const { return directory_at_ + directory_.size(); }
    const std::vector<ZipEntry>& entries() const { return entries_; }
    // The same for archives of the same bytes, for no others.
    std::string tag() const;

    // What lies at `position`, to the end of its header or file, at most `length_max` bytes.
    // REQUIRES: position < size_bytes()
    struct Piece {
        std::string bytes{};                 // of headers
        std::optional<std::size_t> entry{};  // set: of this file, from `offset`
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
    };
    Piece piece_at(std::uint64_t position, std::uint64_t length_max) const;

private:
    std::string local_header(std::size_t entry) const;
    std::string make_directory() const;

    std::vector<ZipEntry> entries_;
    std::uint32_t date_and_time_;
    std::vector<std::uint64_t> offsets_;  // of the local headers
    std::uint64_t directory_at_ = 0;
    std::string directory_;
};

// Goes on from the CRC-32 of what came before; 0 at first.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace comfyd::bulk
