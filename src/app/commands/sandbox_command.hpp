// `comfyd sandbox`: says how this system confines programs, runs one so by hand, and, for comfyd
// itself, becomes one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/sandbox.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct SandboxFlags {
    std::string action{};  // check, run, enter
    std::string level = "strict";
    std::string network = "none";
    std::vector<std::string> readable{};
    std::vector<std::string> writable{};
    std::vector<std::string> environment{};  // NAME or NAME=value
    std::uint64_t memory_mb = 0;
    SandboxOrder order{};  // of `enter`, and what has no other form
};

void add_sandbox_flags(CLI::App& command, SandboxFlags& flags);
int run_sandbox(const SandboxFlags& flags);

}  // namespace comfyd::app
