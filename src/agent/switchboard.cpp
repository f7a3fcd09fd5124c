#include "agent/switchboard.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "agent/calls.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"

namespace comfyd::agent {
namespace {

constexpr std::size_t kLinesMax = 32;
constexpr std::size_t kSessionBytesMax = 64;
// Lines of a call that was lost on which nothing has moved for so long may be dead without a word.
constexpr Millis kDoubtful{1'000};
// One that has just lost its line is on its way back.
constexpr std::chrono::seconds kMissedFor{30};

net::Response refusal(int status, const Error& error) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    const json::object body{
        {"error", json::object{{"code", to_string(error.code)}, {"message", error.message}}}
    };
    response.body = json::serialize(body);
    return response;
}

Task<> refuse(net::Exchange& exchange, Error error) {
    auto sent = co_await exchange.send(refusal(info(error.code).http_status, error));
    static_cast<void>(sent);
}

std::string session_of(const net::Request& request) {
    return std::string(request.headers.get(kSessionHeader).substr(0, kSessionBytesMax));
}

}  // namespace

Switchboard::Switchboard(const Tokens& tokens, Heard heard)
    : tokens_(tokens), heard_(std::move(heard)) {}
Switchboard::~Switchboard() = default;

Result<std::string> Switchboard::identify(const net::Request& request) const {
    std::string instance(request.headers.get(kInstanceHeader));
    const bool is_known = tokens_.knows(instance, request.headers.get(kTokenHeader));
    if (!is_known && tokens_.may_be_elsewhere(instance)) {
        return fail(Code::lead_lost, "this node leads no worker of that name: ask another one");
    }
    if (!is_known || session_of(request).empty()) {
        return fail(Code::unauthorized, "no worker of that name has this token");
    }
    return instance;
}

Task<> Switchboard::take_control(net::Exchange& exchange, std::string instance) {
    const std::string session = session_of(exchange.request());
    // Before it is answered: the caller's lines follow upon the answer.
    const auto used_before = begin(instance, session);
    auto upgraded = co_await exchange.upgrade(control_options());
    if (!upgraded) {
        end(instance, session);
        if (!exchange.answered()) {
            co_await refuse(exchange, std::move(upgraded.error()));
        }
        co_return;
    }
    const std::shared_ptr<net::WebSocket> socket = std::move(*upgraded);
    // Known from here on to who cuts it; what was taken back before that is seen now.
    bool go_on = connect(instance, session, {exchange.executor(), socket}) &&
                 identify(exchange.request()).has_value();
    if (go_on) {
        log::info("a worker calls", {{"instance", instance}});
    }
    TaskGroup doubts(exchange.executor());
    doubts.spawn("lines of the call before", doubt_again(used_before));
    while (go_on) {
        auto message = co_await socket->read();
        go_on = message.has_value();
        if (go_on) {
            auto report = json::parse_object(message->data);
            if (report) {
                hear(instance, session, std::move(*report));
            }
        } else {
            log::info(
                "a worker's call has ended",
                {{"instance", instance}, {"reason", message.error().message}}
            );
        }
        // A token that was taken back ends the call, too.
        go_on = go_on && identify(exchange.request()).has_value();
    }
    end(instance, session);
    doubts.cancel();
    co_await doubts.join();
}

// What was sent on them just before the call was lost looked like life.
Task<> Switchboard::doubt_again(std::deque<Parked> lines) {
    const bool slept = co_await sleep_for(kDoubtful * 3 / 2);
    if (slept) {
        drop(std::move(lines), kDoubtful);
    }
}

Task<> Switchboard::take_line(net::Exchange& exchange, std::string instance) {
    const std::string session = session_of(exchange.request());
    auto socket = co_await exchange.upgrade(line_options());
    if (!socket) {
        if (!exchange.answered()) {
            co_await refuse(exchange, std::move(socket.error()));
        }
        co_return;
    }
    const auto line = net::Line::make(exchange.executor(), std::move(*socket));
    if (park(instance, session, {exchange.executor(), line})) {
        co_await line->run();
    } else {
        line->abort();  // of an earlier call, or too many
    }
}

std::deque<Switchboard::Parked> Switchboard::begin(
    const std::string& instance, const std::string& session
) {
    std::deque<Parked> old;
    std::deque<Parked> used;
    {
        const Lock lock(mutex_);
        Caller& caller = callers_[instance];
        caller.session = session;
        std::swap(old, caller.lines);
        std::swap(used, caller.used);
    }
    drop(std::move(old));
    // Of the call that was lost: those on which something moves are alive, the others may be dead
    // without a word. Whoever asks on one of those asks anew.
    drop(used, kDoubtful);
    return used;
}

Switchboard::Caller* Switchboard::find(const std::string& instance, const std::string& session) {
    const auto found = callers_.find(instance);
    const bool is_it = found != callers_.end() && found->second.session == session;
    return is_it ? &found->second : nullptr;
}

bool Switchboard::connect(
    const std::string& instance, const std::string& session, Control control
) {
    const Lock lock(mutex_);
    Caller* caller = find(instance, session);
    if (caller != nullptr) {
        caller->control = std::move(control);
    }
    return caller != nullptr;
}

void Switchboard::end(const std::string& instance, const std::string& session) {
    std::deque<Parked> old;
    {
        const Lock lock(mutex_);
        if (Caller* caller = find(instance, session)) {
            caller->session.clear();
            caller->left = std::chrono::steady_clock::now();
            std::swap(old, caller->lines);
        }
    }
    drop(std::move(old));
}

void Switchboard::drop(std::deque<Parked> lines, Millis silent_for) {
    for (const Parked& parked : lines) {
        boost::asio::post(parked.executor, [weak = parked.line, silent_for] {
            const auto line = weak.lock();
            if (line && line->silent_for() >= silent_for) {
                line->abort();
            }
        });
    }
}

void Switchboard::wake(const Waiters& waiters) {
    for (const auto& waiter : waiters) {
        boost::asio::post(waiter->executor, [waiter] { waiter->woken.notify(); });
    }
}

bool Switchboard::park(const std::string& instance, const std::string& session, Parked parked) {
    Waiters waiters;
    {
        const Lock lock(mutex_);
        Caller* caller = find(instance, session);
        if (caller == nullptr) {
            return false;
        }
        std::erase_if(caller->lines, [](const Parked& one) { return one.line.expired(); });
        if (caller->lines.size() >= kLinesMax) {
            return false;
        }
        caller->lines.push_back(std::move(parked));
        std::swap(waiters, caller->waiters);
    }
    wake(waiters);
    return true;
}

void Switchboard::cut(const std::string& instance) {
    Caller cut;
    {
        const Lock lock(mutex_);
        const auto found = callers_.find(instance);
        if (found == callers_.end()) {
            return;
        }
        cut = std::move(found->second);
        callers_.erase(found);
    }
    if (cut.control) {
        boost::asio::post(cut.control->executor, [weak = cut.control->socket] {
            if (const auto control = weak.lock()) {
                control->abort();
            }
        });
    }
    drop(std::move(cut.lines));
    drop(std::move(cut.used));
    wake(cut.waiters);
}

void Switchboard::hear(
    const std::string& instance, const std::string& session, json::object report
) {
    {
        const Lock lock(mutex_);
        Caller* caller = find(instance, session);
        if (caller == nullptr) {
            return;
        }
        caller->report = report;
    }
    if (heard_) {
        heard_(instance, report);
    }
}

std::optional<json::object> Switchboard::report_of(const std::string& instance) const {
    const Lock lock(mutex_);
    const auto found = callers_.find(instance);
    const bool is_calling = found != callers_.end() && !found->second.session.empty();
    return is_calling ? std::optional(found->second.report) : std::nullopt;
}

std::size_t Switchboard::parked(const std::string& instance) const {
    const Lock lock(mutex_);
    const auto found = callers_.find(instance);
    return found == callers_.end() ? 0 : found->second.lines.size();
}

std::optional<Switchboard::Parked> Switchboard::take(const std::string& instance) {
    const Lock lock(mutex_);
    const auto found = callers_.find(instance);
    if (found == callers_.end() || found->second.lines.empty()) {
        return std::nullopt;
    }
    Caller& caller = found->second;
    Parked taken = std::move(caller.lines.front());
    caller.lines.pop_front();
    std::erase_if(caller.used, [](const Parked& one) { return one.line.expired(); });
    caller.used.push_back(taken);
    return taken;
}

std::shared_ptr<Switchboard::Waiter> Switchboard::wait_at(
    const std::string& instance, Executor executor
) {
    const Lock lock(mutex_);
    const auto found = callers_.find(instance);
    const bool may_come = found != callers_.end() &&
                          (!found->second.session.empty() ||
                           std::chrono::steady_clock::now() - found->second.left < kMissedFor);
    if (!may_come) {
        return nullptr;
    }
    auto waiter = std::make_shared<Waiter>(executor);
    // Those who gave up hold theirs no more.
    std::erase_if(found->second.waiters, [](const auto& other) { return other.use_count() == 1; });
    found->second.waiters.push_back(waiter);
    return waiter;
}

Task<Result<net::Descriptor>> Switchboard::open(std::string instance, Deadline deadline) {
    const Executor own = co_await boost::asio::this_coro::executor;
    while (true) {
        // Before the look at what is parked: one that parks in between wakes us.
        const auto waiter = wait_at(instance, own);
        if (auto parked = take(instance)) {
            auto ends = net::connected_sockets();
            if (!ends) {
                co_return fail(std::move(ends.error()));
            }
            auto far = std::make_shared<net::Descriptor>(std::move(ends->second));
            const bool is_connected =
                co_await call_on(parked->executor, [weak = parked->line, far] {
                    const auto line = weak.lock();
                    return line && line->connect(std::move(*far));
                });
            if (is_connected) {
                co_return std::move(ends->first);
            }
            continue;
        }
        if (!waiter) {
            co_return fail(
                Code::connection_failed, "worker://" + instance + ": this worker has not called"
            );
        }
        const bool is_woken = co_await waiter->woken.wait_for(deadline.left());
        if (!is_woken) {
            const bool cancelled = co_await is_cancelled();
            co_return cancelled
                ? fail(Code::cancelled, "the connection is not wanted any more")
                : fail(
                      Code::connection_failed,
                      "worker://" + instance + ": this worker has no line free at this moment"
                  );
        }
    }
}

}  // namespace comfyd::agent
