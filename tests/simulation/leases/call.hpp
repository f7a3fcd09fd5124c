// A request of a node to somebody outside, until it is answered or known to be without an answer.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/task.hpp"

namespace comfyd::simulation {

class Call {
public:
    // `has_work`, of the node, is set when it has come.
    explicit Call(bool& has_work) : has_work_(has_work) {}

    // The node goes on when it has its turn. Only the first one counts.
    void answer(bool came) {
        if (waiting_) {
            has_work_ = true;
            std::exchange(waiting_, nullptr)->go(came);
        }
    }
    bool is_open() const { return waiting_ != nullptr; }

    static Task<bool> wait(std::shared_ptr<Call> call) {
        auto initiate = [call](auto handler) {
            call->waiting_ = std::make_unique<Held<decltype(handler)>>(std::move(handler));
        };
        constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
        const bool came = co_await boost::asio::
            async_initiate<const boost::asio::use_awaitable_t<Executor>, void(bool)>(
                std::move(initiate), kAwait
            );
        co_return came;
    }

private:
    struct Waiting {
        virtual ~Waiting() = default;
        virtual void go(bool came) = 0;
    };
    template <class Handler>
    struct Held final : Waiting {
        explicit Held(Handler waiting) : handler(std::move(waiting)) {}
        void go(bool came) override {
            const auto home = boost::asio::get_associated_executor(handler);
            boost::asio::post(home, [handler = std::move(handler), came]() mutable {
                std::move(handler)(came);
            });
        }
        Handler handler;
    };

    bool& has_work_;
    std::unique_ptr<Waiting> waiting_;
};

}  // namespace comfyd::simulation
