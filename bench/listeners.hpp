// Many sockets of ComfyUI's clients, who are told how long the queue is, and a stream of events for
// each job that is submitted meanwhile: how much CPU comfyd needs for all of it.
#pragma once

#include <string>

namespace comfyd::bench {

struct Listeners {
    std::string url;
    std::string process;  // id of comfyd's
    int sockets = 0;
    int rate = 1;  // submits a second
    int seconds = 1;
};
int listeners(const Listeners& wanted);

}  // namespace comfyd::bench
