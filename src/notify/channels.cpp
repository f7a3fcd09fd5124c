#include "notify/channels.hpp"

#include <utility>

namespace comfyd::notify {

Channels make_channels(Executor executor, Clock& clock, ChannelOptions options) {
    return {std::make_unique<WebhookChannel>(executor, clock, std::move(options.webhook))};
}

}  // namespace comfyd::notify
