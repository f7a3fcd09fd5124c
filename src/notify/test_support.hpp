// For the tests of notify: a receiver of webhooks, and a ledger that can be watched and broken.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "net/test_support.hpp"
#include "notify/channels.hpp"
#include "notify/notifier.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify::test {

inline constexpr std::chrono::seconds kPatience{20};

struct Received {
    std::string path;
    net::Headers headers;
    std::string body;
};

// A real server on the loopback that answers as told. "/hold" does not answer until the caller goes
// away.
class Receiver {
public:
    Receiver()
        : server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return handle(*this, exchange);
          }) {
        threads_.start();
        auto endpoint = server_.listen({});
        EXPECT_TRUE(endpoint) << endpoint.error().message;
        port_ = endpoint->port;
    }
    ~Receiver() { server_.stop(Millis(0)); }

    std::string url(const std::string& path) const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }
    // The answers to the next requests, in order; 204 when there are none left.
    void answer_next(net::Response response) {
        const std::lock_guard lock(mutex_);
        answers_.push_back(std::move(response));
    }
    void answer_next(int status) {
        net::Response response;
        response.status = status;
        answer_next(std::move(response));
    }
    // What came, once there are at least `count`.
    std::vector<Received> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        const bool came =
            changed_.wait_for(lock, kPatience, [&] { return received_.size() >= count; });
        EXPECT_TRUE(came) << received_.size() << " of " << count << " requests came";
        return received_;
    }
    std::vector<Received> received() {
        const std::lock_guard lock(mutex_);
        return received_;
    }
    std::size_t most_at_once() {
        const std::lock_guard lock(mutex_);
        return most_at_once_;
    }

private:
    static Task<> handle(Receiver& self, net::Exchange& exchange) {
        const std::string path = exchange.request().path;
        auto body = co_await exchange.read_body(1'000'000);
        if (!body) {
            co_return;
        }
        net::Response response = self.note({path, exchange.request().headers, std::move(*body)});
        if (path == "/hold") {
            co_await exchange.wait_closed(std::chrono::hours(1));
        }
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
        const std::lock_guard lock(self.mutex_);
        --self.at_once_;
    }
    net::Response note(Received received) {
        const std::lock_guard lock(mutex_);
        received_.push_back(std::move(received));
        most_at_once_ = std::max(most_at_once_, ++at_once_);
        changed_.notify_all();
        net::Response response;
        response.status = 204;
        if (!answers_.empty()) {
            response = std::move(answers_.front());
            answers_.pop_front();
        }
        return response;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Received> received_;
    std::deque<net::Response> answers_;
    std::size_t at_once_ = 0;
    std::size_t most_at_once_ = 0;
    net::IoThreads threads_{1};
    net::Server server_;
    std::uint16_t port_ = 0;
};

// Jobs and deliveries in memory, with the promises of the two interfaces as far as notify asks for
// them. Keeps a list of what was written to the outbox, and fails on demand. Any thread.
class MemoryLedger final : public jobs::Ledger, public Outbox {
public:
    struct Write {
        std::string kind;  // "delivered", "retry", "put_aside", "give_up"
        Delivery delivery;
        Time at;  // of the next attempt, or of the end
        std::string error;
    };

    // Whom a delivery goes to that a job's webhook stands for: the webhook, unless a test wants
    // another kind.
    std::function<Target(const jobs::Webhook&)> targets = [](const jobs::Webhook& webhook) {
        return Target(webhook);
    };

    // As where nodes share the storage: what was handed out is not handed out again for a while.
    std::atomic<bool> hands_out_once{false};
    // Of the notifier's executor: whoever asks what is due waits for it.
    std::shared_ptr<Signal> before_due;

