#include "support/fault_proxy.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <future>
#include <list>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/task.hpp"
#include "net/io_threads.hpp"

namespace comfyd::support {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Way = FaultProxy::Way;
using Fault = FaultProxy::Fault;

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr std::size_t kPieceBytes = 16 * 1024;

struct Pair {
    explicit Pair(Socket accepted)
        : client(std::move(accepted)),
          server(client.get_executor()),
          released(client.get_executor()) {}

    Socket client;
    Socket server;
    std::optional<Fault> fault{};
    Signal released;                         // from Fault::hold_requests
    int ended = 0;                           // ways that have come to their end
    std::array<std::string, 2> last_seen{};  // of each way, where a pattern may have begun

    bool swallows(Way way) const {
        return fault == Fault::swallow_both ||
               (way == Way::to_server && fault == Fault::swallow_requests) ||
               (way == Way::to_client &&
                (fault == Fault::swallow_answers || fault == Fault::half_close));
    }
    static void reset(Socket& socket) {
        error_code ignored;
        socket.set_option(asio::socket_base::linger(true, 0), ignored);
        socket.close(ignored);
    }
    void cut() {
        reset(client);
        reset(server);
    }
    bool holds(Way way) const { return way == Way::to_server && fault == Fault::hold_requests; }
    void suffer(Fault what) {
        fault = what;
        if (what == Fault::cut) {
            cut();
        }
        if (what == Fault::half_close) {
            error_code ignored;
            client.shutdown(Socket::shutdown_send, ignored);
        }
        released.notify();
    }
    void release() {
        if (fault == Fault::hold_requests) {
            fault.reset();
            released.notify();
        }
    }
};

struct Trigger {
    Way way = Way::to_server;
    std::string pattern{};
    std::optional<std::uint64_t> at_byte{};
    Fault fault = Fault::cut;
};

void share_port(int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
}

}  // namespace

class FaultProxy::Impl {
public:
    explicit Impl(std::uint16_t server)
        : to_(asio::ip::make_address("127.0.0.1"), server),
          placeholder_(thread_.executor()),
          acceptor_(thread_.executor()),
          tasks_(thread_.executor()) {
        // Bound and never listening, it keeps the port while connections are refused.
        placeholder_.open(Tcp::v4());
        share_port(placeholder_.native_handle());
        placeholder_.bind({to_.address(), 0});
        port = placeholder_.local_endpoint().port();
        thread_.start();
        ask([this] { listen(); });
    }

    ~Impl() {
        ask([this] {
            close_acceptor();
            for (const auto& pair : pairs_) {
                pair->cut();
            }
            tasks_.cancel();
        });
        std::promise<void> joined;
        asio::co_spawn(thread_.executor(), tasks_.join(), [&](const std::exception_ptr&) {
            joined.set_value();
        });
        joined.get_future().wait();
        thread_.stop();
    }

    // Runs `what` on the proxy's thread and waits for it.
    template <class What>
    auto ask(What what) -> decltype(what()) {
        std::packaged_task<decltype(what())()> task(std::move(what));
        auto done = task.get_future();
        asio::post(thread_.executor(), [&task] { task(); });
        return done.get();
    }

    void listen() {
        if (acceptor_.is_open()) {
            return;
        }
        acceptor_.open(Tcp::v4());
        share_port(acceptor_.native_handle());
        acceptor_.bind({to_.address(), port});
        acceptor_.listen();
        tasks_.spawn("fault proxy", accept());
    }

    void close_acceptor() {
        error_code ignored;
        acceptor_.close(ignored);
    }

    void inflict(Fault fault) {
        for (const auto& pair : pairs_) {
            pair->suffer(fault);
        }
    }

    void release() {
        for (const auto& pair : pairs_) {
            pair->release();
        }
    }

    std::uint16_t port = 0;
    std::optional<Fault> for_all;
    std::optional<Trigger> trigger;
    bool has_struck = false;
    Millis delay{0};
    std::size_t accepted = 0;
    std::array<std::uint64_t, 2> passed{};

    std::size_t open_count() const { return pairs_.size(); }

private:
    Task<> accept() {
        while (acceptor_.is_open()) {
            Socket client(thread_.executor());
            error_code error;
            co_await acceptor_.async_accept(client, asio::redirect_error(kAwait, error));
            if (error) {
                continue;
            }
            ++accepted;
            auto pair = std::make_shared<Pair>(std::move(client));
            if (for_all == Fault::cut) {
                pair->cut();
                continue;
            }
            pair->fault = for_all;
            pairs_.push_back(pair);
            tasks_.spawn("fault proxy", connect(pair));
        }
    }

    Task<> connect(std::shared_ptr<Pair> pair) {
        error_code error;
        co_await pair->server.async_connect(to_, asio::redirect_error(kAwait, error));
        if (error) {
            pair->cut();
            pairs_.remove(pair);
            co_return;
        }
        error_code ignored;
        pair->client.set_option(Tcp::no_delay(true), ignored);
        pair->server.set_option(Tcp::no_delay(true), ignored);
        tasks_.spawn("fault proxy", pump(pair, Way::to_server));
        tasks_.spawn("fault proxy", pump(pair, Way::to_client));
    }

    Task<> pump(std::shared_ptr<Pair> pair, Way way) {
        Socket& from = way == Way::to_server ? pair->client : pair->server;
        Socket& to = way == Way::to_server ? pair->server : pair->client;
        std::array<char, kPieceBytes> piece;
        for (;;) {
            error_code error;
            const std::size_t count = co_await from.async_read_some(
                asio::buffer(piece), asio::redirect_error(kAwait, error)
            );
            if (error) {
                end(*pair, way, to, error);
                break;
            }
            if (delay.count() > 0) {
                co_await sleep_for(delay);
            }
            std::string_view rest(piece.data(), count);
            while (!rest.empty()) {
                const std::size_t whole = until_trigger(*pair, way, rest);
                const bool goes_on = co_await pass(pair, way, rest.substr(0, whole), to);
                if (!goes_on) {
                    break;
                }
                strike_at_trigger(*pair, way, rest.substr(0, whole));
                rest.remove_prefix(whole);
            }
        }
        if (pair->ended == 2 || !pair->client.is_open()) {
            pairs_.remove(pair);
        }
    }

