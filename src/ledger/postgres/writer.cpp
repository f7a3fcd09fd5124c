#include "ledger/postgres/writer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "ledger/postgres/settings.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr Millis kShortestPause{50};
constexpr Millis kLongestPause{200};

Error shutting_down() {
    return Error(Code::shutting_down, "comfyd is stopping; send the request again later");
}

}  // namespace

Writer::Writer(
    Executor executor,
    std::string conninfo,
    const PostgresLedger::Options& options,
    Clock& clock,
    Dependency& server
)
    : executor_(executor),
      conninfo_(std::move(conninfo)),
      options_(options),
      clock_(clock),
      server_(server),
      wake_(executor),
      hearing_(executor) {}

void Writer::enqueue(std::unique_ptr<Operation> operation, Urgency urgency) {
    std::optional<Error> refusal;
    {
        const Lock lock(mutex_);
        const std::size_t bytes = operation->bytes();
        if (is_stopping_) {
            refusal = shutting_down();
        } else if (bytes > kOperationBytesMax) {
            refusal = Error(
                Code::payload_too_large,
                "a record of " + std::to_string(bytes) +
                    " bytes is too large to store; the limit is " +
                    std::to_string(kOperationBytesMax)
            );
        } else if (urgency == Urgency::now_or_refused && queue_bytes_ > 0 &&
                   queue_bytes_ + bytes > options_.queue_bytes_max) {
            refusal =
                Error(Code::queue_full, "too many jobs wait to be stored; try again in a second");
        } else {
            if (urgency == Urgency::behind) {
                behind_.push_back(std::move(operation));
            } else {
                queue_bytes_ += bytes;
                queue_.push_back(std::move(operation));
            }
            if (is_waiting_ && is_due()) {
                is_waiting_ = false;
                boost::asio::post(executor_, [this] { wake_.notify(); });
            }
        }
    }
    if (refusal) {
        operation->set_failed(*refusal);
        Operations refused;
        refused.push_back(std::move(operation));
        resume_all(std::move(refused));
    }
}

void Writer::stop() {
    const Lock lock(mutex_);
    is_stopping_ = true;
    boost::asio::post(executor_, [this] { wake_.notify(); });
}

bool Writer::is_stopping() const {
    const Lock lock(mutex_);
    return is_stopping_;
}

bool Writer::is_due() const {
    return queue_.size() >= enough_ || (enough_ == 1 && !behind_.empty());
}

// Either writes, or one procedure, or nothing.
Writer::Operations Writer::take() {
    const std::size_t enough = enough_to_take();
    const Lock lock(mutex_);
    enough_ = enough;
    is_waiting_ = !is_due();
    Operations taken;
    if (is_waiting_) {
        return taken;
    }
    if (!behind_.empty() && (queue_.empty() || ++batches_before_behind_ > kBatchesBeforeBehind)) {
        batches_before_behind_ = 0;
        taken.push_back(std::move(behind_.front()));
        behind_.pop_front();
        return taken;
    }
    std::size_t bytes = 0;
    while (!queue_.empty() && taken.size() < kBatchOperationsMax && bytes < kBatchBytesMax) {
        const bool is_write = queue_.front()->write() != nullptr;
        if (!is_write && !taken.empty()) {
            break;
        }
        bytes += queue_.front()->bytes();
        taken.push_back(std::move(queue_.front()));
        queue_.pop_front();
        if (!is_write) {
            break;
        }
    }
    queue_bytes_ -= bytes;
    return taken;
}

Task<> Writer::run() {
    while (true) {
        collect_heard();
        auto taken = undone_.empty() ? take() : Operations();
        if (undone_.empty() && taken.empty()) {
            if (sent_.empty() && is_stopping()) {
                break;
            }
            co_await wait();
        } else if (may_send_ahead(taken)) {
            send_ahead(std::move(taken));
        } else {
            co_await hear_all();
            co_await carry_out(std::exchange(undone_, {}));
            co_await carry_out(std::move(taken));
        }
    }
    co_await hearing_.join();
    connection_.reset();
}

