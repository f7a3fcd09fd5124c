// Many who watch jobs while others submit them at an even pace: what a submit then takes, and what
// memory comfyd needs, told each minute.
#pragma once

#include <string>

namespace comfyd::bench {

struct Load {
    std::string url;
    std::string process;  // id of comfyd's
    int streams = 0;      // open at a time; one that ends is opened anew for the latest job
    int rate = 1;         // submits a second
    int seconds = 1;
};
int load(const Load& wanted);

}  // namespace comfyd::bench