    Task<bool> pass(std::shared_ptr<Pair> pair, Way way, std::string_view bytes, Socket& to) {
        if (way == Way::to_client && pair->fault == Fault::lose_answer) {
            pair->cut();
            co_return false;
        }
        while (pair->holds(way)) {
            const bool is_released = co_await pair->released.wait();
            if (!is_released) {
                co_return false;
            }
        }
        if (pair->swallows(way)) {
            co_return true;
        }
        const bool is_garbled = way == Way::to_client && pair->fault == Fault::garble_answers;
        const std::string passed_on =
            is_garbled ? std::string(bytes.size(), '\0') : std::string(bytes);
        error_code error;
        co_await asio::async_write(
            to, asio::buffer(passed_on), asio::redirect_error(kAwait, error)
        );
        if (error) {
            pair->cut();
            co_return false;
        }
        passed[static_cast<std::size_t>(way)] += bytes.size();
        co_return true;
    }

    // How much of `bytes` belongs before the fault that is waited for.
    std::size_t until_trigger(const Pair& pair, Way way, std::string_view bytes) const {
        if (!trigger || trigger->way != way) {
            return bytes.size();
        }
        if (trigger->at_byte) {
            const std::uint64_t left = *trigger->at_byte - passed[static_cast<std::size_t>(way)];
            return static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes.size()));
        }
        const std::string& before = pair.last_seen[static_cast<std::size_t>(way)];
        const auto found = (before + std::string(bytes)).find(trigger->pattern);
        return found == std::string::npos ? bytes.size()
                                          : found + trigger->pattern.size() - before.size();
    }

    void strike_at_trigger(Pair& pair, Way way, std::string_view bytes) {
        if (!trigger || trigger->way != way) {
            return;
        }
        bool strikes = false;
        if (trigger->at_byte) {
            strikes = passed[static_cast<std::size_t>(way)] >= *trigger->at_byte;
        } else {
            std::string& seen = pair.last_seen[static_cast<std::size_t>(way)];
            seen += bytes;
            strikes = seen.ends_with(trigger->pattern);
            const std::size_t kept = trigger->pattern.size() - 1;
            seen.erase(0, seen.size() - std::min(seen.size(), kept));
        }
        if (strikes) {
            has_struck = true;
            pair.suffer(std::exchange(trigger, std::nullopt)->fault);
        }
    }

    static void end(Pair& pair, Way way, Socket& to, const error_code& error) {
        ++pair.ended;
        if (pair.swallows(way)) {
            return;
        }
        if (error == asio::error::eof && pair.fault != Fault::lose_answer) {
            error_code ignored;
            to.shutdown(Socket::shutdown_send, ignored);
        } else {
            pair.cut();
        }
    }

    net::IoThread thread_{"fault-proxy"};
    Tcp::endpoint to_;
    Socket placeholder_;
    Acceptor acceptor_;
    TaskGroup tasks_;
    std::list<std::shared_ptr<Pair>> pairs_;
};

FaultProxy::FaultProxy(std::uint16_t server) : impl_(std::make_unique<Impl>(server)) {}
FaultProxy::~FaultProxy() = default;

std::uint16_t FaultProxy::port() const {
    return impl_->port;
}

void FaultProxy::inflict(Fault fault) {
    impl_->ask([&] { impl_->inflict(fault); });
}

void FaultProxy::inflict_on_all(Fault fault) {
    impl_->ask([&] {
        impl_->for_all = fault;
        impl_->inflict(fault);
    });
}

void FaultProxy::inflict_after(Way way, std::string pattern, Fault fault) {
    if (pattern.empty()) {
        throw std::invalid_argument("a pattern has bytes");
    }
    impl_->ask([&] {
        impl_->trigger = Trigger{way, std::move(pattern), std::nullopt, fault};
        impl_->has_struck = false;
    });
}

void FaultProxy::inflict_after(Way way, std::size_t bytes, Fault fault) {
    impl_->ask([&] {
        const std::uint64_t at = impl_->passed[static_cast<std::size_t>(way)] + bytes;
        impl_->trigger = Trigger{way, {}, at, fault};
        impl_->has_struck = false;
    });
}

bool FaultProxy::has_struck() const {
    return impl_->ask([&] { return impl_->has_struck; });
}

void FaultProxy::refuse(bool does) {
    impl_->ask([&] { does ? impl_->close_acceptor() : impl_->listen(); });
}

void FaultProxy::delay(std::chrono::milliseconds time) {
    impl_->ask([&] { impl_->delay = time; });
}

void FaultProxy::release() {
    impl_->ask([&] { impl_->release(); });
}

void FaultProxy::heal() {
    impl_->ask([&] {
        impl_->for_all.reset();
        impl_->trigger.reset();
        impl_->delay = Millis(0);
        impl_->listen();
    });
}

std::size_t FaultProxy::open_connections() const {
    return impl_->ask([&] { return impl_->open_count(); });
}

std::size_t FaultProxy::accepted_connections() const {
    return impl_->ask([&] { return impl_->accepted; });
}

std::uint64_t FaultProxy::passed_bytes(Way way) const {
    return impl_->ask([&] { return impl_->passed[static_cast<std::size_t>(way)]; });
}

}  // namespace comfyd::support
