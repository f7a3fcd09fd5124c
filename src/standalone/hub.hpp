// The WebSockets of the server's clients. Belongs to the server's thread.
//
// A client that has several sockets under one id is told of its prompts by the newest; when that
// goes, by the one before.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comfy/server/backend.hpp"

namespace comfyd::standalone {

class Hub {
public:
    explicit Hub(std::size_t sockets_max) : sockets_max_(sockets_max) {}

    // Room for one more. Code::too_many_streams.
    Result<std::unique_ptr<comfy::server::Hold>> reserve();
    std::unique_ptr<comfy::server::Hold> attach(
        std::string client_id, std::shared_ptr<comfy::server::Mailbox> mailbox
    );

    void broadcast(const comfy::server::FramePtr& frame) const;
    // To the newest socket of the client; an empty id: to all.
    void send(std::string_view client_id, const comfy::server::FramePtr& frame) const;
    // The client's submission was answered just now (comfy/server/mailbox.hpp).
    void hesitate(std::string_view client_id) const;
    // Whether anybody would hear what is sent to this id.
    bool listens(std::string_view client_id) const;
    // Whether much waits for those who would hear it: what is soon out of date may be left out.
    bool is_behind(std::string_view client_id) const;

    // Says good-bye to everybody and takes nobody any more.
    void close();

private:
    class Room;
    class Place;
    struct Socket {
        std::string client_id;
        std::shared_ptr<comfy::server::Mailbox> mailbox;  // shared with the connection
    };

    comfy::server::Mailbox* newest(std::string_view client_id) const;

    std::size_t sockets_max_;
    std::size_t open_ = 0;
    bool closed_ = false;
    std::vector<Socket> sockets_;  // oldest first
};

}  // namespace comfyd::standalone
