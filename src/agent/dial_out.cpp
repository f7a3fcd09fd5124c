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

constexpr Millis kConnect{10'000};
constexpr Millis kLineRetry{500};

std::string random_text() {
    std::array<unsigned char, 16> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

// From half of it to all: agents that lost their gateway at once do not come back at once.
Millis jittered(Millis pause) {
    unsigned char chance = 0;
    random_bytes(&chance, 1);
    return pause / 2 + pause * chance / 512;
}

}  // namespace

DialOut::DialOut(Parts parts, DialOptions options)
    : p_(std::move(parts)),
      options_(std::move(options)),
      heard_(Ticks::now()),
      news_(p_.executor),
      lines_changed_(p_.executor) {
    while (options_.gateway.ends_with('/')) {
        options_.gateway.pop_back();
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
    std::string url = options_.gateway + std::string(route);
    url.replace(0, std::string_view("http").size(), "ws");
    net::WebSocketOptions options = route == kLineRoute ? line_options() : control_options();
    options.headers.set(kInstanceHeader, options_.instance);
    options.headers.set(kTokenHeader, options_.token);
    options.headers.set(kSessionHeader, std::move(session));
    return p_.http.connect(std::move(url), std::move(options), kConnect);
}

Task<> DialOut::call() {
    Millis pause = options_.retry_min;
    bool go_on = true;
    while (go_on) {
        const bool was_up = co_await call_once();
        pause = was_up ? options_.retry_min : std::min(pause * 2, options_.retry_max);
        go_on = co_await sleep_for(jittered(pause));
    }
}

// True: it was up for a while.
Task<bool> DialOut::call_once() {
    const std::string session = random_text();
    auto socket = co_await connect(kControlRoute, session);
    if (!socket) {
        if (socket.error().message != last_failure_) {
            last_failure_ = socket.error().message;
            log::warning("the gateway cannot be reached", {{"reason", last_failure_}});
        }
        co_return false;
    }
    log::info("the gateway is called", {{"gateway", options_.gateway}});
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
    co_return true;
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
        while (!session_.empty() && !is_line_refused_ && unused_ < options_.parked &&
               lines_ < options_.lines_max) {
            ++lines_;
            ++unused_;
            lines.spawn("line to the gateway", carry(session_));
        }
        if (is_line_refused_) {
            is_line_refused_ = false;
            go_on = co_await sleep_for(jittered(kLineRetry));
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
    is_line_refused_ = is_line_refused_ || !socket || (is_unused && session == session_);
    unused_ -= is_unused ? 1 : 0;
    --lines_;
    lines_changed_.notify();
}

}  // namespace comfyd::agent