    void fail_reads(int count) { failing_reads_ = count; }
    void fail_job_reads(int count) { failing_job_reads_ = count; }
    void fail_writes(int count) { failing_writes_ = count; }
    int reads() const { return reads_; }
    std::vector<Write> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        const bool came =
            changed_.wait_for(lock, kPatience, [&] { return writes_.size() >= count; });
        EXPECT_TRUE(came) << writes_.size() << " of " << count << " writes came";
        return writes_;
    }
    void save(const jobs::Change& change, const std::optional<jobs::Spec>& spec = std::nullopt) {
        const std::lock_guard lock(mutex_);
        Row& row = rows_[change.job.id];
        if (spec) {
            row.spec = *spec;
        }
        row.job = change.job;
        row.events.push_back(change.event);
        if (row.spec.webhook->wants(jobs::webhook_event_name(change.event.type))) {
            Delivery delivery;
            delivery.job = change.job.id;
            delivery.sequence = change.event.sequence;
            delivery.created_at = delivery.next_attempt_at = change.event.at;
            delivery.endpoint = row.endpoint;
            delivery.target = row.target ? *row.target : targets(*row.spec.webhook);
            row.pending.push_back(std::move(delivery));
        }
    }
    // Later deliveries of the job go there.
    void redirect(const JobId& id, std::string endpoint, Target target) {
        const std::lock_guard lock(mutex_);
        rows_.at(id).endpoint = std::move(endpoint);
        rows_.at(id).target = std::move(target);
    }
    void forget(const JobId& id) {
        const std::lock_guard lock(mutex_);
        rows_.at(id).is_forgotten = true;
    }
    std::size_t pending() {
        const std::lock_guard lock(mutex_);
        std::size_t count = 0;
        for (const auto& [id, row] : rows_) {
            count += row.pending.size();
        }
        return count;
    }

    Task<Result<std::optional<jobs::Job>>> find(JobId id) override {
        if (take(failing_job_reads_)) {
            co_return broken();
        }
        const std::lock_guard lock(mutex_);
        co_return rows_.at(id).is_forgotten ? std::nullopt : std::optional(rows_.at(id).job);
    }
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override {
        if (take(failing_job_reads_)) {
            co_return broken();
        }
        const std::lock_guard lock(mutex_);
        co_return rows_.at(id).is_forgotten ? std::nullopt : std::optional(rows_.at(id).spec);
    }
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override {
        const std::lock_guard lock(mutex_);
        std::vector<jobs::Event> events = rows_.at(id).events;
        std::erase_if(events, [&](const jobs::Event& event) { return event.sequence <= after; });
        co_return events;
    }

    Task<Result<std::vector<Delivery>>> due(Time now, int limit) override {
        ++reads_;
        if (take(failing_reads_)) {
            co_return broken();
        }
        if (before_due) {
            co_await before_due->wait();
        }
        const std::lock_guard lock(mutex_);
        std::vector<Delivery> due;
        for (auto& [id, row] : rows_) {
            if (!row.pending.empty() && row.pending.front().next_attempt_at <= now) {
                due.push_back(row.pending.front());
                if (hands_out_once) {
                    row.pending.front().next_attempt_at = now + std::chrono::seconds(30);
                }
            }
        }
        std::sort(due.begin(), due.end(), [](const Delivery& a, const Delivery& b) {
            return a.next_attempt_at < b.next_attempt_at;
        });
        due.resize(std::min(due.size(), static_cast<std::size_t>(limit)));
        co_return due;
    }
    Task<Result<std::optional<Time>>> next_due() override {
        const std::lock_guard lock(mutex_);
        std::optional<Time> next;
        for (const auto& [id, row] : rows_) {
            if (!row.pending.empty() && (!next || row.pending.front().next_attempt_at < *next)) {
                next = row.pending.front().next_attempt_at;
            }
        }
        co_return next;
    }
    Task<Result<>> delivered(Delivery delivery, Time now) override {
        co_return write({"delivered", delivery, now, ""});
    }
    Task<Result<>> retry_at(Delivery delivery, Time next_attempt_at, std::string error) override {
        co_return write({"retry", delivery, next_attempt_at, std::move(error)});
    }
    Task<Result<>> put_aside(Delivery delivery, Time next_attempt_at, std::string why) override {
        co_return write({"put_aside", delivery, next_attempt_at, std::move(why)});
    }
    Task<Result<>> give_up(Delivery delivery, Time now, std::string error) override {
        co_return write({"give_up", delivery, now, std::move(error)});
    }

    Task<Result<int>> give_up_waiting(std::string endpoint, Time now, std::string why, int limit)
        override {
        const std::lock_guard lock(mutex_);
        int count = 0;
        for (auto& [id, row] : rows_) {
            while (!row.pending.empty() && row.pending.front().endpoint == endpoint && count < limit
            ) {
                writes_.push_back({"give_up", row.pending.front(), now, why});
                row.pending.pop_front();
                ++count;
            }
        }
        changed_.notify_all();
        co_return count;
    }

    Task<Result<>> hasten(Time now, Millis by) override {
        const std::lock_guard lock(mutex_);
        for (auto& [id, row] : rows_) {
            for (Delivery& delivery : row.pending) {
                if (delivery.next_attempt_at > now) {
                    delivery.next_attempt_at = std::max(now, delivery.next_attempt_at - by);
                }
            }
        }
        co_return Result<>();
    }

    // What notify has no use for.
    Task<Result<jobs::Accepted>> accept(jobs::NewJob) override { co_return broken(); }
    Task<Result<jobs::Accepted>> find_key(std::string, std::string) override { co_return broken(); }
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string, std::string) override {
        co_return broken();
    }
    Task<Result<>> commit(jobs::Change) override { co_return broken(); }
    Task<Result<jobs::Page>> list(jobs::ListQuery) override { co_return broken(); }
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId) override { co_return broken(); }
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string>) override {
        co_return broken();
    }
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery) override { co_return jobs::Stats{}; }
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId>, int) override {
        co_return broken();
    }
    Task<Result<jobs::Purged>> purge(Time, int) override { co_return broken(); }
    Task<Result<>> discard(JobId) override { co_return broken(); }
    Task<Result<Outbox::Counts>> counts() override { co_return broken(); }

