// The channels that there are, made of their options.
#pragma once

#include "base/task.hpp"
#include "notify/channel.hpp"
#include "notify/webhook_channel.hpp"

namespace comfyd::notify {

struct ChannelOptions {
    WebhookOptions webhook{};
};

// `executor` and `clock` outlive them.
Channels make_channels(Executor executor, Clock& clock, ChannelOptions options);

}  // namespace comfyd::notify
