// The sockets of ComfyUI's clients, and how long the queue of their tenant is. Belongs to the
// board and lives on its executor.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "comfy/server/mailbox.hpp"

namespace comfyd::api::native {

using comfy::server::FramePtr;
using comfy::server::Mailbox;

class Audience {
public:
    // The newest mailbox of an id gets the messages of its prompts; when it goes, the one before
    // does.
    void attach(
        const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
    );
    void detach(const std::string& tenant, const Mailbox* mailbox);

    std::size_t socket_count() const { return socket_count_; }
    bool is_there(const std::string& tenant) const;
    // nullptr: no such client is connected.
    Mailbox* find(const std::string& tenant, const std::string& client_id) const;
    std::vector<std::string> tenants() const;  // with sockets
    void tell_all(const std::string& tenant, const FramePtr& frame) const;

    // How many of the tenant's jobs have not ended, and the message that tells of it.
    void set_unfinished(const std::string& tenant, std::size_t count);
    FramePtr status(const std::string& tenant) const;

private:
    struct Socket {
        std::string client_id;
        std::shared_ptr<Mailbox> mailbox;  // shared with the connection
    };
    struct Tenant {
        std::size_t unfinished = 0;
        std::vector<Socket> sockets;  // oldest first
    };

    void forget_idle(const std::string& tenant);

    std::size_t socket_count_ = 0;
    std::unordered_map<std::string, Tenant> tenants_;  // with sockets, or with unfinished jobs
};

}  // namespace comfyd::api::native
