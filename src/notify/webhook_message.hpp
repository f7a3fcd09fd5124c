// What a webhook is told: body and headers. Both depend on stored values only (and the headers on
// the time of the attempt), so that a repeated delivery has the very same body and id.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jobs/job.hpp"
#include "net/http.hpp"

namespace comfyd::notify {

// The outputs of a job as the API shows them: {"outputs", "images"}, with links. `at` is the time
// of the event that tells of them; the same arguments give the same links.
using ShowResult = std::function<
    json::object(const jobs::Job&, const std::vector<jobs::Output>& outputs, Time at)>;

// The exact body bytes for an event of a job, and the headers that go with them.
std::string webhook_body(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result = {}
);
net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::string& body,
    Time now
);

}  // namespace comfyd::notify
