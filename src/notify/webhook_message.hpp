// What a webhook is told. It depends on stored values only, so that a repeated delivery has the
// very same body.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jobs/job.hpp"
#include "notify/announcement.hpp"
#include "notify/endpoint.hpp"

namespace comfyd::notify {

// The outputs of a job as the API shows them: {"outputs", "images"}, with links. `at` is the time
// of the event that tells of them; the same arguments give the same links.
using ShowResult = std::function<
    json::object(const jobs::Job&, const std::vector<jobs::Output>& outputs, Time at)>;

// The exact body bytes for an event of a job.
std::string webhook_body(
    const jobs::Job& job,
    const jobs::Event& event,
    const ShowResult& show_result = {},
    BodyForm form = BodyForm::plain
);
std::string webhook_body(const Announcement& announcement, BodyForm form);

}  // namespace comfyd::notify
