// What an agent tells of its ComfyUI and its machine: to whoever asks, and to the gateway.
//
// One executor: call it only there; what blocks is done on the pool.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "agent/comfyui.hpp"
#include "agent/gpus.hpp"
#include "agent/model_files.hpp"
#include "agent/models.hpp"
#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"

namespace comfyd::agent {

class Status {
public:
    struct Parts {
        net::Client& http;  // all outlive it
        Pool& pool;
        const ComfyUi& comfyui;
        const ModelFiles* files = nullptr;  // none: its disk is not ours to read
        Models* models = nullptr;           // likewise
    };
    Status(Parts parts, std::string instance, std::filesystem::path folder);

    // From now on, whatever ComfyUI does: no new prompts are taken.
    void set_draining() { is_draining_ = true; }
    bool is_draining() const { return is_draining_; }

    // fetching, starting, ready, restarting, failed or draining.
    std::string_view state() const;
    std::string reason() const;  // of a state that is not ready
    // Models are missing that ComfyUI does not start without.
    bool is_fetching() const { return p_.models != nullptr && p_.models->is_missing(); }
    const ModelFiles* files() const { return p_.files; }
    Models* models() const { return p_.models; }
    // {"instance","state","reason","comfyui":{"pid","restarts","version","jobs"},"jobs",
    //  "ram_bytes","ram_total_bytes","disk_free_bytes","uptime_s","gpus":[…],"files_revision",
    //  "models":{"wanted","ready","failed","bytes","total","fetched":{"outside","peers"}}}
    Task<json::object> read();

private:
    // As ComfyUI tells them, where nothing else can.
    Task<json::array> devices_of_comfyui();

    Parts p_;
    std::string instance_;
    std::filesystem::path folder_;
    const std::string visible_;  // CUDA_VISIBLE_DEVICES
    GpuReader gpus_;             // used on the pool, one call at a time
    bool is_reading_ = false;
    json::array known_gpus_;
    bool is_draining_ = false;
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace comfyd::agent
