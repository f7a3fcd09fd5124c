#include "api/dialects/native/audience.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/frames.hpp"

namespace comfyd::api::native {
namespace {

constexpr std::size_t kCrowd = 16;  // sockets of a tenant

}  // namespace

void Audience::attach(
    const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
) {
    tenants_[tenant].sockets.push_back({client_id, std::move(mailbox)});
    socket_count_ += 1;
}

void Audience::detach(const std::string& tenant, const Mailbox* mailbox) {
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end()) {
        return;
    }
    socket_count_ -= std::erase_if(known->second.sockets, [mailbox](const Socket& socket) {
        return socket.mailbox.get() == mailbox;
    });
    forget_idle(tenant);
}

void Audience::forget_idle(const std::string& tenant) {
    const auto known = tenants_.find(tenant);
    if (known->second.sockets.empty() && known->second.unfinished == 0) {
        tenants_.erase(known);
    }
}

bool Audience::is_there(const std::string& tenant) const {
    const auto known = tenants_.find(tenant);
    return known != tenants_.end() && !known->second.sockets.empty();
}

Mailbox* Audience::find(const std::string& tenant, const std::string& client_id) const {
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end() || client_id.empty()) {
        return nullptr;
    }
    const auto& sockets = known->second.sockets;
    const auto newest = std::find_if(sockets.rbegin(), sockets.rend(), [&](const Socket& one) {
        return one.client_id == client_id;
    });
    return newest == sockets.rend() ? nullptr : newest->mailbox.get();
}

std::vector<std::string> Audience::tenants() const {
    std::vector<std::string> names;
    for (const auto& [name, tenant] : tenants_) {
        if (!tenant.sockets.empty()) {
            names.push_back(name);
        }
    }
    return names;
}

void Audience::tell_all(const std::string& tenant, const FramePtr& frame) const {
    if (const auto known = tenants_.find(tenant); known != tenants_.end()) {
        for (const Socket& socket : known->second.sockets) {
            socket.mailbox->post(frame);
        }
    }
}

void Audience::set_unfinished(const std::string& tenant, std::size_t count) {
    tenants_[tenant].unfinished = count;
    forget_idle(tenant);
}

FramePtr Audience::status(const std::string& tenant) const {
    const auto known = tenants_.find(tenant);
    return known == tenants_.end()
               ? make_status(0, false)
               : make_status(known->second.unfinished, known->second.sockets.size() > kCrowd);
}

}  // namespace comfyd::api::native
