#include "notify/endpoint.hpp"

#include <array>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::notify {
namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::array<std::string_view, 4> kSchemes{"all", "standard", "x-signature", "x-webhook"};
constexpr std::array<std::string_view, 2> kBodyForms{"plain", "cloudevents"};

template <class T, std::size_t N>
std::optional<T> parse_name(const std::array<std::string_view, N>& names, std::string_view text) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == text) {
            return static_cast<T>(i);
        }
    }
    return std::nullopt;
}

std::string string_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

std::optional<Time> time_of(const json::object& from, std::string_view key) {
    const auto ms = json::find_int(from, key).value_or(std::nullopt);
    return ms ? std::optional(from_unix_ms(*ms)) : std::nullopt;
}

}  // namespace

std::string_view to_string(Scheme scheme) {
    return kSchemes.at(static_cast<std::size_t>(scheme));
}
std::optional<Scheme> parse_scheme(std::string_view text) {
    return parse_name<Scheme>(kSchemes, text);
}
std::string_view to_string(BodyForm form) {
    return kBodyForms.at(static_cast<std::size_t>(form));
}
std::optional<BodyForm> parse_body_form(std::string_view text) {
    return parse_name<BodyForm>(kBodyForms, text);
}

Manner Endpoint::manner(Time now) const {
    const bool signs_too = previous_until && now < *previous_until;
    return {scheme, body, signs_too ? previous_secret : ""};
}

json::object Endpoint::about() const {
    json::object object = webhook.to_json();
    object.erase("secret");
    object["description"] = description;
    object["scheme"] = to_string(scheme);
    object["body"] = to_string(body);
    object["created_at"] = to_unix_ms(created_at);
    object["updated_at"] = to_unix_ms(updated_at);
    if (previous_until) {
        object["previous_until"] = to_unix_ms(*previous_until);
    }
    if (disabled) {
        object["disabled"] = *disabled;
    }
    return object;
}

json::object Endpoint::secrets() const {
    return {{"secret", webhook.secret}, {"previous", previous_secret}};
}

std::optional<Endpoint> Endpoint::restore(
    EndpointId id,
    std::string tenant,
    std::uint64_t revision,
    const json::object& about,
    const json::object& secrets
) {
    auto webhook = jobs::Webhook::from_json(about);
    const auto scheme = parse_scheme(string_of(about, "scheme"));
    const auto body = parse_body_form(string_of(about, "body"));
    const auto created_at = time_of(about, "created_at");
    if (!webhook || !scheme || !body || !created_at) {
        return std::nullopt;
    }
    Endpoint endpoint;
    endpoint.id = id;
    endpoint.tenant = std::move(tenant);
    endpoint.revision = revision;
    endpoint.description = string_of(about, "description");
    endpoint.webhook = std::move(*webhook);
    endpoint.webhook.secret = string_of(secrets, "secret");
    endpoint.scheme = *scheme;
    endpoint.body = *body;
    endpoint.previous_secret = string_of(secrets, "previous");
    endpoint.previous_until = time_of(about, "previous_until");
    endpoint.disabled = json::find_string(about, "disabled").value_or(std::nullopt);
    endpoint.created_at = *created_at;
    endpoint.updated_at = time_of(about, "updated_at").value_or(*created_at);
    return endpoint;
}

std::string make_endpoint_secret() {
    std::array<char, 32> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return std::string(kSecretPrefix) + to_base64({bytes.data(), bytes.size()});
}

std::string as_standard_secret(std::string secret) {
    const auto encoded = std::string_view(secret).substr(
        secret.starts_with(kSecretPrefix) ? kSecretPrefix.size() : secret.size()
    );
    return !encoded.empty() && from_base64(encoded)
               ? secret
               : std::string(kSecretPrefix) + to_base64(secret);
}

}  // namespace comfyd::notify
