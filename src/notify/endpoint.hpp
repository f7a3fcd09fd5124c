// An endpoint of a tenant: a webhook that is told of all its jobs. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "notify/target.hpp"

namespace comfyd::notify {

// By which headers a receiver knows a message and proves where it comes from.
enum class Scheme {
    all,          // those of all the others: what comes with a job
    standard,     // Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature
    x_signature,  // X-Execution-ID, X-Signature
    x_webhook,    // X-Webhook-Event, -ID, -Timestamp, -Signature
};
std::string_view to_string(Scheme scheme);
std::optional<Scheme> parse_scheme(std::string_view text);

enum class BodyForm {
    plain,         // as docs/webhooks.md says
    cloud_events,  // the same as data of a CloudEvents 1.0 document
};
std::string_view to_string(BodyForm form);
std::optional<BodyForm> parse_body_form(std::string_view text);

// How a webhook is written to.
struct Manner {
    Scheme scheme = Scheme::all;
    BodyForm body = BodyForm::plain;
    std::string previous_secret{};  // signs too, where the scheme has room for it; empty: none
};

struct Endpoint {
    EndpointId id;
    std::string tenant;
    std::uint64_t revision = 0;  // counts its changes
    std::string description{};
    jobs::Webhook webhook;
    Scheme scheme = Scheme::standard;
    BodyForm body = BodyForm::plain;
    std::string previous_secret{};          // of before the latest rotation
    std::optional<Time> previous_until{};   // until when that signs as well
    std::optional<std::string> disabled{};  // why nothing is sent to it; nullopt: it is in use
    Time created_at{};
    Time updated_at{};

    Manner manner(Time now) const;
    // The name of its deliveries.
    std::string delivery_name() const { return name_of(id); }
    static std::string name_of(EndpointId id) { return "endpoint:" + id.to_string(); }

    // As it is stored, in two parts: what may be read and what is secret.
    json::object about() const;
    json::object secrets() const;
    // nullopt: they are not what the two above made.
    static std::optional<Endpoint> restore(
        EndpointId id,
        std::string tenant,
        std::uint64_t revision,
        const json::object& about,
        const json::object& secrets
    );
};

// "whsec_" and 32 random bytes in base64, as Standard Webhooks wants it.
std::string make_endpoint_secret();
// What a text is as a secret of that form. Libraries decode what they are given; ours would not.
std::string as_standard_secret(std::string secret);

}  // namespace comfyd::notify
