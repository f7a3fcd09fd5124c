#include "agent/dial_out.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/calls.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"

namespace comfyd::agent {
namespace {

using Ticks = std::chrono::steady_clock;

constexpr Millis kLineRetry{500};
constexpr Millis kLineElsewhere{100};
constexpr int kElsewhere = 503;

std::string random_text() {
    std::array<unsigned char, 16> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

// From 0 to 1.
double some_chance() {
    constexpr double kMost = 255;
    unsigned char chance = 0;
    random_bytes(&chance, 1);
    return chance / kMost;
}

bool is_answered_with(const Error& error, int wanted) {
    const json::value* status = json::find(error.details, "status");
    return status != nullptr && *status == wanted;
}

// It was a node that does not lead us; one that stops says the same.
bool is_elsewhere(const Error& error) {
    return is_answered_with(error, kElsewhere);
}

std::string why_not(const Error& error) {
    constexpr int kUnauthorized = 401;
    constexpr int kNotFound = 404;
    if (is_answered_with(error, kUnauthorized)) {
        return "it has no worker of this name with this token (401): COMFYD_INSTANCE and "
               "COMFYD_WORKER_TOKEN must be those of a worker://… in its list";
    }
    if (is_answered_with(error, kNotFound)) {
        return "it is no comfyd that workers can call (404): is COMFYD_GATEWAY right?";
    }
    return error.message;
}

}  // namespace

DialOut::DialOut(Parts parts, DialOptions options)
    : p_(std::move(parts)),
      options_(std::move(options)),
      redial_(options_.gateways.size(), options_.pauses),
      heard_(Ticks::now()),
      news_(p_.executor),
      lines_changed_(p_.executor) {
    for (std::string& gateway : options_.gateways) {
        while (gateway.ends_with('/')) {
            gateway.pop_back();
        }
    }
}

void DialOut::start(TaskGroup& group) {
    group.spawn("call of the gateway", call());
    group.spawn("lines to the gateway", keep_lines());
}

void DialOut::tell() {
    news_.notify();
}

Ticks::time_point DialOut::heard() const {
    return session_.empty() ? heard_ : Ticks::now();
}

Task<Result<std::unique_ptr<net::WebSocket>>> DialOut::connect(
    std::string_view route, std::string session
) {
    std::string url = gateway() + std::string(route);
    url.replace(0, std::string_view("http").size(), "ws");
    net::WebSocketOptions options = route == kLineRoute ? line_options() : control_options();
    options.headers.set(kInstanceHeader, options_.instance);
    options.headers.set(kTokenHeader, options_.token);
    options.headers.set(kSessionHeader, std::move(session));
    return p_.http.connect(std::move(url), std::move(options), kCallMax);
}

Task<> DialOut::call() {
    bool go_on = true;
    while (go_on) {
        const Redial::Called called = co_await call_once();
        const Millis pause = redial_.after(called, some_chance());
        if (pause > Millis(0)) {
            go_on = co_await sleep_for(pause);
        } else {
            const bool cancelled = co_await is_cancelled();
            go_on = !cancelled;
        }
    }
}

Task<Redial::Called> DialOut::call_once() {
    const std::string session = random_text();
    auto socket = co_await connect(kControlRoute, session);
    if (!socket) {
        if (std::string why = why_not(socket.error()); why != last_failure_) {
            last_failure_ = std::move(why);
            log::warning(
                "the gateway does not take the call",
                {{"gateway", gateway()}, {"instance", options_.instance}, {"reason", last_failure_}}
            );
        }
        co_return is_elsewhere(socket.error()) ? Redial::Called::elsewhere : Redial::Called::failed;
    }
    log::info("the gateway is called", {{"gateway", gateway()}});
    last_failure_.clear();
    session_ = session;
    lines_changed_.notify();
    TaskGroup both(p_.executor);
    both.spawn("reports to the gateway", report(**socket));
    both.spawn("words of the gateway", listen(**socket));
    co_await both.join_or_cancel();
    session_.clear();
    heard_ = Ticks::now();
    // The gateway has dropped them, or does not know that they are dead.
    for (const auto& line : std::exchange(parked_, {})) {
        line->abort();
    }
    co_return Redial::Called::was_up;
}

Task<> DialOut::report(net::WebSocket& socket) {
    bool go_on = true;
    std::uint64_t files_told = 0;
    while (go_on) {
        auto status = co_await p_.status.read();
        const ModelFiles* files = p_.status.files();
        if (files != nullptr && files->revision() != files_told) {
            files_told = files->revision();
            status["files"] = files->to_json().at("files");
        }
        auto written = co_await socket.write(json::serialize(status), false);
        go_on = written.has_value();
        if (go_on) {
            co_await news_.wait_for(options_.report);
            const bool cancelled = co_await is_cancelled();
            go_on = !cancelled;
        }
    }
    socket.abort();
}

// It has nothing to say, but pings and the end of the call come to who reads.
Task<> DialOut::listen(net::WebSocket& socket) {
    bool go_on = true;
    while (go_on) {
        const auto message = co_await socket.read();
        go_on = message.has_value();
        if (!go_on) {
            log::info("the call of the gateway has ended", {{"reason", message.error().message}});
        }
    }
    socket.abort();
    news_.notify();
}

Task<> DialOut::keep_lines() {
    TaskGroup lines(p_.executor);
    bool go_on = true;
    while (go_on) {
        while (!session_.empty() && lines_rest_ == Millis(0) && unused_ < options_.parked &&
               lines_ < options_.lines_max) {
            ++lines_;
            ++unused_;
            lines.spawn("line to the gateway", carry(session_));
        }
        if (lines_rest_ > Millis(0)) {
            const Millis rest = std::exchange(lines_rest_, Millis(0));
            go_on = co_await sleep_for(jittered(rest, some_chance()));
        } else {
            go_on = co_await lines_changed_.wait();
        }
    }
    lines.cancel();
    co_await lines.join();
}

// One line, from its opening to its end.
Task<> DialOut::carry(std::string session) {
    bool is_unused = true;
    auto socket = co_await connect(kLineRoute, session);
    if (socket && session == session_) {
        std::weak_ptr<net::Line> self;
        const auto answer = [this, &is_unused, &self]() -> Result<net::Descriptor> {
            is_unused = false;
            --unused_;
            parked_.erase(self.lock());
            lines_changed_.notify();
            return p_.answer();
        };
        const auto line = net::Line::make(p_.executor, std::move(*socket), answer);
        self = line;
        parked_.insert(line);
        co_await line->run();
        parked_.erase(line);
    }
    // Not wanted: it is not offered again at once.
    if (!socket && is_elsewhere(socket.error())) {
        lines_rest_ = std::max(lines_rest_, kLineElsewhere);
    } else if (!socket || (is_unused && session == session_)) {
        lines_rest_ = kLineRetry;
    }
    unused_ -= is_unused ? 1 : 0;
    --lines_;
    lines_changed_.notify();
}

}  // namespace comfyd::agent
