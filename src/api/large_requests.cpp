#include "api/large_requests.hpp"

#include <charconv>
#include <exception>
#include <string>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/hop.hpp"

namespace comfyd::api {
namespace {

namespace asio = boost::asio;

// The exchange as seen from another thread: each call goes to the connection's and comes back.
class DistantExchange final : public net::Exchange {
public:
    DistantExchange(net::Exchange& inner, Executor here)
        : inner_(inner), there_(inner.executor()), here_(here) {}

    const net::Request& request() const override { return inner_.request(); }
    Task<Result<std::string>> read_body(std::uint64_t bytes_max) override {
        return ask([this, bytes_max] { return inner_.read_body(bytes_max); });
    }
    Task<Result<std::size_t>> read_some(char* into, std::size_t into_bytes) override {
        return ask([this, into, into_bytes] { return inner_.read_some(into, into_bytes); });
    }
    Task<Result<>> send(net::Response response) override {
        return ask([this, response = std::move(response)]() mutable {
            return inner_.send(std::move(response));
        });
    }
    Task<Result<>> send_file(net::Response head, net::FileBody file) override {
        return ask([this, head = std::move(head), file = std::move(file)]() mutable {
            return inner_.send_file(std::move(head), std::move(file));
        });
    }
    Task<Result<>> begin_stream(net::Response head) override {
        return ask([this, head = std::move(head)]() mutable {
            return inner_.begin_stream(std::move(head));
        });
    }
    Task<Result<>> write_stream(std::string data) override {
        return ask([this, data = std::move(data)]() mutable {
            return inner_.write_stream(std::move(data));
        });
    }
    Task<Result<>> end_stream() override {
        return ask([this] { return inner_.end_stream(); });
    }
    Task<bool> wait_closed(Millis until) override {
        return ask([this, until] { return inner_.wait_closed(until); });
    }
    Task<Result<std::unique_ptr<net::WebSocket>>> upgrade(net::WebSocketOptions) override {
        co_return fail(Code::upgrade_required, "a request with a large body is no handshake");
    }
    void trust_peer() override { inner_.trust_peer(); }
    bool answered() const override { return inner_.answered(); }
    Executor executor() const override { return here_; }
    bool draining() const override { return inner_.draining(); }

private:
    template <class Question>
    std::invoke_result_t<Question> ask(Question question) {
        return await_on(there_, put(std::move(question)));
    }
    template <class Question>
    static std::invoke_result_t<Question> put(Question question) {
        auto answer = co_await question();
        co_return answer;
    }

    net::Exchange& inner_;
    Executor there_;
    Executor here_;
};

Task<> handle_distantly(const Handler& handler, Call call, net::Exchange& exchange) {
    Call distant{
        exchange,
        call.request,
        std::move(call.caller),
        std::move(call.path_parameters),
        std::move(call.query),
    };
    co_await handler(distant);
}

// await_on() with cancellation: it is told on the task's own thread, and only while the task runs.
Task<> await_stoppably_on(Executor target, Task<> task) {
    struct State {
        asio::cancellation_signal stop;
        bool ended = false;
    };
    auto initiate = [](auto handler, Executor where, Task<> work) {
        const auto state = std::make_shared<State>();
        auto home = asio::get_associated_executor(handler);
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.assign([state, where](asio::cancellation_type type) {
                asio::post(where, [state, type] {
                    if (!state->ended) {
                        state->stop.emit(type);
                    }
                });
            });
        }
        auto done = [state,
                     slot,
                     home,
                     guard = asio::make_work_guard(home),
                     handler = std::move(handler)](std::exception_ptr failure) mutable {
            state->ended = true;
            asio::post(home, [slot, handler = std::move(handler), failure]() mutable {
                slot.clear();
                std::move(handler)(failure);
            });
        };
        asio::co_spawn(
            where,
            std::move(work),
            asio::bind_cancellation_slot(state->stop.slot(), std::move(done))
        );
    };
    constexpr asio::use_awaitable_t<Executor> kAwait{};
    co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void(std::exception_ptr)>(
        std::move(initiate), kAwait, target, std::move(task)
    );
}

}  // namespace

LargeRequests::LargeRequests(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
        threads_.push_back(std::make_unique<net::IoThread>("large-" + std::to_string(i + 1)));
        threads_.back()->start();
    }
}

bool LargeRequests::is_large(const net::Request& request) {
    const std::string_view length = request.headers.get("Content-Length");
    if (length.empty()) {
        return request.headers.contains("Transfer-Encoding");
    }
    std::size_t bytes = 0;
    std::from_chars(length.data(), length.data() + length.size(), bytes);
    return bytes > kLargeBodyBytes;
}

Task<> LargeRequests::run(const Handler& handler, Call& call) {
    const Executor executor =
        threads_[next_.fetch_add(1, std::memory_order_relaxed) % threads_.size()]->executor();
    DistantExchange exchange(call.exchange, executor);
    co_await await_stoppably_on(executor, handle_distantly(handler, std::move(call), exchange));
}

}  // namespace comfyd::api
