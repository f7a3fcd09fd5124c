// How channels and rules are written in the configuration file.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>

#include "app/config/notify_config.hpp"
#include "app/config/settings.hpp"
#include "app/config/yaml_members.hpp"
#include "net/http.hpp"
#include "notify/mail/address.hpp"

namespace comfyd::app {
namespace {

using notify::mail::MailOptions;
using notify::sms::Answers;
using notify::sms::Gateway;
using notify::sms::SmsOptions;

std::vector<std::string> one_or_several(const YAML::Node& node) {
    if (!node) {
        return {};
    }
    return node.IsSequence() ? node.as<std::vector<std::string>>()
                             : std::vector{node.as<std::string>()};
}

bool is_one_line(std::string_view text) {
    return std::ranges::none_of(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

notify::Restraint::Limits read_limits(Members& members) {
    notify::Restraint::Limits limits;
    limits.of_channel = {
        static_cast<int>(members.number("per_minute", 60, 0, 100'000)), std::chrono::minutes(1)
    };
    limits.of_recipient = {
        static_cast<int>(members.number("recipient_per_hour", 60, 0, 100'000)),
        std::chrono::hours(1)
    };
    return limits;
}

void check_ca_file(Members& members, const std::string& file) {
    if (!file.empty() && !std::ifstream(file)) {
        members.complain("has 'ca_file', but '" + file + "' cannot be read");
    }
}

void read_security(Members& members, notify::mail::SmtpServer& server) {
    using notify::mail::Security;
    const std::string word = members.text("security", "starttls");
    if (word == "tls") {
        server.security = Security::tls;
    } else if (word == "starttls") {
        server.security = Security::starttls;
    } else if (word == "none") {
        server.security = Security::none;
    } else {
        members.complain("has 'security', which is starttls, tls or none, not '" + word + "'");
    }
    const int usual = server.security == Security::tls        ? 465
                      : server.security == Security::starttls ? 587
                                                              : 25;
    server.port = static_cast<std::uint16_t>(members.number("port", usual, 1, 65'535));
}

std::optional<notify::mail::TokenOptions> read_oauth(Members& members) {
    const YAML::Node node = members.hidden("oauth");
    if (!node) {
        return std::nullopt;
    }
    if (!node.IsMap()) {
        members.complain("has 'oauth' with 'token_url', 'client_id' and 'refresh_token'");
        return std::nullopt;
    }
    Members own(node, "'oauth' of a channel");
    notify::mail::TokenOptions tokens;
    tokens.url = own.needed("token_url");
    tokens.client_id = own.needed("client_id");
    tokens.client_secret = own.secret("client_secret");
    tokens.refresh_token = own.needed_secret("refresh_token");
    tokens.scope = own.text("scope");
    const auto url = net::Url::parse(tokens.url);
    if (!url || !url->scheme.starts_with("http")) {
        own.complain("needs a 'token_url' such as https://oauth2.googleapis.com/token");
    }
    if (auto done = own.done(); !done) {
        members.complain("is not right: " + done.error().message);
    }
    return tokens;
}

void check_login(Members& members, const notify::mail::SmtpOptions& smtp) {
    const bool has_login = !smtp.password.empty() || smtp.tokens;
    if (smtp.user.empty() == has_login) {
        members.complain("needs 'user' and 'password' (or 'oauth') together, or none of them");
    }
    if (!smtp.password.empty() && smtp.tokens) {
        members.complain("has 'password' and 'oauth'; one of them is enough");
    }
    const bool is_near = smtp.server.host == "localhost" || smtp.server.host == "127.0.0.1" ||
                         smtp.server.host == "::1";
    if (has_login && smtp.server.security == notify::mail::Security::none && !is_near) {
        members.complain("would send its password in plain: set 'security' to starttls or tls");
    }
}

MailOptions read_mail(Members& members) {
    MailOptions mail;
    mail.smtp.server.host = members.needed("host");
    read_security(members, mail.smtp.server);
    mail.smtp.user = members.text("user");
    mail.smtp.password = members.secret("password");
    mail.smtp.tokens = read_oauth(members);
    mail.smtp.ca_file = members.text("ca_file");
    check_ca_file(members, mail.smtp.ca_file);
    if (mail.smtp.tokens) {
        mail.smtp.tokens->ca_file = mail.smtp.ca_file;
    }
    check_login(members, mail.smtp);
    mail.from = members.needed("from");
    if (auto from = notify::mail::address_for_servers(mail.from); !from) {
        members.complain("has 'from': " + from.error().message);
    } else {
        // Servers want a name with a domain; ours is that of our mails.
        mail.smtp.server.hello_name =
            members.text("hello_name", from->substr(from->rfind('@') + 1));
    }
    mail.from_name = members.text("from_name", "comfyd");
    mail.unsubscribe = members.text("unsubscribe");
    const bool is_link =
        mail.unsubscribe.starts_with("https://") || mail.unsubscribe.starts_with("mailto:");
    const bool is_plain = std::ranges::all_of(mail.unsubscribe, [](char c) {
        return c > ' ' && c <= '~' && c != '<' && c != '>';
    });
    if (!mail.unsubscribe.empty() && (!is_link || !is_plain || mail.unsubscribe.size() > 900)) {
        members.complain("has 'unsubscribe', an address that begins with https:// or mailto:");
    }
    mail.digest = std::chrono::seconds(members.number("digest_s", 0, 0, 86'400));
    if (!is_one_line(mail.smtp.server.host + mail.smtp.server.hello_name + mail.smtp.user)) {
        members.complain("has control characters in 'host', 'hello_name' or 'user'");
    }
    return mail;
}

Answers read_answers(Members& members, const std::string& name, Answers usual) {
    const YAML::Node node = members.node(name);
    if (!node) {
        return usual;
    }
    if (!node.IsMap()) {
        members.complain("has '" + name + "' with 'status', 'json_pointer' and 'values'");
        return usual;
    }
    Members own(node, "'" + name + "' of a channel");
    Answers answers;
    const YAML::Node statuses = own.node("status");
    answers.statuses = statuses ? statuses.as<std::vector<int>>() : usual.statuses;
    answers.pointer = own.text("json_pointer");
    answers.values = one_or_several(own.node(name == "ok" ? "equals" : "values"));
    if (answers.pointer.empty() != answers.values.empty() ||
        (!answers.pointer.empty() && !answers.pointer.starts_with('/'))) {
        own.complain("needs a 'json_pointer' such as /status and the values at it together");
    }
    if (auto done = own.done(); !done) {
        members.complain("is not right: " + done.error().message);
    }
    return answers;
}

Gateway read_template(Members& members) {
    Gateway gateway;
    const YAML::Node url = members.hidden("url");
    gateway.url = url ? url.as<std::string>() : "";
    gateway.method = members.text("method", "POST");
    const YAML::Node headers = members.hidden("headers");
    if (headers && headers.IsMap()) {
        for (const auto& header : headers) {
            gateway.headers.emplace_back(
                header.first.as<std::string>(), header.second.as<std::string>()
            );
            if (!is_one_line(gateway.headers.back().first + gateway.headers.back().second)) {
                members.complain("has control characters in 'headers'");
            }
        }
    }
    const std::string format = members.text("content_type", "json");
    if (format == "json") {
        gateway.format = Gateway::Format::json;
    } else if (format == "form") {
        gateway.format = Gateway::Format::form;
    } else if (format == "query") {
        gateway.format = Gateway::Format::query;
    } else {
        members.complain("has 'content_type', which is json, form or query, not '" + format + "'");
    }
    const YAML::Node body = members.hidden("body");
    gateway.body = body ? body.as<std::string>() : "";
    gateway.ok = read_answers(members, "ok", gateway.ok);
    gateway.retry = read_answers(members, "retry", gateway.retry);
    gateway.pause = read_answers(members, "pause", gateway.pause);
    return gateway;
}

Gateway read_twilio(Members& members) {
    notify::sms::TwilioAccount account;
    account.url = members.text("url", account.url);
    account.account = members.needed("account");
    account.user = members.text("key", account.account);
    account.secret = members.needed_secret("secret");
    account.from = members.text("from");
    account.messaging_service = members.text("messaging_service");
    if (account.from.empty() == account.messaging_service.empty()) {
        members.complain("needs 'from' or 'messaging_service', one of them");
    }
    return notify::sms::twilio(account);
}

Gateway read_vonage(Members& members) {
    notify::sms::VonageAccount account;
    account.url = members.text("url", account.url);
    account.key = members.needed("key");
    account.secret = members.needed_secret("secret");
    account.from = members.needed("from");
    return notify::sms::vonage(account);
}

SmsOptions read_sms(Members& members, const std::string& kind) {
    SmsOptions sms;
    sms.gateway = kind == "twilio"   ? read_twilio(members)
                  : kind == "vonage" ? read_vonage(members)
                                     : read_template(members);
    sms.segments_max = static_cast<std::size_t>(members.number("segments_max", 2, 1, 10));
    sms.timeout = std::chrono::seconds(members.number("timeout_s", 15, 1, 25));
    sms.ca_file = members.text("ca_file");
    check_ca_file(members, sms.ca_file);
    if (auto checked = notify::sms::check_gateway(sms.gateway); !checked) {
        members.complain("cannot be used: " + checked.error().message);
    }
    return sms;
}

}  // namespace

Result<> read_channel(const YAML::Node& item, NotifyConfig& into) {
    if (!item.IsMap() || !item["name"]) {
        return invalid("a channel needs a 'name' and a 'kind': mail, twilio, vonage or sms");
    }
    ChannelSetting channel;
    channel.name = item["name"].as<std::string>();
    if (!is_pool_name(channel.name) ||
        std::ranges::find(into.channels, channel.name, &ChannelSetting::name) !=
            into.channels.end()) {
        return invalid(
            "a channel needs a 'name' of its own, of small letters, digits, '.', '_' and '-'"
        );
    }
    Members members(item, "the channel '" + channel.name + "'");
    static_cast<void>(members.node("name"));
    const YAML::Node kind = members.node("kind");
    channel.kind = kind ? kind.as<std::string>() : "";
    const notify::Restraint::Limits limits = read_limits(members);
    if (channel.kind == "mail") {
        MailOptions mail = read_mail(members);
        mail.limits = limits;
        channel.options = std::move(mail);
    } else if (channel.kind == "twilio" || channel.kind == "vonage" || channel.kind == "sms") {
        SmsOptions sms = read_sms(members, channel.kind);
        sms.limits = limits;
        channel.options = std::move(sms);
    } else {
        return invalid(
            "the channel '" + channel.name + "' has the 'kind' mail, twilio, vonage or sms, not '" +
            channel.kind + "'"
        );
    }
    if (auto done = members.done(); !done) {
        return done;
    }
    channel.shown = std::move(members.shown);
    into.channels.push_back(std::move(channel));
    return {};
}

Result<> read_rule(const YAML::Node& item, NotifyConfig& into) {
    if (!item.IsMap()) {
        return invalid("a rule has 'channel' and 'to'");
    }
    Members members(item, "a rule");
    RuleSetting rule;
    rule.channel = members.needed("channel");
    rule.to = one_or_several(members.node("to"));
    rule.events = one_or_several(members.node("events"));
    const std::string tenant = members.text("tenant");
    rule.tenant = tenant.empty() ? std::nullopt : std::optional(tenant);
    rule.workflow = members.text("workflow");
    const YAML::Node duration = members.node("min_duration_s");
    rule.min_duration_s = duration ? duration.as<double>() : 0;
    if (!(rule.min_duration_s >= 0 && rule.min_duration_s <= 1e7)) {
        members.complain("has 'min_duration_s', seconds, not below 0");
    }
    if (auto done = members.done(); !done) {
        return done;
    }
    into.rules.push_back(std::move(rule));
    return {};
}

}  // namespace comfyd::app
