// Delivers webhooks: at least once, in order per job, signed, with back-off, and without letting a
// dead receiver delay anybody else. Runs on one executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/ledger.hpp"
#include "net/client.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify {

// The body for an event of a job whose dialect has its own; nullopt: the usual one. Gives the same
// bytes each time.
using OwnBody = std::function<Task<std::optional<std::string>>(jobs::Job, jobs::Event)>;

// The outputs of a job as the API shows them: {"outputs", "images"}, with links. `at` is the time
// of the event that tells of them; the same arguments give the same links.
using ShowResult = std::function<
    json::object(const jobs::Job&, const std::vector<jobs::Output>& outputs, Time at)>;

struct WebhookOptions {
    bool allow_private_addresses = false;
    std::size_t in_flight_max = 256;
    std::size_t in_flight_per_origin_max = 8;
    Millis attempt_timeout{15'000};
    Millis first_retry{1'000};  // then doubled each time, with jitter
    Millis retry_max{std::chrono::hours(1)};
    Millis give_up_after{std::chrono::hours(24)};
    std::string ca_file{};
    OwnBody own_body{};
    ShowResult show_result{};         // empty: outputs are told as they are stored
    Millis progress_interval{1'000};  // at most one message about progress of a job in this time
};

struct WebhookCounters {
    std::uint64_t delivered = 0;
    std::uint64_t failed_attempts = 0;
    std::uint64_t dead = 0;
};

class Webhooks {
public:
    Webhooks(
        Executor executor,
        Clock& clock,
        Outbox& outbox,
        jobs::Ledger& ledger,
        WebhookOptions options
    );
    ~Webhooks();

    void start();  // on the executor
    void wake();   // any thread: something may be due
    // Any thread. Progress is sent once, the newest only, and not after a later change of the job.
    void tell_progress(jobs::Job job, jobs::Webhook webhook, jobs::Event progress);
    // Any thread: this is stored, and the outbox may have it.
    void tell_change(const jobs::Event& event);
    Task<> stop(
    );  // on the executor: ends attempts in flight; they are repeated after the next start
    WebhookCounters counters() const;  // any thread

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

// Whether a webhook URL may be used at all: http(s), no user info, and no literal private address
// unless allowed.
Result<> check_webhook_url(const std::string& url, bool allow_private_addresses);

// The exact body bytes for an event of a job, and the headers that go with them.
std::string webhook_body(
    const jobs::Job& job, const jobs::Event& event, const ShowResult& show_result = {}
);
net::Headers webhook_headers(
    const jobs::Webhook& webhook,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::string& body,
    Time now
);

}  // namespace comfyd::notify
