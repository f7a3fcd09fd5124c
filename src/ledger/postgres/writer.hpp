// The only connection of this node that writes.
//
// It takes what has queued up, sends it as one pipeline, and resumes everybody who waited: one post
// per executor and batch. Writes under a term are a transaction of their own beside those without:
// when the lead is lost, the others go on. An operation that is refused does not disturb the
// others; when a whole transaction is, each of its operations gets one of its own, so that only the
// one at fault fails.
//
// What waits for a lock of another node's transaction does so for a second: then that transaction
// is ended, if its node has stopped in the middle of it.
//
// When the connection breaks, it is made anew, and what was under way is sent again: it is the same
// whether the first attempt was committed or not. Whoever waits longer than Options::patience is
// answered with Code::storage_unavailable.
//
// While one pipeline is answered, the next may be on its way, so that the server has something to
// do when it has committed: once it is large, and as large as the one before it. Whatever could not
// be done waits until both are answered, and goes on in its old order.
//
// What is written behind waits until nothing else does, or some batches have gone before it.
//
// Made and destroyed on any thread; works on the ledger's executor.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dependency.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/term.hpp"
#include "ledger/awaited.hpp"
#include "ledger/postgres/procedure.hpp"
#include "ledger/postgres_ledger.hpp"

namespace comfyd::ledger::postgres {

inline constexpr std::size_t kBatchOperationsMax = 256;
inline constexpr std::size_t kBatchBytesMax = 8 * 1024 * 1024;
inline constexpr int kBatchesBeforeBehind = 8;
inline constexpr std::size_t kPipelinesMax = 2;
// Below this a batch costs the server more by itself than waiting for the one before it does.
inline constexpr std::size_t kWorthSendingAhead = 64;
inline constexpr std::size_t kOperationBytesMax = 256 * 1024 * 1024;

class Operation : public Awaited {
public:
    Operation(Executor executor, std::size_t bytes, std::optional<jobs::Term> term)
        : Awaited(executor, bytes), term_(std::move(term)) {}
    virtual Write* write() = 0;          // nullptr: a procedure
    virtual Procedure* procedure() = 0;  // nullptr: a write
    virtual bool is_decided() const = 0;
    const std::optional<jobs::Term>& term() const { return term_; }

    bool is_lost = false;   // the answer to an attempt was
    bool is_alone = false;  // a transaction that it shared was refused: it gets one of its own
    int tries = 0;          // that were answered without a decision

private:
    std::optional<jobs::Term> term_;
};

template <class Work, class Handler>
class AwaitedOperation final : public Operation {
public:
    AwaitedOperation(Executor executor, Work work, std::optional<jobs::Term> term, Handler handler)
        : Operation(executor, work.bytes(), std::move(term)),
          work_(std::move(work)),
          handler_(std::move(handler)) {}

    Write* write() override {
        if constexpr (std::is_base_of_v<Write, Work>) {
            return &work_;
        } else {
            return nullptr;
        }
    }
    Procedure* procedure() override {
        if constexpr (std::is_base_of_v<Procedure, Work>) {
            return &work_;
        } else {
            return nullptr;
        }
    }
    bool is_decided() const override { return work_.is_decided(); }
    void set_failed(const Error& error) override { work_.refuse(error); }
    void complete(std::unique_ptr<Awaited> self) override {
        Handler handler = std::move(handler_);
        auto outcome = std::move(*work_.outcome);
        self.reset();
        std::move(handler)(std::move(outcome));
    }

private:
    Work work_;
    Handler handler_;
};

class Writer {
public:
    // The last two outlive it. It waits for a server that is away, whatever the breaker says, and
    // is who finds out that it is back.
    Writer(
        Executor executor,
        std::string conninfo,
        const PostgresLedger::Options& options,
        Clock& clock,
        Dependency& server
    );

    enum class Urgency { now, now_or_refused, behind };

    // Any thread. now_or_refused: Code::queue_full when too much waits already.
    template <class Work>
    Task<Result<typename Work::Value>> write(
        Work work, std::optional<jobs::Term> term = std::nullopt, Urgency urgency = Urgency::now
    );

    // On the executor: until stop() was called and nothing waits.
    Task<> run();
    // Any thread. What comes later is answered with Code::shutting_down.
    void stop();

    StorageStats stats() const;
    Result<> healthy() const;

    // Called on the executor when the connection is gone, and with it what its session held.
    void on_session_lost(std::function<void()> call);

private:
    using Operations = std::vector<std::unique_ptr<Operation>>;
    // Writes that go to the server together: a transaction for each term, and one for those
    // without.
    struct Pipeline;

    void enqueue(std::unique_ptr<Operation> operation, Urgency urgency);
    std::size_t enough_to_take() const;
    bool is_due() const COMFYD_REQUIRES(mutex_);
    Operations take();
    bool is_stopping() const;
    Task<> wait();
    Task<bool> connect();

    bool may_send_ahead(const Operations& operations) const;
    void send_ahead(Operations operations);
    void collect_heard();
    Task<> hear_all();

    Task<> carry_out(Operations operations);
    Task<Operations> attempt(Operations operations);
    Task<Operations> attempt_procedure(std::unique_ptr<Operation> operation);
    std::shared_ptr<Pipeline> send(Operations operations);
    Task<> hear(std::shared_ptr<Pipeline> pipeline);
    void hear_failure(const Failure& failure, const std::vector<Operation*>& members);
    Task<> ask_undecided(std::vector<Operation*> members);
    Circumstances circumstances(const Operation& of);
    void settle(Operations& operations);
    void expire(Operations& operations);
    void note_outcome(const std::optional<Error>& failure);
    void tell_session_lost();

    const Executor executor_;
    const std::string conninfo_;
    const PostgresLedger::Options options_;
    Clock& clock_;
    Dependency& server_;

    // Owned by the executor.
    std::unique_ptr<Connection> connection_;
    int slot_ = 0;
    RollupNames names_;
    bool was_held_up_ = false;  // something that was sent, by another transaction
    Signal wake_;
    std::deque<std::shared_ptr<Pipeline>> sent_;  // ahead of their answers
    Operations undone_;                           // of those that were answered
    TaskGroup hearing_;

    mutable Mutex mutex_;
    std::deque<std::unique_ptr<Operation>> queue_ COMFYD_GUARDED_BY(mutex_);
    std::size_t queue_bytes_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::deque<std::unique_ptr<Operation>> behind_ COMFYD_GUARDED_BY(mutex_);
    int batches_before_behind_ COMFYD_GUARDED_BY(mutex_) = 0;  // since something waits there
    bool is_waiting_ COMFYD_GUARDED_BY(mutex_) = false;
    std::size_t enough_ COMFYD_GUARDED_BY(mutex_) = 1;  // to be sent, in the queue
    bool is_stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::optional<Error> failure_ COMFYD_GUARDED_BY(mutex_);  // of the latest write
    StorageStats stats_ COMFYD_GUARDED_BY(mutex_);
    std::function<void()> session_lost_ COMFYD_GUARDED_BY(mutex_);
};

template <class Work>
Task<Result<typename Work::Value>> Writer::write(
    Work work, std::optional<jobs::Term> term, Urgency urgency
) {
    return await_operation<typename Work::Value>(
        [this, urgency, term = std::move(term), work = std::move(work)](
            Executor executor, auto handler
        ) mutable {
            enqueue(
                std::make_unique<AwaitedOperation<Work, decltype(handler)>>(
                    executor, std::move(work), std::move(term), std::move(handler)
                ),
                urgency
            );
        }
    );
}

}  // namespace comfyd::ledger::postgres
