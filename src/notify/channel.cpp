#include "notify/channel.hpp"

#include <utility>

namespace comfyd::notify {

Task<std::optional<Letter>> Channel::show(Message) {
    co_return std::nullopt;
}

std::size_t Channel::together_max(const Target&) const {
    return 1;
}

Task<std::vector<Outcome>> Channel::deliver_together(std::vector<Message> messages) {
    std::vector<Outcome> outcomes;
    for (Message& message : messages) {
        auto outcome = co_await deliver(std::move(message));
        outcomes.push_back(std::move(outcome));
    }
    co_return outcomes;
}

}  // namespace comfyd::notify
