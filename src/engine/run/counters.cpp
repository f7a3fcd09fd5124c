#include "engine/run/counters.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace comfyd::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCounterMax = 999'999'999'999;
// Then everything is forgotten and folders are read again: names with random parts never end.
constexpr std::size_t kNotedMax = 100'000;

void raise(std::uint64_t& highest, std::uint64_t counter) {
    highest = std::max(highest, counter);
}

}  // namespace

Counters::Highest Counters::read(const fs::path& folder) {
    Highest found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        // Every part of digits may be the counter: a base can hold digits of its own.
        for (std::size_t mark = name.find('_'); mark != name.npos;
             mark = name.find('_', mark + 1)) {
            const std::size_t begin = mark + 1;
            const std::size_t end_of_digits = std::min(name.find('_', begin), name.size());
            std::uint64_t counter = 0;
            const char* last = name.data() + end_of_digits;
            const auto parsed = std::from_chars(name.data() + begin, last, counter);
            if (parsed.ec == std::errc() && parsed.ptr == last && counter < kCounterMax) {
                raise(found[name.substr(0, mark)], counter);
            }
        }
    }
    return found;
}

std::uint64_t Counters::next(const fs::path& folder, const std::string& base) {
    {
        const Lock lock(mutex_);
        if (const auto known = folders_.find(folder.string()); known != folders_.end()) {
            const auto highest = known->second.find(base);
            return highest != known->second.end() ? highest->second + 1 : 1;
        }
    }
    Highest found = read(folder);  // may take long: others go on meanwhile
    const auto highest = found.find(base);
    const std::uint64_t counter = highest != found.end() ? highest->second + 1 : 1;
    const Lock lock(mutex_);
    if (noted_ + found.size() > kNotedMax) {
        folders_.clear();
        noted_ = 0;
    }
    noted_ += found.size();
    folders_.emplace(folder.string(), std::move(found));
    return counter;
}

void Counters::used(const fs::path& folder, const std::string& base, std::uint64_t counter) {
    const Lock lock(mutex_);
    const auto known = folders_.find(folder.string());
    if (known != folders_.end()) {
        note(known->second, base, counter);
    }
}

void Counters::note(Highest& folder, std::string base, std::uint64_t counter) {
    const auto [at, added] = folder.emplace(std::move(base), counter);
    raise(at->second, counter);
    if (added && ++noted_ > kNotedMax) {
        folders_.clear();
        noted_ = 0;
    }
}

}  // namespace comfyd::engine
