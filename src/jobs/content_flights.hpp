// Who has a content of those that this process had brought somewhere, and who is being brought it:
// so that the workers of one region have it from outside once, and from each other then. Pure; one
// owner.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace comfyd::jobs {

class ContentFlights {
public:
    static constexpr std::size_t kFlightsPerHolder = 4;

    // Another one to this region had better wait: one is on its way that can be shared when it is
    // there, or those who share it have enough to do.
    bool must_wait(const std::string& region, const std::string& sha256) const;
    // `gives`: the worker can give it to others.
    void begin(
        const std::string& region, const std::string& sha256, const std::string& worker, bool gives
    );
    void end(
        const std::string& region,
        const std::string& sha256,
        const std::string& worker,
        bool is_there
    );
    // It was brought there, as far as is known here.
    bool has(const std::string& worker, const std::string& sha256) const;
    // The worker is no more.
    void forget(const std::string& worker);

private:
    struct Content {
        std::set<std::string> holders{};           // that give it
        std::map<std::string, bool> on_the_way{};  // workers, and whether they will give it
    };
    std::map<std::pair<std::string, std::string>, Content> contents_;  // by region and hash
};

}  // namespace comfyd::jobs
