// The headers of a webhook: which message it is, and the proof of where it comes from, in the words
// of the receiver's scheme. They depend on stored values and the time of the attempt alone.
#pragma once

#include <string>

#include "jobs/job.hpp"
#include "net/http.hpp"
#include "notify/endpoint.hpp"

namespace comfyd::notify {

// The same for every attempt and every receiver of an event.
std::string message_id(const jobs::Job& job, const jobs::Event& event);

net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::string& body,
    Time now,
    const Manner& manner = {}
);

}  // namespace comfyd::notify
