#include "engine/file_hashes.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "base/crypto.hpp"
#include "engine/files.hpp"

namespace comfyd::engine {
namespace {

constexpr std::chrono::seconds kSettleTime{2};  // the coarsest times of common file systems

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileHashes::Stamp FileHashes::stamp_of(const std::filesystem::path& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
        return {};
    }
    return {
        .device = status.st_dev,
        .number = status.st_ino,
        .size = status.st_size,
        .modified_ns = nanoseconds(status.st_mtim),
        .changed_ns = nanoseconds(status.st_ctim)
    };
}

bool FileHashes::is_settled(const Stamp& stamp) const {
    const std::chrono::nanoseconds latest(std::max(stamp.modified_ns, stamp.changed_ns));
    return stamp.size >= 0 && clock_.now().time_since_epoch() > latest + kSettleTime;
}

Result<std::string> FileHashes::hash(const std::filesystem::path& path) {
    const Stamp before = stamp_of(path);
    {
        const Lock lock(mutex_);
        const Known* known = known_.find(path.native());
        if (known != nullptr && known->stamp == before) {
            return known->hash;
        }
    }
    const auto content = read_file(path);
    if (!content) {
        return fail(content.error());
    }
    std::string hash = to_hex(sha256(*content));
    if (is_settled(before) && stamp_of(path) == before) {
        const Lock lock(mutex_);
        known_.use(path.native()) = {before, hash};
    }
    return hash;
}

std::size_t FileHashes::remembered() const {
    const Lock lock(mutex_);
    return known_.size();
}

}  // namespace comfyd::engine
