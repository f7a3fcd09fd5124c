// The gateway's side of agents that dial out: who is calling, and the lines on which each can be
// asked. A net::Client that has it reaches "worker://NAME" as it would any other server.
//
// Owned by the application. Any thread: its state is locked, lines stay on the threads of their
// connections, and connections cross over as sockets.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/tokens.hpp"
#include "base/json.hpp"
#include "base/mutex.hpp"
#include "net/line.hpp"
#include "net/lines.hpp"
#include "net/server.hpp"

namespace comfyd::agent {

class Switchboard final : public net::Lines {
public:
    // What an agent reports (agent/status.hpp), on the thread of its connection.
    using Heard = std::function<void(const std::string& instance, const json::object& report)>;

    // `tokens` outlives it.
    explicit Switchboard(const Tokens& tokens, Heard heard = {});
    ~Switchboard() override;

    // Whose call it is. Code::unauthorized: nobody's who is known here; Code::lead_lost: another
    // node may know him.
    Result<std::string> identify(const net::Request& request) const;
    // Both answer the exchange, and return when the call is over. REQUIRES: identify() named it.
    Task<> take_control(net::Exchange& exchange, std::string instance);
    Task<> take_line(net::Exchange& exchange, std::string instance);

    // Its token counts no more: everything of its call ends now, also what is in use.
    void cut(const std::string& instance);

    Task<Result<net::Descriptor>> open(std::string instance, Deadline deadline) override;

    // Its latest report. nullopt: it is not calling.
    std::optional<json::object> report_of(const std::string& instance) const;
    std::size_t parked(const std::string& instance) const;

private:
    struct Parked {
        Executor executor;
        std::weak_ptr<net::Line> line;
    };
    struct Waiter {
        explicit Waiter(Executor waiting) : executor(waiting), woken(waiting) {}
        Executor executor;
        Signal woken;
    };
    struct Control {
        Executor executor;
        std::weak_ptr<net::WebSocket> socket;
    };
    using Waiters = std::vector<std::shared_ptr<Waiter>>;
    struct Caller {
        std::string session;  // empty: it calls no more
        std::optional<Control> control{};
        std::chrono::steady_clock::time_point left{};
        json::object report{};
        std::deque<Parked> lines{};
        std::deque<Parked> used{};
        Waiters waiters{};
    };

    // The lines that were in use in the call before.
    std::deque<Parked> begin(const std::string& instance, const std::string& session);
    static Task<> doubt_again(std::deque<Parked> lines);
    // False: it was cut, or another call of the instance has begun.
    bool connect(const std::string& instance, const std::string& session, Control control);
    void end(const std::string& instance, const std::string& session);
    bool park(const std::string& instance, const std::string& session, Parked parked);
    void hear(const std::string& instance, const std::string& session, json::object report);
    std::optional<Parked> take(const std::string& instance);
    // Its call, where it is this one.
    Caller* find(const std::string& instance, const std::string& session) COMFYD_REQUIRES(mutex_);
    static void wake(const Waiters& waiters);
    // nullptr: it has not called for so long that it is not waited for.
    std::shared_ptr<Waiter> wait_at(const std::string& instance, Executor executor);
    static void drop(std::deque<Parked> lines, Millis silent_for = Millis(0));

    const Tokens& tokens_;
    Heard heard_;
    mutable Mutex mutex_;
    std::map<std::string, Caller> callers_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::agent
