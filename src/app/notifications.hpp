// Whoever is told of jobs, and in which words: those of the API that the job came by.
#pragma once

#include <functional>
#include <memory>

#include "api/services.hpp"
#include "app/config/config.hpp"
#include "app/fleet_news.hpp"
#include "bulk/telling.hpp"
#include "jobs/service.hpp"
#include "ledger/storage.hpp"
#include "notify/endpoint_book.hpp"
#include "notify/mail/mail_channel.hpp"
#include "notify/notifier.hpp"
#include "notify/routing.hpp"
#include "notify/webhook_channel.hpp"

namespace comfyd::app {

// `services` is filled before the first message; all but the configuration outlive it.
std::unique_ptr<notify::Notifier> make_notifier(
    Executor executor,
    Clock& clock,
    ledger::Storage& ledger,
    const Config& config,
    notify::EndpointBook& endpoints,
    const std::unique_ptr<api::Services>& services,
    notify::mail::MailContent mail_content
);

// From now on the service tells the notifier what there is to tell.
void tell_of_jobs(
    jobs::Service& service, notify::Notifier& notifier, const notify::Routing& routing
);

// Whoever tells of the end of batches. All but the configuration outlive it.
std::unique_ptr<notify::WebhookChannel> make_announcer(
    Executor executor, Clock& clock, const Config& config, notify::EndpointBook& endpoints
);
// Its ways for the batches, which it and the endpoints outlive.
bulk::Messengers messengers_of(notify::WebhookChannel& announcer, notify::EndpointBook& endpoints);

// Whoever tells operators of the fleet, by the same way. All but the configuration outlive it.
std::unique_ptr<FleetNews> make_fleet_news(
    Executor executor,
    const Clock& clock,
    ledger::Storage& ledger,
    const Config& config,
    notify::WebhookChannel& announcer,
    notify::EndpointBook& endpoints,
    std::function<bool()> is_ours
);

}  // namespace comfyd::app
