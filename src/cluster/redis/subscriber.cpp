#include "cluster/redis/subscriber.hpp"

#include <utility>

namespace comfyd::cluster::redis {
namespace {

std::string subscribe_to(const std::vector<std::string>& channels) {
    std::vector<std::string> words{"SUBSCRIBE"};
    words.insert(words.end(), channels.begin(), channels.end());
    return encode(words);
}

}  // namespace

Subscriber::Subscriber(
    Executor executor, Url url, std::vector<std::string> channels, Listener listener
)
    : channels_(std::move(channels)),
      listener_(std::move(listener)),
      line_(
          executor,
          std::move(url),
          {.opened = [this] { line_.send(subscribe_to(channels_)); },
           .heard = [this](Reply reply) { hear(std::move(reply)); },
           .closed = [this] { confirmed_ = 0; },
           .ping = [this] { line_.send(encode({"PING"})); },
           .failed = [this](const Error& why) { listener_.turned(false, why); }}
      ) {}

void Subscriber::hear(Reply reply) {
    if (reply.is(Reply::Kind::error)) {
        line_.drop(Error(Code::forbidden, "Redis refuses to subscribe: " + reply.text));
        return;
    }
    if (reply.items.size() < 2) {
        return;
    }
    const std::string& what = reply.items.front().text;
    if (what == "message" && reply.items.size() == 3) {
        listener_.heard(std::move(reply.items[2].text));
    } else if (what == "subscribe" && ++confirmed_ == channels_.size()) {
        listener_.turned(true, {});
    }
}

}  // namespace comfyd::cluster::redis
