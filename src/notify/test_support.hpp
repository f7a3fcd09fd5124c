// For the tests of notify: a receiver of webhooks, and an outbox that can be watched and broken.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "net/io_threads.hpp"
#include "net/server.hpp"
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
        } else {
            auto sent = co_await exchange.send(std::move(response));
            static_cast<void>(sent);
        }
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

// Passes everything on to a real outbox, keeps a list of what was written, and fails on demand.
class WatchedOutbox final : public Outbox {
public:
    struct Write {
        std::string kind;  // "delivered", "retry", "give_up"
        Delivery delivery;
        Time at;  // of the next attempt, or of the end
        std::string error;
    };

    explicit WatchedOutbox(Outbox& inner) : inner_(inner) {}

    void fail_reads(int count) { failing_reads_ = count; }
    void fail_writes(int count) { failing_writes_ = count; }
    int reads() const { return reads_; }

    std::vector<Write> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        const bool came =
            changed_.wait_for(lock, kPatience, [&] { return writes_.size() >= count; });
        EXPECT_TRUE(came) << writes_.size() << " of " << count << " writes came";
        return writes_;
    }

    Task<Result<std::vector<Delivery>>> due(Time now, int limit) override {
        ++reads_;
        if (take(failing_reads_)) {
            co_return broken();
        }
        auto due = co_await inner_.due(now, limit);
        co_return due;
    }
    Task<Result<std::optional<Time>>> next_due() override { return inner_.next_due(); }
    Task<Result<>> delivered(Delivery delivery, Time now) override {
        return pass_on({"delivered", delivery, now, ""}, inner_.delivered(delivery, now));
    }
    Task<Result<>> retry_at(Delivery delivery, Time next_attempt_at, std::string error) override {
        return pass_on(
            {"retry", delivery, next_attempt_at, error},
            inner_.retry_at(delivery, next_attempt_at, error)
        );
    }
    Task<Result<>> give_up(Delivery delivery, Time now, std::string error) override {
        return pass_on({"give_up", delivery, now, error}, inner_.give_up(delivery, now, error));
    }
    Task<Result<Counts>> counts() override { return inner_.counts(); }

private:
    static tl::unexpected<Error> broken() {
        return fail(Code::storage_unavailable, "the storage is broken");
    }
    static bool take(std::atomic<int>& count) {
        int left = count;
        while (left > 0 && !count.compare_exchange_weak(left, left - 1)) {
        }
        return left > 0;
    }
    Task<Result<>> pass_on(Write write, Task<Result<>> writing) {
        if (take(failing_writes_)) {
            co_return broken();
        }
        auto written = co_await std::move(writing);
        if (written) {
            const std::lock_guard lock(mutex_);
            writes_.push_back(std::move(write));
            changed_.notify_all();
        }
        co_return written;
    }

    Outbox& inner_;
    std::atomic<int> failing_reads_{0};
    std::atomic<int> failing_writes_{0};
    std::atomic<int> reads_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Write> writes_;
};

}  // namespace comfyd::notify::test
