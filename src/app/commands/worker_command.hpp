// `comfyd worker`: the agent beside one ComfyUI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace comfyd::app {

struct WorkerFlags {
    std::string listen{};  // empty: SERVER_HOST and SERVER_PORT
    std::string folder = "comfyd-worker";
    std::string comfyui{};
    std::string python = "python3";
    std::uint16_t comfyui_port = 0;  // 0: one that is free
    std::string node_pack{};
    std::string sandbox = "minimal";
    std::vector<std::string> readable{};
    std::vector<std::string> writable{};
    std::vector<std::string> environment{};
    std::size_t requests_max = 128;
    int grace_s = 30;
    int hang_s = 60;
    int lonely_s = 900;
    std::string ca_file{};
    std::vector<std::string> arguments{};  // of ComfyUI
};

void add_worker_flags(CLI::App& command, WorkerFlags& flags);

// Serves until SIGINT or SIGTERM, or until it has been without a gateway for too long. The exit
// code of the program.
int run_worker(const WorkerFlags& flags);

}  // namespace comfyd::app
