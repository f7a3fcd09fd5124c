#include "bulk/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.hpp"
#include "base/crypto.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::uint64_t kLarge = 0xFFFFFFFF;  // what does not fit: look at the zip64 record
constexpr std::uint64_t kMany = 0xFFFF;
constexpr std::uint64_t kVersionPlain = 20;
constexpr std::uint64_t kVersionZip64 = 45;
constexpr std::uint64_t kMadeByUnix = 3U << 8;
constexpr std::uint64_t kNamesAreUtf8 = 1U << 11;
constexpr std::uint64_t kPlainFile = 0100644ULL << 16;  // its mode, where unix programs look

void put(std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
        to += static_cast<char>(value >> (8 * i) & 0xFF);
    }
}

// As MS-DOS had them, in UTC: the time below, the date above.
std::uint32_t dos_date_and_time(Time at) {
    using namespace std::chrono;
    const auto day = floor<days>(at);
    const year_month_day date(day);
    const hh_mm_ss time(floor<seconds>(at - day));
    const int year = std::clamp(static_cast<int>(date.year()), 1980, 2107);
    const auto days_part = static_cast<std::uint32_t>(year - 1980) << 9 |
                           static_cast<unsigned>(date.month()) << 5 |
                           static_cast<unsigned>(date.day());
    const auto time_part = static_cast<std::uint32_t>(time.hours().count()) << 11 |
                           static_cast<std::uint32_t>(time.minutes().count()) << 5 |
                           static_cast<std::uint32_t>(time.seconds().count() / 2);
    return days_part << 16 | time_part;
}

// What a local header and an entry of the directory share.
void put_about(
    std::string& to,
    const ZipEntry& entry,
    std::uint32_t date_and_time,
    bool is_zip64,
    std::size_t extra_bytes
) {
    const std::uint64_t size = is_zip64 ? kLarge : entry.size_bytes;
    put(to, kNamesAreUtf8, 2);
    put(to, 0, 2);  // stored
    put(to, date_and_time, 4);
    put(to, entry.crc32, 4);
    put(to, size, 4);
    put(to, size, 4);
    put(to, entry.name.size(), 2);
    put(to, extra_bytes, 2);
}

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
    auto sum = static_cast<uLong>(before);
    while (!bytes.empty()) {
        const std::string_view piece = bytes.substr(0, 1U << 30);
        sum = ::crc32(
            sum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size())
        );
        bytes.remove_prefix(piece.size());
    }
    return static_cast<std::uint32_t>(sum);
}

ZipLayout::ZipLayout(std::vector<ZipEntry> entries, Time modified)
    : entries_(std::move(entries)), date_and_time_(dos_date_and_time(modified)) {
    offsets_.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        offsets_.push_back(directory_at_);
        directory_at_ += local_header(i).size() + entries_[i].size_bytes;
    }
    directory_ = make_directory();
}

std::string ZipLayout::local_header(std::size_t entry) const {
    const ZipEntry& about = entries_[entry];
    const bool is_zip64 = about.size_bytes >= kLarge;
    std::string header = "PK\x03\x04";
    put(header, is_zip64 ? kVersionZip64 : kVersionPlain, 2);
    put_about(header, about, date_and_time_, is_zip64, is_zip64 ? 20 : 0);
    header += about.name;
    if (is_zip64) {
        put(header, 1, 2);
        put(header, 16, 2);
        put(header, about.size_bytes, 8);
        put(header, about.size_bytes, 8);
    }
    return header;
}

std::string ZipLayout::make_directory() const {
    std::string directory;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const ZipEntry& entry = entries_[i];
        const bool is_large = entry.size_bytes >= kLarge;
        const bool is_far = offsets_[i] >= kLarge;
        std::string extra;
        if (is_large || is_far) {
            put(extra, 1, 2);
            put(extra, (is_large ? 16U : 0U) + (is_far ? 8U : 0U), 2);
            if (is_large) {
                put(extra, entry.size_bytes, 8);
                put(extra, entry.size_bytes, 8);
            }
            if (is_far) {
                put(extra, offsets_[i], 8);
            }
        }
        const std::uint64_t version = extra.empty() ? kVersionPlain : kVersionZip64;
        directory += "PK\x01\x02";
        put(directory, kMadeByUnix | version, 2);
        put(directory, version, 2);
        put_about(directory, entry, date_and_time_, is_large, extra.size());
        put(directory, 0, 2);  // no comment
        put(directory, 0, 2);  // on the first disk
        put(directory, 0, 2);  // not known to be text
        put(directory, kPlainFile, 4);
        put(directory, is_far ? kLarge : offsets_[i], 4);
        directory += entry.name;
        directory += extra;
    }
    const std::uint64_t length = directory.size();
    const std::uint64_t count = entries_.size();
    if (count >= kMany || length >= kLarge || directory_at_ >= kLarge) {
        const std::uint64_t record_at = directory_at_ + length;
        directory += "PK\x06\x06";
        put(directory, 44, 8);  // of this record, from here
        put(directory, kMadeByUnix | kVersionZip64, 2);
        put(directory, kVersionZip64, 2);
        put(directory, 0, 4);
        put(directory, 0, 4);
        put(directory, count, 8);
        put(directory, count, 8);
        put(directory, length, 8);
        put(directory, directory_at_, 8);
        directory += "PK\x06\x07";
        put(directory, 0, 4);
        put(directory, record_at, 8);
        put(directory, 1, 4);
    }
    directory += "PK\x05\x06";
    put(directory, 0, 2);
    put(directory, 0, 2);
    put(directory, std::min(count, kMany), 2);
    put(directory, std::min(count, kMany), 2);
    put(directory, std::min(length, kLarge), 4);
    put(directory, std::min(directory_at_, kLarge), 4);
    put(directory, 0, 2);
    return directory;
}

std::string ZipLayout::tag() const {
    // The directory names every file with its size and CRC-32.
    return to_hex(sha256(directory_)).substr(0, 32);
}

ZipLayout::Piece ZipLayout::piece_at(std::uint64_t position, std::uint64_t length_max) const {
    COMFYD_ASSERT(position < size_bytes());
    const auto of_headers = [length_max](const std::string& bytes, std::uint64_t from) {
        Piece piece;
        piece.bytes = bytes.substr(from, length_max);
        piece.length = piece.bytes.size();
        return piece;
    };
    if (position >= directory_at_) {
        return of_headers(directory_, position - directory_at_);
    }
    const auto after = std::ranges::upper_bound(offsets_, position);
    const auto entry = static_cast<std::size_t>(after - offsets_.begin()) - 1;
    const std::string header = local_header(entry);
    const std::uint64_t within = position - offsets_[entry];
    if (within < header.size()) {
        return of_headers(header, within);
    }
    Piece piece;
    piece.entry = entry;
    piece.offset = within - header.size();
    piece.length = std::min(length_max, entries_[entry].size_bytes - piece.offset);
    return piece;
}

}  // namespace comfyd::bulk
