// Tells a webhook of what is not the change of one job: a signed POST, made once. Whoever asks for
// it sees to its repetition. Runs on one executor.
#pragma once

#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"
#include "notify/channel.hpp"
#include "notify/webhook_channel.hpp"

namespace comfyd::notify {

struct Announcement {
    Uuid about;         // what it tells of
    std::string event;  // "batch.completed"
    Time at{};          // when that happened
    std::string body;   // the same each time
};

class Announcer {
public:
    // Of the options: which addresses are allowed, the time for an attempt, whom to trust.
    Announcer(Executor executor, Clock& clock, const WebhookOptions& options);

    Task<Outcome> post(jobs::Webhook to, Announcement announcement);
    void close();

private:
    Executor executor_;
    Clock& clock_;
    const bool allow_private_addresses_;
    const Millis attempt_timeout_;
    net::Client client_;
};

}  // namespace comfyd::notify