// While the latest write failed, or the connection is gone, it is made anew.
Task<> Writer::wait() {
    const bool is_sound = healthy().has_value() && connection_ && !connection_->is_broken();
    if (is_sound || !sent_.empty()) {
        co_await wake_.wait();
        co_return;
    }
    const bool is_woken = co_await wake_.wait_for(options_.probe_interval);
    if (!is_woken) {
        const bool is_connected = co_await connect();
        if (is_connected) {
            note_outcome(std::nullopt);
        }
    }
}

Task<bool> Writer::connect() {
    if (connection_ && !connection_->is_broken()) {
        co_return true;
    }
    if (connection_) {
        tell_session_lost();
    }
    connection_.reset();
    auto opened = co_await open_writing(
        executor_, conninfo_, {options_.connect_timeout, options_.answer_timeout}
    );
    if (!opened) {
        note_outcome(opened.error());
        co_return false;
    }
    connection_ = std::move(opened->connection);
    slot_ = opened->slot;
    co_return true;
}

Task<> Writer::carry_out(Operations operations) {
    Millis pause = kShortestPause;
    while (!operations.empty()) {
        const bool is_connected = co_await connect();
        if (is_connected && std::exchange(was_held_up_, false)) {
            co_await connection_->run({end_half_sent()});
            expire(operations);
        } else if (is_connected) {
            operations = co_await attempt(std::move(operations));
        } else {
            expire(operations);
            if (!operations.empty()) {
                co_await wake_.wait_for(pause);
                pause = std::min(pause * 2, kLongestPause);
            }
        }
    }
}

// Those whose time is over, here and in the queue; all of them when comfyd is stopping.
void Writer::expire(Operations& operations) {
    const bool is_last = is_stopping();
    const auto latest = std::chrono::steady_clock::now() - options_.patience;
    const auto is_due = [&](const std::unique_ptr<Operation>& operation) {
        return is_last || operation->made_at() <= latest;
    };
    Operations due;
    const auto move_due = [&](auto& from) {
        for (auto& operation : from) {
            if (is_due(operation)) {
                due.push_back(std::move(operation));
            }
        }
        std::erase(from, nullptr);
    };
    Error why(Code::storage_unavailable, "PostgreSQL cannot be reached");
    move_due(operations);
    {
        const Lock lock(mutex_);
        why = is_last ? shutting_down() : failure_.value_or(why);
        move_due(queue_);
        move_due(behind_);
        queue_bytes_ = 0;
        for (const auto& operation : queue_) {
            queue_bytes_ += operation->bytes();
        }
    }
    for (const auto& operation : due) {
        operation->set_failed(why);
    }
    resume_all(std::move(due));
}

void Writer::note_outcome(const std::optional<Error>& failure) {
    failure ? server_.failed() : server_.succeeded();
    bool is_new_failure = false;
    bool is_recovered = false;
    {
        const Lock lock(mutex_);
        if (failure) {
            is_new_failure = !failure_ || failure_->code != failure->code;
            stats_.failed_batches += 1;
        } else {
            is_recovered = failure_.has_value();
        }
        failure_ = failure;
    }
    if (is_new_failure) {
        log::error(
            "the ledger cannot write",
            {{"code", to_string(failure->code)}, {"error", failure->message}}
        );
    } else if (is_recovered) {
        log::info("the ledger can write again");
    }
}

void Writer::on_session_lost(std::function<void()> call) {
    const Lock lock(mutex_);
    session_lost_ = std::move(call);
}

// With the lock: whoever takes the call back has it called no more when that returns.
void Writer::tell_session_lost() {
    const Lock lock(mutex_);
    if (session_lost_) {
        session_lost_();
    }
}

StorageStats Writer::stats() const {
    const Lock lock(mutex_);
    StorageStats stats = stats_;
    stats.queue_depth = queue_.size();
    stats.breaker = server_.state();
    return stats;
}

Result<> Writer::healthy() const {
    const Lock lock(mutex_);
    if (failure_) {
        return fail(*failure_);
    }
    return {};
}

}  // namespace comfyd::ledger::postgres
