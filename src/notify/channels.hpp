// The channels that there are, made of their options.
#pragma once

#include <map>
#include <string>

#include "base/task.hpp"
#include "notify/channel.hpp"
#include "notify/mail/mail_channel.hpp"
#include "notify/sms/sms_channel.hpp"
#include "notify/webhook_channel.hpp"

namespace comfyd::notify {

struct ChannelOptions {
    WebhookOptions webhook{};
    std::map<std::string, mail::MailOptions> mail{};  // by the names of the operator's channels
    mail::MailContent mail_content{};
    std::map<std::string, sms::SmsOptions> sms{};  // likewise
    // By which they count what they may send and pause; nullptr: the same as they are made with.
    const Clock* pace = nullptr;
};

// `executor` and the clocks outlive them.
Channels make_channels(Executor executor, Clock& clock, ChannelOptions options);

}  // namespace comfyd::notify
