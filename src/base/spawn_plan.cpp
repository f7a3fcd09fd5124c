#include "base/spawn_plan.hpp"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace comfyd {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

SpawnPlan::SpawnPlan(Leads leads) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const int apart = leads == Leads::session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | apart)
    );
}

SpawnPlan::~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes_);
}

int SpawnPlan::spawn(const ChildCommand& command, pid_t& pid) {
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    std::vector<std::string> arguments = command.arguments;
    arguments.insert(arguments.begin(), command.program);
    std::vector<std::string> environment = command.environment;
    return ::posix_spawn(
        &pid,
        command.program.c_str(),
        &actions,
        &attributes_,
        pointers_to(arguments).data(),
        pointers_to(environment).data()
    );
}

}  // namespace comfyd
