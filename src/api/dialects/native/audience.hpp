// The sockets of ComfyUI's clients, and how long the queue of their tenant is, which all of them
// are told. Belongs to the board and lives on its executor.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
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

    using Ticks = std::chrono::steady_clock;
    // To so many only the latest length of the queue is told, and now and then: the more they are,
    // the more seldom. Telling one costs a message to each.
    bool is_crowd(const std::string& tenant) const;
    // It is told at once where the last time is long enough ago; otherwise it is owed.
    void tell_crowd(const std::string& tenant, Ticks::time_point now);
    // When the first that is owed may be told; nullopt: nothing is.
    std::optional<Ticks::time_point> next_due() const;
    void tell_due(Ticks::time_point now);
    void tell_owed();  // whenever it is due

private:
    struct Socket {
        std::string client_id;
        std::shared_ptr<Mailbox> mailbox;  // shared with the connection
    };
    struct Tenant {
        std::size_t unfinished = 0;
        std::vector<Socket> sockets;  // oldest first
        Ticks::time_point may_tell_at{};
        bool is_owed = false;
    };

    static constexpr std::chrono::milliseconds kPauseMin{50};
    static constexpr std::chrono::microseconds kPauseForOne{50};

    void forget_idle(const std::string& tenant);
    static void tell(const Tenant& tenant, const FramePtr& frame);
    void tell_length(Tenant& tenant);

    std::size_t socket_count_ = 0;
    std::size_t owed_count_ = 0;
    std::unordered_map<std::string, Tenant> tenants_;  // with sockets, or with unfinished jobs
};

}  // namespace comfyd::api::native
