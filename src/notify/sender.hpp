// Sends one webhook once: finds what it tells of, makes body and headers, and judges the answer.
// Runs on one executor.
#pragma once

#include <string>

#include "base/task.hpp"
#include "jobs/ledger.hpp"
#include "net/client.hpp"
#include "notify/lanes.hpp"
#include "notify/outcome.hpp"
#include "notify/webhooks.hpp"

namespace comfyd::notify {

class Sender {
public:
    // All of them outlive it.
    Sender(Executor executor, Clock& clock, jobs::Ledger& ledger, const WebhookOptions& options);

    // `attempt` lives in the frame that awaits this.
    Task<Outcome> send(const Attempt& attempt);

private:
    net::ClientRequest make_request(
        const jobs::Webhook& webhook,
        const jobs::Job& job,
        const jobs::Event& event,
        std::string body
    ) const;
    Task<Outcome> post(net::ClientRequest request);

    Clock& clock_;
    jobs::Ledger& ledger_;
    const WebhookOptions& options_;
    net::Client client_;
};

}  // namespace comfyd::notify
