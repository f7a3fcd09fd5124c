#include "audit/courier.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"

namespace comfyd::audit {
namespace {

constexpr std::size_t kWaitingMax = 1'000;
constexpr Millis kTimeout{10'000};
constexpr Millis kLastTimeout{2'000};

}  // namespace

Courier::Courier(Executor executor, CourierOptions options)
    : executor_(executor),
      options_(std::move(options)),
      client_(executor, {.ca_file = options_.ca_file}),
      changed_(executor),
      group_(executor) {}

Courier::~Courier() = default;

void Courier::start() {
    group_.spawn("courier of the audit log", run());
}

void Courier::deliver(std::string checkpoint) {
    boost::asio::post(executor_, [this, checkpoint = std::move(checkpoint)]() mutable {
        if (waiting_.size() >= kWaitingMax) {
            waiting_.pop_front();
            ++dropped_;
        }
        waiting_.push_back(std::move(checkpoint));
        count_waiting_ = waiting_.size();
        changed_.notify();
    });
}

Task<> Courier::stop() {
    is_stopping_ = true;
    group_.cancel();
    co_await group_.join();
    bool goes_on = true;
    while (goes_on && !waiting_.empty()) {
        goes_on = co_await send_first();
    }
    client_.close_idle();
}

Task<> Courier::run() {
    Millis pause = options_.pause_min;
    bool cancelled = false;
    while (!cancelled) {
        if (waiting_.empty()) {
            co_await changed_.wait();
        } else {
            const bool taken = co_await send_first();
            if (taken) {
                pause = options_.pause_min;
            } else {
                co_await sleep_for(pause);
                pause = std::min(pause * 2, options_.pause_max);
            }
        }
        cancelled = co_await is_cancelled();
    }
}

Task<bool> Courier::send_first() {
    net::ClientRequest request;
    request.method = "POST";
    request.url = options_.url;
    request.headers.set("Content-Type", "application/json");
    if (!options_.token.empty()) {
        request.headers.set("Authorization", "Bearer " + options_.token);
    }
    request.body = waiting_.front();
    request.timeout = is_stopping_ ? kLastTimeout : kTimeout;
    request.response_bytes_max = 64 * 1024;
    const std::string sent = request.body;
    auto answer = co_await client_.send(std::move(request));
    const bool taken = answer && answer->status >= 200 && answer->status < 300;
    if (!taken) {
        ++failed_;
        log::warning(
            "a checkpoint of the audit log was not taken",
            {{"error", answer ? "status " + std::to_string(answer->status) : answer.error().message}
            }
        );
        co_return false;
    }
    ++delivered_;
    // The oldest may have gone meanwhile.
    if (!waiting_.empty() && waiting_.front() == sent) {
        waiting_.pop_front();
    }
    count_waiting_ = waiting_.size();
    co_return true;
}

Courier::Counts Courier::counts() const {
    return {delivered_, failed_, dropped_, count_waiting_};
}

}  // namespace comfyd::audit
