// Where and how a client wants to be told of its job: the member webhook_config, which says most
// and so wins, the plain URLs webhook_url and callback_url, and the header X-Webhook-URL. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

// Whether a webhook may be used; `prefix` stands before the names of its fields in what is said,
// and `more_events` are known beside those of jobs and batches. Code::invalid_argument,
// Code::address_refused.
Result<> check_webhook(
    const jobs::Webhook& webhook,
    const std::string& prefix,
    const Services& services,
    const std::vector<std::string>& more_events = {}
);

// Part of decode_common(). Code::invalid_argument, Code::address_refused.
Result<> decode_webhook(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
);

}  // namespace comfyd::api
