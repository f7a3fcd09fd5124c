// The headers of a webhook: which message it is, and the proof of where it comes from, in the words
// of the receiver's scheme. They depend on stored values and the time of the attempt alone.
#pragma once

#include <string>

#include "jobs/job.hpp"
#include "net/http.hpp"
#include "notify/announcement.hpp"
#include "notify/endpoint.hpp"

namespace comfyd::notify {

// What is said of a message beside its body; the same for every attempt and every receiver.
struct Envelope {
    std::string id;     // of the message
    std::string about;  // the id of what it tells of
    std::string event;  // "execution.completed"
    Time at{};          // when that happened
};
Envelope envelope_of(const jobs::Job& job, const jobs::Event& event);
Envelope envelope_of(const Announcement& announcement);

net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const Envelope& envelope,
    const std::string& body,
    Time now,
    const Manner& manner = {}
);

}  // namespace comfyd::notify
