#include "cluster/redis_bus.hpp"

#include <cstring>
#include <utility>

#include <boost/asio/dispatch.hpp>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::cluster {
namespace {

// A message over the wire begins with its sender.
constexpr std::size_t kSenderBytes = sizeof(Uuid::bytes);

std::string signed_by(const NodeId& node, std::string_view message) {
    std::string whole(reinterpret_cast<const char*>(node.uuid.bytes.data()), kSenderBytes);
    return whole.append(message);
}

std::string inbox_of(const std::string& prefix, const NodeId& node) {
    return prefix + "node:" + node.to_string();
}

std::string inbox_of_all(const std::string& prefix) {
    return prefix + "all";
}

}  // namespace

RedisBus::RedisBus(Executor executor, redis::Url url, std::string cluster, NodeId self)
    : executor_(executor),
      name_(url.to_string()),
      prefix_("comfyd:" + cluster + ":"),
      self_(self),
      client_(executor, url, [this](bool is_up, const Error& why) { turn(is_up, why); }),
      subscriber_(
          executor,
          url,
          {inbox_of(prefix_, self), inbox_of_all(prefix_)},
          {.heard = [this](std::string message) { hear(std::move(message)); },
           .turned = [this](bool is_up, const Error& why) { turn(is_up, why); }}
      ) {}

RedisBus::~RedisBus() = default;

void RedisBus::listen(Listener listener) {
    listener_ = std::move(listener);
}

void RedisBus::start() {
    COMFYD_ON(executor_);
    client_.start();
    subscriber_.start();
}

Task<> RedisBus::stop() {
    co_await client_.stop();
    co_await subscriber_.stop();
    is_up_ = false;
}

void RedisBus::send(NodeId to, std::string message) {
    publish(inbox_of(prefix_, to), std::move(message));
}

void RedisBus::tell_all(std::string message) {
    publish(inbox_of_all(prefix_), std::move(message));
}

void RedisBus::publish(std::string channel, std::string message) {
    if (!is_up_ || message.size() > kMessageBytesMax) {
        ++dropped_;
        return;
    }
    boost::asio::dispatch(
        executor_,
        [this, channel = std::move(channel), message = std::move(message)]() mutable {
            const bool is_sent =
                client_.post({"PUBLISH", std::move(channel), signed_by(self_, message)});
            ++(is_sent ? sent_ : dropped_);
        }
    );
}

void RedisBus::hear(std::string message) {
    if (message.size() < kSenderBytes) {
        return;
    }
    NodeId from;
    std::memcpy(from.uuid.bytes.data(), message.data(), kSenderBytes);
    if (from == self_) {
        return;
    }
    ++received_;
    message.erase(0, kSenderBytes);
    listener_.heard(from, std::move(message));
}

void RedisBus::turn(bool is_up, const Error& why) {
    const bool was_up = is_up_;
    const bool is_now = is_up && client_.is_up() && subscriber_.is_up();
    if (is_now) {
        complained_of_.reset();
    } else if (!is_up && complained_of_ != why.code) {
        complained_of_ = why.code;
        log::warning(
            "the bus between nodes is down: they find each other's changes by polling",
            {{"redis", name_}, {"error", why.message}}
        );
    }
    {
        const Lock lock(mutex_);
        if (is_now || !is_up) {
            problem_ = why.message;
        }
    }
    if (is_now == was_up) {
        return;
    }
    is_up_ = is_now;
    if (is_now) {
        log::info("the bus between nodes is up", {{"redis", name_}});
    } else {
        ++losses_;
    }
    listener_.turned(is_now);
}

std::string RedisBus::problem() const {
    const Lock lock(mutex_);
    return problem_;
}

// Of its two connections the one that is worse off.
std::optional<CircuitBreaker::State> RedisBus::breaker() const {
    const auto out = client_.breaker();
    return out == CircuitBreaker::State::closed ? subscriber_.breaker() : out;
}

BusCounts RedisBus::counts() const {
    return {sent_, received_, dropped_, losses_};
}

}  // namespace comfyd::cluster
