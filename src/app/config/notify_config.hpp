// The part of the configuration that says whom the operator wants to be told of jobs, and by what:
// channels, and rules that lead to them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "notify/mail/mail_channel.hpp"
#include "notify/routing.hpp"
#include "notify/sms/sms_channel.hpp"

namespace YAML {
class Node;
}

namespace comfyd::app {

struct ChannelSetting {
    std::string name;
    std::string kind;  // "mail", "twilio", "vonage", "sms"
    std::variant<notify::mail::MailOptions, notify::sms::SmsOptions> options;
    // As it was written, secrets masked.
    std::vector<std::pair<std::string, std::string>> shown{};
};

struct RuleSetting {
    std::string channel;
    std::vector<std::string> to;
    std::vector<std::string> events{};  // "failed", …; empty: the ends
    std::optional<std::string> tenant{};
    std::string workflow{};
    double min_duration_s = 0;
};

struct NotifyConfig {
    std::vector<ChannelSetting> channels{};
    std::vector<RuleSetting> rules{};
};

// One item of `notify.channels` or `notify.rules`. Code::config_invalid.
Result<> read_channel(const YAML::Node& item, NotifyConfig& into);
Result<> read_rule(const YAML::Node& item, NotifyConfig& into);

// What must hold between them. Code::config_invalid.
Result<> check_notify(const NotifyConfig& config);

// As YAML.
std::string show_notify(const NotifyConfig& config);

// REQUIRES: check_notify() was content.
std::vector<notify::Route> routes_of(const NotifyConfig& config);
std::map<std::string, notify::mail::MailOptions> mail_senders(const NotifyConfig& config);
std::map<std::string, notify::sms::SmsOptions> sms_senders(const NotifyConfig& config);
// Where something goes by a channel.
notify::Target target_of(const ChannelSetting& channel, const std::string& to);

}  // namespace comfyd::app
