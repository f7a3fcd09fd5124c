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
        owed_count_ -= known->second.is_owed ? 1 : 0;
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
        tell(known->second, frame);
    }
}

void Audience::tell(const Tenant& tenant, const FramePtr& frame) {
    for (const Socket& socket : tenant.sockets) {
        socket.mailbox->post(frame);
    }
}

bool Audience::is_crowd(const std::string& tenant) const {
    const auto known = tenants_.find(tenant);
    return known != tenants_.end() && known->second.sockets.size() > kCrowd;
}

void Audience::tell_length(Tenant& tenant) {
    owed_count_ -= std::exchange(tenant.is_owed, false) ? 1 : 0;
    tell(tenant, make_status(tenant.unfinished, true));
}

void Audience::tell_crowd(const std::string& tenant, Ticks::time_point now) {
    Tenant& crowd = tenants_.at(tenant);
    if (now >= crowd.may_tell_at) {
        const auto pause = kPauseForOne * static_cast<int>(crowd.sockets.size());
        crowd.may_tell_at = now + std::max<Ticks::duration>(kPauseMin, pause);
        tell_length(crowd);
    } else {
        owed_count_ += std::exchange(crowd.is_owed, true) ? 0 : 1;
    }
}

std::optional<Audience::Ticks::time_point> Audience::next_due() const {
    if (owed_count_ == 0) {
        return std::nullopt;
    }
    auto first = Ticks::time_point::max();
    for (const auto& [name, tenant] : tenants_) {
        if (tenant.is_owed) {
            first = std::min(first, tenant.may_tell_at);
        }
    }
    return first;
}

void Audience::tell_due(Ticks::time_point now) {
    for (auto& [name, tenant] : tenants_) {
        if (tenant.is_owed && now >= tenant.may_tell_at) {
            tell_crowd(name, now);
        }
    }
}

void Audience::tell_owed() {
    for (auto& [name, tenant] : tenants_) {
        if (tenant.is_owed) {
            tell_length(tenant);
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
