// Where and how a client wants to be told of its job: the member webhook_config, which says most
// and so wins, the plain URLs webhook_url and callback_url, and the header X-Webhook-URL. Pure; any
// thread.
#pragma once

#include "api/router.hpp"
#include "api/services.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

// Part of decode_common(). Code::invalid_argument, Code::address_refused.
Result<> decode_webhook(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
);

}  // namespace comfyd::api
