// A write that waits in the writer's queue together with the coroutine that awaits it.
//
// Asio's handlers differ in type and move only, so each is kept behind this small interface. An
// operation is made on the awaiting executor, executed on the writer thread, and completed on the
// awaiting executor again, which it keeps running until then. One that is destroyed without being
// completed destroys the waiting coroutine.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "base/task.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

class Operation {
public:
    Operation(Executor executor, std::size_t bytes)
        : executor_(executor),
          guard_(executor),
          bytes_(bytes),
          made_at_(std::chrono::steady_clock::now()) {}
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // A failure of storage, which fails the whole batch, is returned; any other outcome is kept for
    // complete().
    virtual Result<> execute(Session& session) = 0;
    virtual void set_failed(const Error& error) = 0;
    // Resumes the coroutine, on its executor.
    virtual void complete(std::unique_ptr<Operation> self) = 0;

    Executor executor() const { return executor_; }
    std::size_t bytes() const { return bytes_; }
    std::chrono::steady_clock::time_point made_at() const { return made_at_; }

private:
    Executor executor_;
    boost::asio::executor_work_guard<Executor> guard_;
    std::size_t bytes_;
    std::chrono::steady_clock::time_point made_at_;
};

inline bool is_storage_failure(Code code) {
    return code == Code::storage_full || code == Code::storage_unavailable;
}

template <class Work, class Handler>
class AwaitedOperation final : public Operation {
public:
    using Value = typename Work::Value;

    AwaitedOperation(Executor executor, Work work, Handler handler)
        : Operation(executor, work.bytes()), work_(std::move(work)), handler_(std::move(handler)) {}

    Result<> execute(Session& session) override {
        outcome_.emplace(work_(session));
        if (!*outcome_ && is_storage_failure(outcome_->error().code)) {
            return fail(outcome_->error());
        }
        return {};
    }
    void set_failed(const Error& error) override { outcome_.emplace(fail(error)); }
    void complete(std::unique_ptr<Operation> self) override {
        Handler handler = std::move(handler_);
        Result<Value> outcome = std::move(*outcome_);
        self.reset();
        std::move(handler)(std::move(outcome));
    }

private:
    Work work_;
    Handler handler_;
    std::optional<Result<Value>> outcome_;
};

}  // namespace comfyd::ledger::sqlite
