// Tells by webhook: a signed POST to the address that the job's client named. Runs on one executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"
#include "notify/channel.hpp"
#include "notify/webhook_message.hpp"

namespace comfyd::notify {

// The body for an event of a job whose dialect has its own; nullopt: the usual one. Gives the same
// bytes each time.
using OwnBody = std::function<Task<std::optional<std::string>>(jobs::Job, jobs::Event)>;

struct WebhookOptions {
    bool allow_private_addresses = false;
    Millis attempt_timeout{15'000};
    std::string ca_file{};
    OwnBody own_body{};
    ShowResult show_result{};  // empty: outputs are told as they are stored
};

class WebhookChannel final : public Channel {
public:
    WebhookChannel(Executor executor, Clock& clock, WebhookOptions options);

    // Of one origin, "https://example.com:8443".
    Result<std::string> lane_of(const Target& target) const override;
    Task<Outcome> deliver(Message message) override;
    void close() override;

private:
    Task<std::string> body_of(const Message& message) const;
    Task<Outcome> post(net::ClientRequest request);

    Executor executor_;
    Clock& clock_;
    const WebhookOptions options_;
    net::Client client_;
};

}  // namespace comfyd::notify