private:
    struct Row {
        jobs::Job job;
        jobs::Spec spec;
        std::vector<jobs::Event> events;
        std::deque<Delivery> pending;
        std::string endpoint;
        std::optional<Target> target;
        bool is_forgotten = false;
    };

    static tl::unexpected<Error> broken() {
        return fail(Code::storage_unavailable, "the storage is broken");
    }
    static bool take(std::atomic<int>& count) {
        int left = count;
        while (left > 0 && !count.compare_exchange_weak(left, left - 1)) {
        }
        return left > 0;
    }
    Result<> write(Write write) {
        if (take(failing_writes_)) {
            return broken();
        }
        const std::lock_guard lock(mutex_);
        auto& pending = rows_.at(write.delivery.job).pending;
        if (pending.empty()) {
            return fail(Code::not_found, "it has ended");
        }
        EXPECT_EQ(pending.front().sequence, write.delivery.sequence) << "out of order";
        if (write.kind == "retry" || write.kind == "put_aside") {
            pending.front().attempts += write.kind == "retry" ? 1 : 0;
            pending.front().next_attempt_at = write.at;
        } else {
            pending.pop_front();
        }
        writes_.push_back(std::move(write));
        changed_.notify_all();
        return {};
    }

    std::atomic<int> failing_reads_{0};
    std::atomic<int> failing_job_reads_{0};
    std::atomic<int> failing_writes_{0};
    std::atomic<int> reads_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<JobId, Row> rows_;
    std::vector<Write> writes_;
};

inline Task<> start_on_executor(Notifier& webhooks) {
    webhooks.start();
    co_return;
}

// Webhooks over a ledger in memory, with a clock that stands still.
class WebhooksTest : public testing::Test {
protected:
    WebhooksTest() { webhook_options_.allow_private_addresses = true; }
    ~WebhooksTest() override {
        if (webhooks_) {
            loop_.run(webhooks_->stop());
        }
    }

    void start() {
        auto channels = make_channels(loop_.executor(), clock_, {webhook_options_});
        webhooks_ = std::make_unique<Notifier>(
            loop_.executor(), clock_, ledger_, ledger_, std::move(channels), options_
        );
        loop_.run(start_on_executor(*webhooks_));
    }
    jobs::Job accept(
        std::string url, std::vector<std::string> events = {}, std::string secret = ""
    ) {
        jobs::Spec spec;
        spec.dialect = "test";
        spec.workflow = "{}";
        spec.webhook = jobs::Webhook{
            .url = std::move(url),
            .secret = std::move(secret),
            .headers = {},
            .events = std::move(events)
        };
        const auto change = jobs::make_job(JobId::make(clock_.now()), spec, clock_.now());
        ledger_.save(change, spec);
        return change.job;
    }
    jobs::Job commit(Result<jobs::Change> change) {
        EXPECT_TRUE(change) << change.error().message;
        ledger_.save(*change);
        return change->job;
    }
    jobs::Job begin(const jobs::Job& job) {
        return commit(jobs::start(job, "gpu-1", job.sequence + 1, clock_.now()));
    }
    jobs::Job complete(const jobs::Job& job) {
        return commit(jobs::complete(job, {}, {}, job.sequence + 1, clock_.now()));
    }
    // A job whose only event to be delivered is that it was completed.
    jobs::Job completed_job(std::string url) { return complete(begin(accept(std::move(url)))); }

    void advance(Millis by) {
        clock_.advance(by);
        webhooks_->wake();
    }
    // They are counted a moment after the outbox has them.
    NotifierCounters final_counters() {
        loop_.run(webhooks_->stop());
        return webhooks_->counters();
    }
    static std::vector<std::string> events_of(const std::vector<Received>& received) {
        std::vector<std::string> names;
        for (const Received& one : received) {
            names.emplace_back(one.headers.get("X-Webhook-Event"));
        }
        return names;
    }

    ManualClock clock_;
    ManualClock pace_;  // for those who have two
    net::test::Loop loop_;
    MemoryLedger ledger_;
    Receiver receiver_;
    WebhookOptions webhook_options_;
    NotifierOptions options_;
    std::unique_ptr<Notifier> webhooks_;
};

}  // namespace comfyd::notify::test
