// An event of a job in words for people: what mails and short messages say. The same event gives
// the same words each time. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/job.hpp"

namespace comfyd::notify {

struct Link {
    std::string name;
    std::string url;
};

// Where what the job made can be had without a key, as of the event. May find nothing.
using FindLinks = std::function<std::vector<Link>(const jobs::Job&, const jobs::Event&)>;

struct Story {
    std::string title;                                       // "Job failed: portraits"
    std::string sentence;                                    // what happened
    std::vector<std::pair<std::string, std::string>> facts;  // "Reason", "out of memory"
    std::vector<Link> links;
};

Story tell(const jobs::Job& job, const jobs::Event& event, std::vector<Link> links = {});

// "2026-11-18 01:41:14 UTC"
std::string show_time(Time time);
// "850 ms", "12.3 s", "2 min 5 s", "3 h 4 min"
std::string show_duration(Millis duration);

}  // namespace comfyd::notify
