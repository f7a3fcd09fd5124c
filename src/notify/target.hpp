// Whom a delivery goes to: one alternative for each kind of receiver. A target is kept with its
// deliveries, so that a repeated one goes where the first one went. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/id.hpp"
#include "jobs/job.hpp"

namespace comfyd::notify {

using EndpointId = Id<struct EndpointTag>;

// A tenant's endpoint, as it is set when it is told: whoever changes its address or its secret
// means what waits, too.
struct EndpointTarget {
    EndpointId id;
};

// By a channel of the operator's, under the name that it has there; how it sends is as it is set
// when it does.
struct MailTarget {
    std::string channel;
    std::string address;
};
struct SmsTarget {
    std::string channel;
    std::string number;
};

using Target = std::variant<jobs::Webhook, EndpointTarget, MailTarget, SmsTarget>;

// "webhook", "mail", "short message"
std::string_view kind_of(const Target& target);

// With all that it takes to reach it, secrets included.
std::string encode_target(const Target& target);
// nullopt: encode_target() of this version did not write it.
std::optional<Target> decode_target(std::string_view text);

// A target under the name by which the deliveries of a job are told apart: those of one name are
// made in order.
struct Recipient {
    std::string endpoint;
    Target target;
};

// The name of the webhook that came with the job.
inline constexpr std::string_view kOwnWebhook;

}  // namespace comfyd::notify
