#include "fleet/attempt_relay.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/stall_watch.hpp"

namespace comfyd::fleet {

AttemptRelay::AttemptRelay(Executor core, jobs::AttemptListener& listener)
    : core_(core),
      listener_(listener),
      wants_progress_(listener.wants_progress()),
      wants_worker_messages_(listener.wants_worker_messages()) {}

void AttemptRelay::tell(Word word) {
    bool is_first = false;
    {
        const Lock lock(mutex_);
        is_first = words_.empty();
        words_.push_back(std::move(word));
    }
    if (is_first) {
        boost::asio::post(core_, [self = shared_from_this()] { self->pass_on(); });
    }
}

void AttemptRelay::pass_on() {
    const NowDoing doing("hearing what a worker says");
    std::vector<Word> words;
    {
        const Lock lock(mutex_);
        words.swap(words_);
    }
    for (Word& word : words) {
        std::visit([this](auto& told) { hear(told); }, word);
    }
    wants_progress_.store(listener_.wants_progress(), std::memory_order_relaxed);
    wants_worker_messages_.store(listener_.wants_worker_messages(), std::memory_order_relaxed);
}

}  // namespace comfyd::fleet
