#include "app/notifications.hpp"

#include <utility>

#include "api/dialects/execution/execution.hpp"
#include "api/dialects/runpod/runpod.hpp"
#include "app/config/part_options.hpp"
#include "notify/channels.hpp"

namespace comfyd::app {

std::unique_ptr<notify::Notifier> make_notifier(
    Executor executor,
    Clock& clock,
    ledger::Storage& ledger,
    const Config& config,
    const std::unique_ptr<api::Services>& services
) {
    notify::ChannelOptions channels = channel_options(config);
    channels.webhook.own_body = [&services](jobs::Job job, jobs::Event event) {
        return api::runpod::webhook_body(*services, std::move(job), std::move(event));
    };
    channels.webhook.show_result =
        [&services](const jobs::Job& job, const std::vector<jobs::Output>& outputs, Time at) {
            namespace shown = api::execution;
            return shown::encode_result(outputs, shown::links_at(*services, job, at));
        };
    return std::make_unique<notify::Notifier>(
        executor,
        clock,
        ledger,
        ledger,
        notify::make_channels(executor, clock, std::move(channels)),
        notifier_options(config)
    );
}

std::unique_ptr<notify::Announcer> make_announcer(
    Executor executor, Clock& clock, const Config& config
) {
    return std::make_unique<notify::Announcer>(executor, clock, channel_options(config).webhook);
}

}  // namespace comfyd::app
