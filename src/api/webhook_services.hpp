// What the routes of webhooks work with. Owned by app/application; outlives the server.
#pragma once

#include <string>
#include <vector>

#include "notify/deliveries.hpp"
#include "notify/endpoint_book.hpp"
#include "notify/notifier.hpp"

namespace comfyd::api {

struct WebhookServices {
    notify::EndpointBook& endpoints;
    notify::Deliveries& deliveries;
    notify::Notifier& notifier;
    // Beside those of jobs: what only operators hear of.
    std::vector<std::string> operator_events{};
};

}  // namespace comfyd::api
