// `comfyd engine`: a ComfyUI-compatible server of one process.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace comfyd::app {

struct EngineFlags {
    std::string listen = "127.0.0.1:8188";
    std::string data = "comfyd-engine";
    std::string frontend;
    std::string log_level = "warning";
    unsigned threads = 0;
    std::uint64_t memory_mb = 4096;
    bool allow_remote = false;
    int supervisor = 0;  // pid of the `comfyd serve` whose engine this is
    std::string sandbox = "basic";
    bool sandbox_required = false;
};

void add_engine_flags(CLI::App& command, EngineFlags& flags);

// Serves until SIGINT or SIGTERM. The exit code of the program.
int run_engine(const EngineFlags& flags);

}  // namespace comfyd::app
