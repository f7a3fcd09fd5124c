#include "notify/target.hpp"

#include <utility>

#include "base/json.hpp"

namespace comfyd::notify {
namespace {

constexpr std::string_view kWebhook = "webhook";
constexpr std::string_view kEndpoint = "endpoint";
constexpr std::string_view kMail = "mail";
constexpr std::string_view kSms = "sms";

json::object to_json(const jobs::Webhook& webhook) {
    json::object object = webhook.to_json();
    object["kind"] = kWebhook;
    return object;
}

json::object to_json(const EndpointTarget& target) {
    return {{"kind", kEndpoint}, {"id", target.id.to_string()}};
}

json::object to_json(const MailTarget& target) {
    return {{"kind", kMail}, {"channel", target.channel}, {"address", target.address}};
}

json::object to_json(const SmsTarget& target) {
    return {{"kind", kSms}, {"channel", target.channel}, {"number", target.number}};
}

std::string text_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

std::optional<Target> read_webhook(const json::object& from) {
    auto webhook = jobs::Webhook::from_json(from);
    return webhook ? std::optional<Target>(std::move(*webhook)) : std::nullopt;
}

std::optional<Target> read_endpoint(const json::object& from) {
    const auto id = EndpointId::parse(text_of(from, "id"));
    return id ? std::optional<Target>(EndpointTarget{*id}) : std::nullopt;
}

}  // namespace

std::string_view kind_of(const Target& target) {
    if (std::holds_alternative<MailTarget>(target)) {
        return "mail";
    }
    return std::holds_alternative<SmsTarget>(target) ? "short message" : "webhook";
}

std::string encode_target(const Target& target) {
    return std::visit([](const auto& one) { return json::serialize(to_json(one)); }, target);
}

std::optional<Target> decode_target(std::string_view text) {
    const auto object = json::parse_object(text);
    if (!object) {
        return std::nullopt;
    }
    const std::string kind = text_of(*object, "kind");
    if (kind == kWebhook) {
        return read_webhook(*object);
    }
    if (kind == kMail) {
        return MailTarget{text_of(*object, "channel"), text_of(*object, "address")};
    }
    if (kind == kSms) {
        return SmsTarget{text_of(*object, "channel"), text_of(*object, "number")};
    }
    return kind == kEndpoint ? read_endpoint(*object) : std::nullopt;
}

}  // namespace comfyd::notify
