// The WebSockets of a double: one per client id, messages in the order they were given. All members
// on the double's executor.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "net/server.hpp"

namespace comfyd::support {

class Hub {
public:
    explicit Hub(Executor executor, Millis pause) : executor_(executor), pause_(pause) {}

    // What a new socket is told first, by its id.
    using Greeting = std::function<std::vector<std::string>(const std::string& client_id)>;
    // Serves one connection until it ends. Its writer runs in `writers`.
    Task<> serve(
        net::Exchange& exchange,
        std::string client_id,
        Greeting greeting,
        std::string features,
        TaskGroup& writers
    );

    void send(const std::string& client_id, const std::string& data, bool binary = false);
    void send_to_all(const std::string& data, bool binary = false);
    bool has(const std::string& client_id) const { return sockets_.contains(client_id); }
    bool empty() const { return sockets_.empty(); }
    std::size_t size() const { return sockets_.size(); }
    // True while a socket has not been sent most of what is for it.
    bool is_behind() const;
    bool wants_metadata(const std::string& client_id) const;
    // Drops the connection of this client, as a broken network does, once it has what was sent so
    // far.
    void drop_when_written(const std::string& client_id);
    void drop_all();

private:
    struct Socket;
    using SocketPtr = std::shared_ptr<Socket>;  // its reader, its writer and the table
    static void push(Socket& socket, std::string data, bool binary);
    Task<> write_all(SocketPtr socket);
    static Task<> read_all(SocketPtr socket, std::string features);

    Executor executor_;
    const Millis pause_;  // before each message
    std::map<std::string, SocketPtr> sockets_;
    std::vector<std::weak_ptr<Socket>> open_;  // also those that lost their place in the table
};

}  // namespace comfyd::support
