// A ComfyUI-compatible server of one process over engine::Engine: what `comfyd engine` runs.
//
// Queue and history live in memory, as ComfyUI's do; files lie in the folders input, output, temp
// and user of one data folder, which one server at a time may use. The protocol has no
// authentication: whoever reaches the port may do everything.
//
// One thread owns all state and all connections; prompts run one after the other on a second one,
// inside of which the engine uses all cores; disk, pictures and checking are on a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "net/server.hpp"

namespace comfyd::engine {
class Registry;
}

namespace comfyd::standalone {

struct Options {
    net::Endpoint listen{"127.0.0.1", 8188};
    std::filesystem::path data = "comfyd-engine";
    std::filesystem::path frontend{};  // the editor's files; empty: none are served
    unsigned threads = 0;              // of the engine; 0: one per core
    std::uint64_t memory_bytes_max = 4ULL * 1024 * 1024 * 1024;  // of node results alive at once
    std::uint64_t body_bytes_max = 100ULL * 1024 * 1024;
    std::size_t connections_max = 1'024;
    std::size_t sockets_max = 512;
    std::size_t pending_max = 10'000;
    std::uint64_t pending_bytes_max = 512ULL * 1024 * 1024;
    std::size_t history_max = 10'000;
    std::uint64_t history_bytes_max = 512ULL * 1024 * 1024;
    std::size_t socket_bytes_max = 64 * 1024 * 1024;       // that wait for one client
    std::function<void(engine::Registry&)> add_classes{};  // beside the engine's own
    // Its only client is a gateway, which says whose each prompt is (comfy/owner.hpp) and fetches
    // results when they are made: only the latest ones are kept.
    bool behind_gateway = false;
};

class Server {
public:
    // Makes the folders, empties temp, and listens. Code::conflict when the port or the data folder
    // is in use, Code::storage_unavailable, Code::invalid_argument.
    static Result<std::unique_ptr<Server>> start(Options options);
    ~Server();  // stop()
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::string url() const;
    // Interrupts what runs, closes all connections. Blocks; not from a thread of the server.
    void stop();

private:
    class Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::standalone
