// Tells by webhook: a signed request to the address that a client named, or to an endpoint of its
// tenant. Runs on one executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"
#include "notify/channel.hpp"
#include "notify/endpoint.hpp"
#include "notify/webhook_message.hpp"
#include "notify/webhook_signing.hpp"

namespace comfyd::notify {

// The body for an event of a job whose dialect has its own; nullopt: the usual one. Gives the same
// bytes each time.
using OwnBody = std::function<Task<std::optional<std::string>>(jobs::Job, jobs::Event)>;

// Endpoints as they are set now; nullptr: there is no such endpoint.
using FindEndpoint = std::function<std::shared_ptr<const Endpoint>(EndpointId)>;

struct WebhookOptions {
    bool allow_private_addresses = false;
    bool allow_unverified_tls = false;
    Millis attempt_timeout{15'000};
    std::string ca_file{};
    OwnBody own_body{};
    ShowResult show_result{};      // empty: outputs are told as they are stored
    FindEndpoint find_endpoint{};  // empty: there are none
};

class WebhookChannel final : public Channel {
public:
    WebhookChannel(Executor executor, Clock& clock, WebhookOptions options);

    // Of one endpoint, or of one origin ("https://example.com:8443").
    Result<std::string> lane_of(const Target& target) const override;
    RetryWish retry_wish(const Target& target) const override;
    Task<Outcome> deliver(Message message) override;
    // Also where the endpoint is disabled. Signatures and the values of the client's own headers
    // are left out.
    Task<std::optional<Letter>> show(Message message) override;
    // Once, of something other than a job; whoever asks for it sees to its repetition.
    Task<Outcome> announce(Target to, Announcement announcement);
    void close() override;

private:
    // Where and how a target is told now.
    struct Address {
        jobs::Webhook webhook;
        Manner manner{};
        bool is_own = true;  // it came with the job
        std::optional<std::string> disabled{};
    };
    Result<Address> find_address(const Target& target) const;  // also of one that is disabled
    Result<Address> address_of(const Target& target) const;
    Task<std::string> body_of(const Message& message, const Address& address) const;
    Task<Outcome> post(const Address& address, const Envelope& envelope, std::string body);

    Executor executor_;
    Clock& clock_;
    const WebhookOptions options_;
    net::Client client_;
};

}  // namespace comfyd::notify
