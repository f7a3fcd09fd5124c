#include "cluster/local_bus.hpp"

#include <boost/asio/post.hpp>

namespace comfyd::cluster {

void LocalExchange::carry(const NodeId& from, const NodeId& to, std::string message) {
    switch (decide_ ? decide_(from, to) : Fate::arrives) {
        case Fate::arrives:
            deliver(from, to, std::move(message));
            break;
        case Fate::is_lost:
            break;
        case Fate::waits:
            waiting_.push_back({from, to, std::move(message)});
            break;
    }
}

void LocalExchange::deliver(const NodeId& from, const NodeId& to, std::string message) {
    boost::asio::post(executor_, [this, from, to, message = std::move(message)]() mutable {
        const auto found = buses_.find(to);
        if (found != buses_.end() && found->second->is_up_) {
            found->second->counts_.received += 1;
            found->second->listener_.heard(from, std::move(message));
        }
    });
}

void LocalExchange::deliver_waiting() {
    for (Waiting& one : std::exchange(waiting_, {})) {
        deliver(one.from, one.to, std::move(one.message));
    }
}

void LocalExchange::cut_off(const NodeId& node, bool is_cut_off) {
    if (const auto found = buses_.find(node); found != buses_.end()) {
        found->second->turn(!is_cut_off);
    }
}

LocalBus::LocalBus(LocalExchange& exchange, NodeId self) : exchange_(exchange), self_(self) {
    exchange_.buses_.emplace(self_, this);
}

LocalBus::~LocalBus() {
    exchange_.buses_.erase(self_);
}

Task<> LocalBus::stop() {
    is_up_ = false;
    co_return;
}

void LocalBus::turn(bool is_up) {
    if (is_up_ == is_up) {
        return;
    }
    is_up_ = is_up;
    counts_.losses += is_up ? 0 : 1;
    boost::asio::post(exchange_.executor_, [exchange = &exchange_, self = self_, is_up] {
        const auto found = exchange->buses_.find(self);
        if (found != exchange->buses_.end()) {
            found->second->listener_.turned(is_up);
        }
    });
}

bool LocalBus::may_send(const std::string& message) {
    const bool may = is_up_ && message.size() <= kMessageBytesMax;
    ++(may ? counts_.sent : counts_.dropped);
    return may;
}

void LocalBus::send(NodeId to, std::string message) {
    if (may_send(message)) {
        exchange_.carry(self_, to, std::move(message));
    }
}

void LocalBus::tell_all(std::string message) {
    if (!may_send(message)) {
        return;
    }
    for (const auto& [node, bus] : exchange_.buses_) {
        if (node != self_) {
            exchange_.carry(self_, node, message);
        }
    }
}

}  // namespace comfyd::cluster
