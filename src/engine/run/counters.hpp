// The counters in the names of saved files, "<base>_<counter>_…", by folder: a folder is read once,
// and what is saved there is remembered.
//
// What it says is a hint: others may save there too, so whoever saves takes the first name from
// there on that is free. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.hpp"

namespace comfyd::engine {

class Counters {
public:
    // One more than the highest counter of `base` in the folder.
    std::uint64_t next(const std::filesystem::path& folder, const std::string& base);
    void used(const std::filesystem::path& folder, const std::string& base, std::uint64_t counter);

private:
    using Highest = std::unordered_map<std::string, std::uint64_t>;  // by base

    static Highest read(const std::filesystem::path& folder);
    void note(Highest& folder, std::string base, std::uint64_t counter) COMFYD_REQUIRES(mutex_);

    Mutex mutex_;
    std::unordered_map<std::string, Highest> folders_ COMFYD_GUARDED_BY(mutex_);
    std::size_t noted_ COMFYD_GUARDED_BY(mutex_) = 0;  // since everything was forgotten
};

}  // namespace comfyd::engine
