#include "app/config/notify_config.hpp"

#include <algorithm>
#include <array>

#include "app/config/settings.hpp"
#include "notify/mail/address.hpp"

namespace comfyd::app {
namespace {

// What a rule may name; each stands for the webhook event "execution.…".
constexpr std::array<std::string_view, 6> kEvents{
    "queued", "started", "completed", "failed", "cancelled", "warning"
};

const ChannelSetting* find_channel(const NotifyConfig& config, const std::string& name) {
    const auto found = std::ranges::find(config.channels, name, &ChannelSetting::name);
    return found == config.channels.end() ? nullptr : &*found;
}

bool is_mail(const ChannelSetting& channel) {
    return std::holds_alternative<notify::mail::MailOptions>(channel.options);
}

Result<> check_recipient(const ChannelSetting& channel, const std::string& to) {
    return is_mail(channel) ? notify::mail::check_address(to) : notify::sms::check_number(to);
}

Result<> check_events(const RuleSetting& rule) {
    for (const std::string& event : rule.events) {
        if (std::ranges::find(kEvents, event) == kEvents.end()) {
            return invalid(
                "a rule's 'events' are queued, started, completed, failed, cancelled and warning, "
                "not '" +
                event + "'"
            );
        }
    }
    return {};
}

std::string in_quotes(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' || c == '\\' ? "\\" : "";
        quoted += c;
    }
    return quoted + "\"";
}

std::string show_list(const std::vector<std::string>& words) {
    std::string shown;
    for (const std::string& word : words) {
        shown += (shown.empty() ? "" : ", ") + in_quotes(word);
    }
    return "[" + shown + "]";
}

}  // namespace

Result<> check_notify(const NotifyConfig& config) {
    for (const RuleSetting& rule : config.rules) {
        const ChannelSetting* channel = find_channel(config, rule.channel);
        if (channel == nullptr) {
            return invalid(
                "'notify.rules' has the channel '" + rule.channel +
                "', but no channel of 'notify.channels' has this name"
            );
        }
        if (rule.to.empty()) {
            return invalid(
                "a rule for the channel '" + rule.channel + "' needs recipients as 'to'"
            );
        }
        for (const std::string& to : rule.to) {
            if (auto checked = check_recipient(*channel, to); !checked) {
                return invalid(
                    "a rule for the channel '" + rule.channel + "': " + checked.error().message
                );
            }
        }
        if (auto checked = check_events(rule); !checked) {
            return checked;
        }
    }
    return {};
}

std::string show_notify(const NotifyConfig& config) {
    std::string out = "notify:\n";
    out += config.channels.empty() ? "  channels: []\n" : "  channels:\n";
    for (const ChannelSetting& channel : config.channels) {
        out += "    - name: " + in_quotes(channel.name) + "\n      kind: " + channel.kind + "\n";
        for (const auto& [key, value] : channel.shown) {
            out += "      " + key + ": " + in_quotes(value) + "\n";
        }
    }
    out += config.rules.empty() ? "  rules: []\n" : "  rules:\n";
    for (const RuleSetting& rule : config.rules) {
        out += "    - channel: " + in_quotes(rule.channel) + "\n      to: " + show_list(rule.to) +
               "\n";
        if (!rule.events.empty()) {
            out += "      events: " + show_list(rule.events) + "\n";
        }
        if (rule.tenant) {
            out += "      tenant: " + in_quotes(*rule.tenant) + "\n";
        }
        if (!rule.workflow.empty()) {
            out += "      workflow: " + in_quotes(rule.workflow) + "\n";
        }
        if (rule.min_duration_s > 0) {
            out += "      min_duration_s: " + show_number(rule.min_duration_s) + "\n";
        }
    }
    return out;
}

notify::Target target_of(const ChannelSetting& channel, const std::string& to) {
    if (is_mail(channel)) {
        return notify::MailTarget{channel.name, to};
    }
    return notify::SmsTarget{channel.name, to};
}

std::vector<notify::Route> routes_of(const NotifyConfig& config) {
    std::vector<notify::Route> routes;
    for (const RuleSetting& rule : config.rules) {
        const ChannelSetting& channel = *find_channel(config, rule.channel);
        for (const std::string& to : rule.to) {
            notify::Route route;
            route.to = {"channel:" + channel.name + ":" + to, target_of(channel, to)};
            route.tenant = rule.tenant;
            route.workflow_id = rule.workflow;
            for (const std::string& event : rule.events) {
                route.events.push_back("execution." + event);
            }
            route.ran_at_least =
                std::chrono::round<Millis>(std::chrono::duration<double>(rule.min_duration_s));
            routes.push_back(std::move(route));
        }
    }
    return routes;
}

std::map<std::string, notify::mail::MailOptions> mail_senders(const NotifyConfig& config) {
    std::map<std::string, notify::mail::MailOptions> senders;
    for (const ChannelSetting& channel : config.channels) {
        if (const auto* mail = std::get_if<notify::mail::MailOptions>(&channel.options)) {
            senders[channel.name] = *mail;
        }
    }
    return senders;
}

std::map<std::string, notify::sms::SmsOptions> sms_senders(const NotifyConfig& config) {
    std::map<std::string, notify::sms::SmsOptions> senders;
    for (const ChannelSetting& channel : config.channels) {
        if (const auto* sms = std::get_if<notify::sms::SmsOptions>(&channel.options)) {
            senders[channel.name] = *sms;
        }
    }
    return senders;
}

}  // namespace comfyd::app
