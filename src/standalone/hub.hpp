// The WebSockets of the server's clients. Belongs to the server's thread.
//
// A client that has several sockets under one id is told of its prompts by the newest; when that
// goes, by the one before. Nobody waits for a client that does not read: it is cut off when too
// much waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "comfy/messages.hpp"
#include "net/server.hpp"

namespace comfyd::standalone {

class Hub {
public:
    Hub(std::size_t sockets_max, std::size_t bytes_max)
        : sockets_max_(sockets_max), bytes_max_(bytes_max) {}

    // What a new socket is told first, by its id.
    using Greeting = std::function<std::vector<std::string>(const std::string& client_id)>;
    // Serves one connection until it ends. `features`: the answer to a client's own.
    Task<> serve(
        net::Exchange& exchange, std::string client_id, Greeting greeting, std::string features
    );

    void broadcast(const std::string& text);
    // To the newest socket of the client; an empty id: to all.
    void send(std::string_view client_id, const std::string& text);
    void send(std::string_view client_id, const comfy::Preview& preview);
    void broadcast(const comfy::NodeText& text);
    // The client's submission was answered just now. Clients of the older kind, which tell no
    // features, begin to listen only when they have read that answer: they are told the next
    // messages a little later than a small prompt takes here.
    void hesitate(std::string_view client_id);
    // Whether anybody would hear what is sent to this id.
    bool listens(std::string_view client_id) const;

    // Whether much waits for those who would hear it: what is soon out of date may be left out.
    bool is_behind(std::string_view client_id) const;

    // Says good-bye to everybody and takes nobody any more.
    void close();

private:
    struct Socket;
    class Conversation;
    using SocketPtr = std::shared_ptr<Socket>;  // its connection and the list
    using FramePtr = std::shared_ptr<const std::string>;

    Socket* newest(std::string_view client_id) const;
    void push(Socket& socket, FramePtr data, bool binary) const;

    std::size_t sockets_max_;
    std::size_t bytes_max_;
    bool closed_ = false;
    std::vector<SocketPtr> sockets_;  // oldest first
};

}  // namespace comfyd::standalone
