// `comfyd worker`: the agent beside one ComfyUI. It runs and watches it, stands in front of it, and
// calls the gateway where it has one. One thread serves everything; what blocks is on a pool.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/comfyui.hpp"
#include "agent/comfyui_command.hpp"
#include "agent/dial_out.hpp"
#include "agent/front.hpp"
#include "agent/models.hpp"
#include "agent/packs.hpp"
#include "base/error.hpp"
#include "net/server.hpp"

namespace comfyd::agent {

struct AgentOptions {
    net::Endpoint listen{"0.0.0.0", 18188};
    std::filesystem::path folder = "comfyd-worker";
    std::string instance = "worker";
    ComfyUiOptions comfyui{};  // of which `command` and the paths are made from the next
    CommandOptions command{};
    std::vector<NodePack> packs{};         // that ComfyUI is to have
    std::filesystem::path packs_folder{};  // where those stay that were fetched; empty: its own
    FrontOptions front{};
    std::vector<std::string> gateways{};  // nodes of one; empty: it calls nobody
    std::string ca_file{};                // for the gateway's certificate, beside the system's
    ModelsOptions models{};               // of a ComfyUI of ours; its folder is made from `command`
    // From a stop to the end, for prompts that run and for whoever fetches their results.
    Millis grace{30'000};
    Millis quiet{2'000};  // so long nobody has asked for anything before that
    // Without a gateway and without work: it ends itself. Of one that nobody is to call and that
    // calls nobody, only where it is rented.
    Millis lonely_max{900'000};
    bool is_rented = false;
    // Called once, on the agent's thread, when it has been lonely for so long.
    std::function<void()> lonely{};
};

class Agent {
public:
    // Makes its folder, which one agent at a time may use, writes worker.json there, starts
    // ComfyUI and listens. Code::config_invalid, Code::conflict (the port or the folder is in use),
    // Code::storage_unavailable.
    static Result<std::unique_ptr<Agent>> start(AgentOptions options);
    ~Agent();  // stop()
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    std::string url() const;
    // Says that it stops, takes no new prompts, waits within the grace for those that are there,
    // ends ComfyUI. Blocks; not from a thread of the agent.
    void stop();

private:
    class Impl;
    explicit Agent(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::agent
