#include "notify/channels.hpp"

#include <utility>

namespace comfyd::notify {

Channels make_channels(Executor executor, Clock& clock, ChannelOptions options) {
    const Clock& pace = options.pace != nullptr ? *options.pace : clock;
    auto webhooks = std::make_shared<WebhookChannel>(executor, clock, std::move(options.webhook));
    return {
        webhooks,
        webhooks,
        std::make_shared<mail::MailChannel>(
            executor, clock, pace, std::move(options.mail), std::move(options.mail_content)
        ),
        std::make_shared<sms::SmsChannel>(executor, clock, pace, std::move(options.sms)),
    };
}

}  // namespace comfyd::notify
