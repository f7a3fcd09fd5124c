// The routes under /v2/webhooks: a tenant's endpoints, and what became of deliveries. Parts of
// add_webhooks(); pure functions where they encode and decode.
#pragma once

#include <optional>
#include <string>

#include "api/dialects/dialects.hpp"
#include "api/webhook_services.hpp"

namespace comfyd::api::webhooks {

void add_endpoints(Router& router, const Services& services);
void add_deliveries(Router& router, const Services& services);

// A route of this family.
void add_route(
    Router& router,
    const Services& services,
    net::Method method,
    const char* pattern,
    Handler handler,
    json::object operation
);
Task<> refuse(Call& call, const Services& services, Error error);
Task<> answer(Call& call, net::Response response);
// The members of the body; none where there is no body.
Task<Result<json::object>> read_members(Call& call);

// Without its secret.
json::object encode_endpoint(const notify::Endpoint& endpoint);
// `endpoint` with what `members` say; those that are null go back to their default.
Result<notify::Endpoint> changed_endpoint(
    notify::Endpoint endpoint, const json::object& members, const Services& services
);
// The secret that `members` name, in the form that the scheme wants, or a new one.
Result<std::string> decode_secret(const json::object& members, notify::Scheme scheme);

json::object encode_delivery(
    const notify::DeliveryView& view, const notify::EndpointBook& endpoints
);
json::object encode_letter(const notify::Letter& letter);
// "job" for the webhook that came with the job, the id of an endpoint, or the name itself.
std::string encode_receiver(const std::string& endpoint);
std::string decode_receiver(const std::string& text);

json::object schemas();
json::object operation_list_endpoints();
json::object operation_create_endpoint();
json::object operation_get_endpoint();
json::object operation_change_endpoint();
json::object operation_delete_endpoint();
json::object operation_rotate_secret();
json::object operation_test_endpoint();
json::object operation_list_deliveries();
json::object operation_get_delivery();
json::object operation_replay_delivery();
json::object operation_delete_delivery();
json::object operation_replay_all();
json::object operation_purge_all();

}  // namespace comfyd::api::webhooks
