// What stands in front of a ComfyUI: asks for the token, answers what is the agent's own, and hands
// the rest on. ComfyUI itself knows no users: whoever reaches it may run what he likes.
//
//   GET  /healthz            the agent is there; the only answer without the token
//   GET  /health             whether ComfyUI is, with its queue
//   POST /prompt_sync        a prompt and its result in one request
//   GET  /worker/v1/status   of the agent and its machine
//   GET  /worker/v1/files    ComfyUI's models with size and, once read, hash
//   GET  /worker/v1/models   those that were asked for, and how far each is
//   POST /worker/v1/models   one more
//   POST /worker/v1/restart  ComfyUI is killed with all that it started, and started anew
//   *                        ComfyUI's own
//
// One executor: that of all connections of its server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/comfyui.hpp"
#include "agent/forwarder.hpp"
#include "agent/status.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "net/server.hpp"

namespace comfyd::agent {

struct FrontOptions {
    std::string token{};  // empty: everybody who reaches it, pages of other sites excepted
    Millis timeout_default{300'000};
    std::size_t requests_max = 128;  // at once, without WebSockets
    std::size_t sockets_max = 64;
    std::uint64_t prompt_bytes_max = 64ULL * 1024 * 1024;  // of /prompt_sync, which is held whole
    std::string gateway{};  // that is called, without a slash at its end; empty: none
};

class Front {
public:
    struct Parts {
        Executor executor;  // all outlive it
        net::Client& http;
        Pool& pool;
        const Clock& clock;
        ComfyUi& comfyui;
        Status& status;
    };
    Front(Parts parts, FrontOptions options);

    Task<> handle(net::Exchange& exchange);
    // Requests that are being answered; WebSockets do not count.
    std::size_t busy() const { return requests_; }
    // When somebody who may use it last asked for something.
    std::chrono::steady_clock::time_point asked() const { return asked_; }

private:
    Task<net::Response> answer(net::Exchange& exchange, std::string path);
    Task<> hand_on(net::Exchange& exchange);
    Task<net::Response> health();
    Task<net::Response> prompt_sync(net::Exchange& exchange);
    Task<net::Response> models(net::Exchange& exchange);
    static bool is_content(const net::Request& request);
    bool may_have_content(const net::Request& request) const;
    Task<> send_content(net::Exchange& exchange);
    Result<> admit(const net::Request& request) const;
    net::Response refuse(Error error) const;
    Task<> send(net::Exchange& exchange, net::Response response) const;

    Parts p_;
    FrontOptions options_;
    net::Headers cors_;
    Forwarder forwarder_;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    std::size_t requests_ = 0;
    std::size_t sockets_ = 0;
};

}  // namespace comfyd::agent
