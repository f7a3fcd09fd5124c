// How a child process begins: in a process group of its own, so that a Ctrl-C on our terminal is
// ours to pass on, or in a session of its own where it shall outlive us; with every signal as a new
// program expects it, and with no file but the standard three. Which these are says whoever starts
// it, through `actions`.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include "base/child_process.hpp"

namespace comfyd {

class SpawnPlan {
public:
    enum class Leads { group, session };

    explicit SpawnPlan(Leads leads = Leads::group);
    ~SpawnPlan();
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;

    // Once. An errno, or 0.
    int spawn(const ChildCommand& command, pid_t& pid);

    posix_spawn_file_actions_t actions{};

private:
    posix_spawnattr_t attributes_{};
};

}  // namespace comfyd
