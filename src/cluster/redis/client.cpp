#include "cluster/redis/client.hpp"

#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::cluster::redis {

struct Client::Pending {
    explicit Pending(Executor executor) : answered(executor) {}
    std::optional<Result<Reply>> answer;
    Signal answered;
};

Client::Client(Executor executor, Url url, Turned turned)
    : executor_(executor),
      turned_(std::move(turned)),
      line_(
          executor,
          std::move(url),
          {.opened =
               [this] {
                   has_complained_ = false;
                   turned_(true, {});
               },
           .heard = [this](Reply reply) { hear(std::move(reply)); },
           .closed = [this] { fail_all(); },
           .ping = [this] { put({"PING"}, nullptr); },
           .failed = [this](const Error& why) { turned_(false, why); }}
      ) {}

Task<> Client::stop() {
    co_await line_.stop();
    fail_all();
}

bool Client::put(const std::vector<std::string>& words, std::shared_ptr<Pending> pending) {
    COMFYD_ON(executor_);
    if (in_flight_.size() >= kInFlightMax || !line_.send(encode(words))) {
        return false;
    }
    in_flight_.push_back(std::move(pending));
    return true;
}

bool Client::post(const std::vector<std::string>& words) {
    return put(words, nullptr);
}

Task<Result<Reply>> Client::command(std::vector<std::string> words, Deadline deadline) {
    if (!is_up()) {
        co_return fail(Code::connection_failed, "Redis is not there");
    }
    const auto pending = std::make_shared<Pending>(executor_);
    if (!put(words, pending)) {
        co_return fail(Code::queue_full, "too much waits for Redis");
    }
    if (!pending->answer) {
        co_await pending->answered.wait_for(deadline.left());
    }
    if (!pending->answer) {
        const bool stop = co_await is_cancelled();
        co_return stop ? fail(Code::cancelled, "the command was given up")
                       : fail(Code::request_timeout, "Redis did not answer in time");
    }
    co_return std::move(*pending->answer);
}

void Client::hear(Reply reply) {
    if (in_flight_.empty()) {
        line_.drop(Error(Code::protocol_error, "Redis answers what nobody asked"));
        return;
    }
    const auto pending = std::move(in_flight_.front());
    in_flight_.pop_front();
    const bool is_error = reply.is(Reply::Kind::error);
    if (pending) {
        pending->answer = is_error
                              ? Result<Reply>(fail(Code::upstream_error, "Redis: " + reply.text))
                              : Result<Reply>(std::move(reply));
        pending->answered.notify();
    } else if (is_error && !std::exchange(has_complained_, true)) {
        log::warning("Redis refuses what it is sent", {{"error", reply.text}});
    }
}

void Client::fail_all() {
    for (const auto& pending : std::exchange(in_flight_, {})) {
        if (pending) {
            pending->answer = fail(
                Code::connection_failed,
                "Redis went away before it answered; the command may have been carried out"
            );
            pending->answered.notify();
        }
    }
}

}  // namespace comfyd::cluster::redis
