#include "standalone/hub.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::standalone {

namespace server = comfy::server;

class Hub::Room final : public server::Hold {
public:
    explicit Room(Hub& hub) : hub_(hub) { ++hub_.open_; }
    ~Room() override { --hub_.open_; }

private:
    Hub& hub_;
};

class Hub::Place final : public server::Hold {
public:
    Place(Hub& hub, const server::Mailbox* mailbox) : hub_(hub), mailbox_(mailbox) {}
    ~Place() override {
        std::erase_if(hub_.sockets_, [this](const Socket& socket) {
            return socket.mailbox.get() == mailbox_;
        });
    }

private:
    Hub& hub_;
    const server::Mailbox* mailbox_;
};

Result<std::unique_ptr<server::Hold>> Hub::reserve() {
    if (closed_ || open_ >= sockets_max_) {
        return fail(Code::too_many_streams, "too many sockets are open");
    }
    return std::make_unique<Room>(*this);
}

std::unique_ptr<server::Hold> Hub::attach(
    std::string client_id, std::shared_ptr<server::Mailbox> mailbox
) {
    if (closed_) {
        mailbox->end(Code::shutting_down);
    }
    const server::Mailbox* attached = mailbox.get();
    sockets_.push_back({std::move(client_id), std::move(mailbox)});
    return std::make_unique<Place>(*this, attached);
}

server::Mailbox* Hub::newest(std::string_view client_id) const {
    const auto found =
        std::ranges::find_if(sockets_.rbegin(), sockets_.rend(), [client_id](const Socket& socket) {
            return socket.client_id == client_id && !socket.mailbox->has_ended();
        });
    return found == sockets_.rend() ? nullptr : found->mailbox.get();
}

void Hub::hesitate(std::string_view client_id) const {
    if (server::Mailbox* mailbox = client_id.empty() ? nullptr : newest(client_id)) {
        mailbox->hesitate();
    }
}

bool Hub::listens(std::string_view client_id) const {
    return client_id.empty() ? !sockets_.empty() : newest(client_id) != nullptr;
}

bool Hub::is_behind(std::string_view client_id) const {
    if (!client_id.empty()) {
        const server::Mailbox* mailbox = newest(client_id);
        return mailbox != nullptr && mailbox->is_behind();
    }
    return std::ranges::any_of(sockets_, [](const Socket& socket) {
        return socket.mailbox->is_behind();
    });
}

void Hub::broadcast(const server::FramePtr& frame) const {
    // One that is full here is cut off, which changes nothing of the list.
    for (const Socket& socket : sockets_) {
        socket.mailbox->push(frame);
    }
}

void Hub::send(std::string_view client_id, const server::FramePtr& frame) const {
    if (client_id.empty()) {
        broadcast(frame);
    } else if (server::Mailbox* mailbox = newest(client_id)) {
        mailbox->push(frame);
    }
}

void Hub::close() {
    closed_ = true;
    for (const Socket& socket : sockets_) {
        socket.mailbox->end(Code::shutting_down);
    }
}

}  // namespace comfyd::standalone
