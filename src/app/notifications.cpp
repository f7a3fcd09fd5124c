#include "app/notifications.hpp"

#include <utility>

#include "api/dialects/execution/execution.hpp"
#include "api/dialects/runpod/runpod.hpp"
#include "app/config/part_options.hpp"
#include "app/fleet_announcements.hpp"
#include "base/log.hpp"
#include "base/steady_clock.hpp"
#include "notify/channels.hpp"

namespace comfyd::app {

std::unique_ptr<notify::Notifier> make_notifier(
    Executor executor,
    Clock& clock,
    ledger::Storage& ledger,
    const Config& config,
    notify::EndpointBook& endpoints,
    const std::unique_ptr<api::Services>& services,
    notify::mail::MailContent mail_content
) {
    notify::ChannelOptions channels = channel_options(config);
    channels.mail_content = std::move(mail_content);
    channels.webhook.own_body = [&services](jobs::Job job, jobs::Event event) {
        return api::runpod::webhook_body(*services, std::move(job), std::move(event));
    };
    channels.webhook.show_result =
        [&services](const jobs::Job& job, const std::vector<jobs::Output>& outputs, Time at) {
            namespace shown = api::execution;
            return shown::encode_result(outputs, shown::links_at(*services, job, at));
        };
    channels.webhook.find_endpoint = [&endpoints](notify::EndpointId id) {
        return endpoints.find(id);
    };
    channels.pace = &SteadyClock::of_process();
    notify::NotifierOptions options = notifier_options(config);
    options.pace = &SteadyClock::of_process();
    options.disable_endpoint = [&endpoints](notify::EndpointId id, std::string why) {
        return endpoints.disable(id, std::move(why));
    };
    return std::make_unique<notify::Notifier>(
        executor,
        clock,
        ledger,
        ledger,
        notify::make_channels(executor, clock, std::move(channels)),
        std::move(options)
    );
}

void tell_of_jobs(
    jobs::Service& service, notify::Notifier& notifier, const notify::Routing& routing
) {
    service.on_change([&notifier, &routing](const jobs::Job& job, const jobs::Event& event) {
        if (job.has_webhook || !routing.now()->of(job, event).empty()) {
            notifier.tell_change(job, event);
        }
    });
    service.on_progress(
        [&notifier,
         &routing](const jobs::Job& job, const jobs::Webhook* webhook, const jobs::Event& event) {
            if (webhook != nullptr) {
                notifier.tell_progress(job, {std::string(notify::kOwnWebhook), *webhook}, event);
            }
            for (notify::Recipient& to : routing.now()->of(job, event)) {
                notifier.tell_progress(job, std::move(to), event);
            }
        },
        [&routing](const jobs::Job& job) { return routing.now()->want_progress(job); }
    );
}

std::unique_ptr<notify::WebhookChannel> make_announcer(
    Executor executor, Clock& clock, const Config& config, notify::EndpointBook& endpoints
) {
    notify::WebhookOptions options = channel_options(config).webhook;
    options.find_endpoint = [&endpoints](notify::EndpointId id) { return endpoints.find(id); };
    return std::make_unique<notify::WebhookChannel>(executor, clock, std::move(options));
}

namespace {

Task<notify::Outcome> announce(
    notify::WebhookChannel& announcer,
    notify::EndpointBook& endpoints,
    notify::Target to,
    notify::Announcement announcement
) {
    auto outcome = co_await announcer.announce(to, std::move(announcement));
    const auto* endpoint = std::get_if<notify::EndpointTarget>(&to);
    if (outcome.is_gone && endpoint != nullptr) {
        auto disabled = co_await endpoints.disable(endpoint->id, outcome.error);
        if (!disabled) {
            log::warning("cannot disable an endpoint", {{"error", disabled.error().message}});
        }
    }
    co_return outcome;
}

}  // namespace

bulk::Messengers messengers_of(notify::WebhookChannel& announcer, notify::EndpointBook& endpoints) {
    bulk::Messengers messengers;
    messengers.announce = [&](notify::Target to, notify::Announcement announcement) {
        return announce(announcer, endpoints, std::move(to), std::move(announcement));
    };
    messengers.retry_wish = [&](const notify::Target& to) { return announcer.retry_wish(to); };
    messengers.listeners = [&](const std::string& tenant, std::string_view event) {
        std::vector<notify::EndpointId> ids;
        for (const notify::EndpointPtr& endpoint : endpoints.of_tenant(tenant)) {
            if (!endpoint->disabled && endpoint->webhook.wants(event)) {
                ids.push_back(endpoint->id);
            }
        }
        return ids;
    };
    return messengers;
}

std::unique_ptr<FleetNews> make_fleet_news(
    Executor executor,
    const Clock& clock,
    ledger::Storage& ledger,
    const Config& config,
    notify::WebhookChannel& announcer,
    notify::EndpointBook& endpoints,
    std::function<bool()> is_ours
) {
    const auto listeners = [&endpoints] {
        auto all = endpoints.of_all();
        std::erase_if(all, [](const notify::EndpointPtr& one) {
            return one->disabled || !wants_fleet(one->webhook);
        });
        return all;
    };
    return std::make_unique<FleetNews>(
        FleetNews::Parts{
            executor,
            clock,
            ledger,
            ledger,
            config.fleet_name,
            messengers_of(announcer, endpoints),
            listeners,
            std::move(is_ours)
        },
        keeper_options(config).tender.telling
    );
}

}  // namespace comfyd::app
