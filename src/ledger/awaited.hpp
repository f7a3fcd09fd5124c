// A write that waits in a writer's queue together with the coroutine that awaits it.
//
// Asio's handlers differ in type and move only, so each is kept behind this small interface. It is
// made on the awaiting executor, carried out on the writer's thread, and completed on the awaiting
// executor again, which it keeps running until then. One that is destroyed without being completed
// destroys the waiting coroutine.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "base/task.hpp"

namespace comfyd::ledger {

class Awaited {
public:
    Awaited(Executor executor, std::size_t bytes)
        : executor_(executor),
          guard_(executor),
          bytes_(bytes),
          made_at_(std::chrono::steady_clock::now()) {}
    virtual ~Awaited() = default;
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

    virtual void set_failed(const Error& error) = 0;
    // Resumes the coroutine, on its executor.
    virtual void complete(std::unique_ptr<Awaited> self) = 0;

    Executor executor() const { return executor_; }
    std::size_t bytes() const { return bytes_; }
    std::chrono::steady_clock::time_point made_at() const { return made_at_; }

private:
    Executor executor_;
    boost::asio::executor_work_guard<Executor> guard_;
    std::size_t bytes_;
    std::chrono::steady_clock::time_point made_at_;
};

// One post for each executor.
template <class Operation>
void resume_all(std::vector<std::unique_ptr<Operation>> batch) {
    while (!batch.empty()) {
        const Executor executor = batch.front()->executor();
        std::vector<std::unique_ptr<Operation>> same;
        std::vector<std::unique_ptr<Operation>> others;
        for (auto& operation : batch) {
            (operation->executor() == executor ? same : others).push_back(std::move(operation));
        }
        batch = std::move(others);
        boost::asio::post(executor, [same = std::move(same)]() mutable {
            for (auto& operation : same) {
                Operation& target = *operation;
                target.complete(std::move(operation));
            }
        });
    }
}

// Waits for an operation that `enqueue(executor, handler)` makes and queues.
template <class Value, class Enqueue>
Task<Result<Value>> await_operation(Enqueue enqueue) {
    constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
    auto initiate = [](auto handler, Enqueue moved) {
        const Executor executor = boost::asio::get_associated_executor(handler);
        moved(executor, std::move(handler));
    };
    auto outcome = co_await boost::asio::
        async_initiate<const boost::asio::use_awaitable_t<Executor>, void(Result<Value>)>(
            std::move(initiate), kAwait, std::move(enqueue)
        );
    co_return outcome;
}

}  // namespace comfyd::ledger
