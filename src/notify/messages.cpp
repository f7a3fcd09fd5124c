#include "notify/messages.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace comfyd::notify {
namespace {

// The job as it was when the event happened, as far as it is told: it may have been started anew
// since, and a repeated delivery must not differ from the first.
jobs::Job as_of(jobs::Job job, const std::vector<jobs::Event>& events, const jobs::Event& event) {
    job.state = event.state;
    job.started_at.reset();
    for (const jobs::Event& earlier : events) {
        if (earlier.sequence >= event.sequence) {
            break;
        }
        if (earlier.type == jobs::EventType::started) {
            job.started_at = earlier.at;
        } else if (is_terminal(earlier.state)) {
            job.started_at.reset();  // it was revived after this
        }
    }
    return job;
}

}  // namespace

Task<Result<std::optional<Message>>> find_message(
    jobs::Ledger& ledger, Delivery delivery, Target to
) {
    auto job = co_await ledger.find(delivery.job);
    if (!job) {
        co_return fail(std::move(job.error()));
    }
    auto events = co_await ledger.events(delivery.job, 0);
    if (!events) {
        co_return fail(std::move(events.error()));
    }
    const auto event = std::ranges::find(*events, delivery.sequence, &jobs::Event::sequence);
    if (!*job || event == events->end()) {
        co_return std::nullopt;
    }
    co_return Message{std::move(to), as_of(std::move(**job), *events, *event), *event};
}

}  // namespace comfyd::notify
