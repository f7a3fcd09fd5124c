// For the tests of net: a loop that runs tasks for a blocking caller, and a raw TCP client.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/task.hpp"
#include "net/io_threads.hpp"

namespace comfyd::net::test {

inline constexpr std::chrono::seconds kPatience{20};

template <class T>
T get(std::future<T>& future) {
    if (future.wait_for(kPatience) != std::future_status::ready) {
        std::fprintf(stderr, "a task did not finish in time\n");
        std::abort();
    }
    return future.get();
}

// A thread with a task group. Everything that was started has ended when it is destroyed.
class Loop {
public:
    Loop() {
        thread_.start();
        group_ = std::make_unique<TaskGroup>(thread_.executor());
    }
    ~Loop() {
        boost::asio::post(thread_.executor(), [this] { group_->cancel(); });
        std::promise<void> joined;
        auto done = joined.get_future();
        boost::asio::co_spawn(thread_.executor(), group_->join(), [&](const std::exception_ptr&) {
            joined.set_value();
        });
        get(done);
        group_.reset();
        thread_.stop();
    }

    Executor executor() { return thread_.executor(); }

    template <class T>
    std::future<T> start(Task<T> task) {
        auto result = std::make_shared<std::promise<T>>();
        auto future = result->get_future();
        auto held = std::make_shared<Task<T>>(std::move(task));
        boost::asio::post(thread_.executor(), [this, held, result] {
            group_->spawn("test", deliver<T>(std::move(*held), result));
        });
        return future;
    }
    template <class T>
    T run(Task<T> task) {
        auto future = start(std::move(task));
        return get(future);
    }
    void cancel() {
        boost::asio::post(thread_.executor(), [this] { group_->cancel(); });
    }

private:
    template <class T>
    static Task<> deliver(Task<T> task, std::shared_ptr<std::promise<T>> result) {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(task);
            result->set_value();
        } else {
            T value = co_await std::move(task);
            result->set_value(std::move(value));
        }
    }

    IoThread thread_{"test-loop"};
    std::unique_ptr<TaskGroup> group_;
};

// Says exactly what a test wants to say. Waits for answers, but never for ever.
class RawClient {
public:
    explicit RawClient(std::uint16_t port)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    explicit RawClient(int accepted, std::nullptr_t) : socket_(accepted) {}
    ~RawClient() { close(); }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    void close() {
        if (socket_ >= 0) {
            ::close(std::exchange(socket_, -1));
        }
    }
    // False when the peer is gone.
    bool send(std::string_view data) {
        while (!data.empty()) {
            const auto count = ::send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
            if (count < 0) {
                return false;
            }
            data.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    }
    // Everything up to and including `end`; what follows stays for the next call. Empty on a close.
    std::string read_until(std::string_view end) {
        while (true) {
            const auto found = unread_.find(end);
            if (found != std::string::npos) {
                auto text = unread_.substr(0, found + end.size());
                unread_.erase(0, text.size());
                return text;
            }
            if (!read_more()) {
                return {};
            }
        }
    }
    std::string read_bytes(std::size_t count) {
        while (unread_.size() < count && read_more()) {
        }
        auto text = unread_.substr(0, count);
        unread_.erase(0, text.size());
        return text;
    }
    // The rest, until the peer closes.
    std::string read_all() {
        while (read_more()) {
        }
        return std::exchange(unread_, {});
    }

private:
    bool read_more() {
        pollfd ready{socket_, POLLIN, 0};
        if (::poll(&ready, 1, static_cast<int>(kPatience.count()) * 1000) != 1) {
            ADD_FAILURE() << "the peer neither answered nor closed";
            return false;
        }
        char bytes[16 * 1024];
        const auto count = ::recv(socket_, bytes, sizeof bytes, 0);
        if (count <= 0) {
            return false;
        }
        unread_.append(bytes, static_cast<std::size_t>(count));
        return true;
    }

    int socket_;
    std::string unread_;
};

// Listens on a free port of the loopback; the test accepts and plays the server.
class RawServer {
public:
    RawServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(socket_, 16), 0);
        socklen_t length = sizeof address;
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.sin_port);
    }
    ~RawServer() { ::close(socket_); }
    RawServer(const RawServer&) = delete;
    RawServer& operator=(const RawServer&) = delete;

    std::uint16_t port() const { return port_; }
    std::string url(std::string_view path) const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
    }
    std::unique_ptr<RawClient> accept() {
        pollfd ready{socket_, POLLIN, 0};
        if (::poll(&ready, 1, static_cast<int>(kPatience.count()) * 1000) != 1) {
            std::fprintf(stderr, "nobody connected\n");
            std::abort();
        }
        return std::make_unique<RawClient>(::accept(socket_, nullptr, nullptr), nullptr);
    }

private:
    int socket_;
    std::uint16_t port_ = 0;
};

}  // namespace comfyd::net::test
