#include "notify/channels.hpp"

#include <utility>

namespace comfyd::notify {

Channels make_channels(Executor executor, Clock& clock, ChannelOptions options) {
    auto webhooks = std::make_shared<WebhookChannel>(executor, clock, std::move(options.webhook));
    return {webhooks, webhooks};
}

}  // namespace comfyd::notify
