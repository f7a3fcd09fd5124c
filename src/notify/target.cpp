#include "notify/target.hpp"

#include <utility>

#include "base/json.hpp"

namespace comfyd::notify {
namespace {

constexpr std::string_view kWebhook = "webhook";
constexpr std::string_view kEndpoint = "endpoint";

json::object to_json(const jobs::Webhook& webhook) {
    json::object object = webhook.to_json();
    object["kind"] = kWebhook;
    return object;
}

json::object to_json(const EndpointTarget& target) {
    return {{"kind", kEndpoint}, {"id", target.id.to_string()}};
}

std::optional<Target> read_webhook(const json::object& from) {
    auto webhook = jobs::Webhook::from_json(from);
    return webhook ? std::optional<Target>(std::move(*webhook)) : std::nullopt;
}

std::optional<Target> read_endpoint(const json::object& from) {
    const auto text = json::find_string(from, "id").value_or(std::nullopt).value_or("");
    const auto id = EndpointId::parse(text);
    return id ? std::optional<Target>(EndpointTarget{*id}) : std::nullopt;
}

}  // namespace

std::string encode_target(const Target& target) {
    return std::visit([](const auto& one) { return json::serialize(to_json(one)); }, target);
}

std::optional<Target> decode_target(std::string_view text) {
    const auto object = json::parse_object(text);
    if (!object) {
        return std::nullopt;
    }
    const auto kind = json::find_string(*object, "kind").value_or(std::nullopt).value_or("");
    if (kind == kWebhook) {
        return read_webhook(*object);
    }
    return kind == kEndpoint ? read_endpoint(*object) : std::nullopt;
}

}  // namespace comfyd::notify
