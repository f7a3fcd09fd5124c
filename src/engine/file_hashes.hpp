// The SHA-256 of files, remembered for as long as they stay as they are: a prompt that loads
// pictures asks for them each time it comes.
//
// A file is known by its place, number, size and both of its times, of which no program can set the
// one of its last change. Times are coarse, so what changed only just now is not remembered. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

namespace comfyd::engine {

class FileHashes {
public:
    // `clock` outlives it.
    explicit FileHashes(const Clock& clock) : clock_(clock) {}

    // In hex. Fails as read_file() does.
    Result<std::string> hash(const std::filesystem::path& path);
    std::size_t remembered() const;

private:
    struct Stamp {
        std::uint64_t device = 0;
        std::uint64_t number = 0;
        std::int64_t size = -1;
        std::int64_t modified_ns = 0;
        std::int64_t changed_ns = 0;
        friend bool operator==(const Stamp&, const Stamp&) = default;
    };
    struct Known {
        Stamp stamp;
        std::string hash;
    };
    static constexpr std::size_t kFilesMax = 4096;

    static Stamp stamp_of(const std::filesystem::path& path);
    bool is_settled(const Stamp& stamp) const;

    const Clock& clock_;
    mutable Mutex mutex_;
    LruMap<Known> known_ COMFYD_GUARDED_BY(mutex_){kFilesMax};  // by path; guarded by the mutex
};

}  // namespace comfyd::engine
