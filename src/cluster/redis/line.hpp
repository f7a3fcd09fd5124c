// One connection to a Redis server that is kept: opened, made known by user and password, and
// opened anew whenever it breaks, after pauses of its circuit breaker. A server that is silent
// counts as gone.
//
// Belongs to one executor: all members there, and the listener is called there.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/dependency.hpp"
#include "base/task.hpp"
#include "cluster/redis/reply.hpp"
#include "cluster/redis/url.hpp"
#include "net/dialer.hpp"

namespace comfyd::cluster::redis {

class Line {
public:
    static constexpr std::size_t kWaitingBytesMax = 16 * 1024 * 1024;
    static constexpr Millis kConnectTime{5'000};
    static constexpr Millis kPingEvery{1'500};
    static constexpr Millis kSilenceMax{4'000};
    // Nobody waits for it meanwhile: the first failure counts, and the pauses are short.
    static constexpr CircuitBreaker::Limits kPauses{
        .failures = 1, .open_first = Millis(50), .open_max = Millis(2'000)
    };
    static constexpr Millis kAskSentinelsEvery{5'000};

    struct Listener {
        std::function<void()> opened;
        std::function<void(Reply)> heard;
        // What was sent and not answered will not be.
        std::function<void()> closed;
        // Say something that the server answers, so that its silence is noticed.
        std::function<void()> ping;
        std::function<void(const Error&)> failed;
    };

    Line(Executor executor, Url url, Listener listener);
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void start();
    Task<> stop();

    bool is_open() const { return session_ != nullptr; }
    // Of this connection, on any thread: closed while it is open.
    CircuitBreaker::State breaker() const;
    // False when it is not open or too much waits; nothing is sent then.
    bool send(std::string_view bytes);
    // What the server says makes no sense, or makes the connection useless.
    void drop(Error why);

private:
    struct Session;
    using SessionPtr = std::shared_ptr<Session>;

    Task<> keep();
    Task<Result<SessionPtr>> open();
    Task<Result<SessionPtr>> open_at(Address address, bool is_sentinel, Deadline deadline);
    Task<Result<>> introduce(SessionPtr session, Deadline deadline);
    Task<Result<>> check_role(SessionPtr session, Deadline deadline);
    Task<Result<Address>> find_master(Deadline deadline);
    Task<Result<Address>> ask_sentinel(Address sentinel, Deadline deadline);
    Task<Result<Reply>> ask(SessionPtr session, std::vector<std::string> words, Deadline deadline);
    Task<Error> serve(SessionPtr session);
    Task<> write(SessionPtr session);
    Task<> ping(SessionPtr session);
    Task<> follow_master(SessionPtr session);

    const Executor executor_;
    const Url url_;
    const Listener listener_;
    net::Dialer dialer_;
    TaskGroup tasks_;
    Dependency server_;
    std::atomic<bool> is_serving_ = false;
    SessionPtr session_;  // null: not open
    std::optional<Error> dropped_;
};

}  // namespace comfyd::cluster::redis
