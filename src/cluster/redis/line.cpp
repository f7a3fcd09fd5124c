#include "cluster/redis/line.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "base/on_executor.hpp"

namespace comfyd::cluster::redis {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

std::vector<std::string> authentication(const Url& url) {
    return url.user.empty() ? std::vector<std::string>{"AUTH", url.password}
                            : std::vector<std::string>{"AUTH", url.user, url.password};
}

bool is_about_the_password(const std::string& said) {
    return said.starts_with("WRONGPASS") || said.starts_with("NOAUTH") ||
           said.find("AUTH") != std::string::npos;
}

}  // namespace

struct Line::Session {
    Session(Executor executor, std::unique_ptr<net::ByteStream> opened, Address at)
        : connection(std::move(opened)), address(std::move(at)), changed(executor) {}

    std::unique_ptr<net::ByteStream> connection;
    const Address address;
    ReplyReader replies;
    std::array<char, kPieceBytes> piece;
    std::string waiting;
    std::size_t being_written = 0;
    bool is_over = false;
    Signal changed;  // something waits, or it is over

    Task<Result<>> read_more(Deadline deadline) {
        const auto count = co_await connection->read_some(piece, deadline);
        if (!count) {
            co_return fail(count.error());
        }
        co_return replies.feed({piece.data(), *count});
    }
    Task<Result<Reply>> read(Deadline deadline) {
        for (;;) {
            auto reply = replies.next();
            if (!reply) {
                co_return fail(std::move(reply.error()));
            }
            if (*reply) {
                co_return std::move(**reply);
            }
            auto more = co_await read_more(deadline);
            if (!more) {
                co_return fail(std::move(more.error()));
            }
        }
    }
};

Line::Line(Executor executor, Url url, Listener listener)
    : executor_(executor),
      url_(std::move(url)),
      listener_(std::move(listener)),
      dialer_(executor, {.tls = url_.tls, .ca_file = url_.ca_file}),
      tasks_(executor),
      server_("redis", kPauses) {}
Line::~Line() = default;

void Line::start() {
    COMFYD_ON(executor_);
    tasks_.spawn("redis", keep());
}

Task<> Line::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

bool Line::send(std::string_view bytes) {
    COMFYD_ON(executor_);
    if (!session_ ||
        session_->waiting.size() + session_->being_written + bytes.size() > kWaitingBytesMax) {
        return false;
    }
    session_->waiting += bytes;
    session_->changed.notify();
    return true;
}

void Line::drop(Error why) {
    COMFYD_ON(executor_);
    if (session_) {
        dropped_ = std::move(why);
        session_->connection->close();
    }
}

CircuitBreaker::State Line::breaker() const {
    return is_serving_ ? CircuitBreaker::State::closed : server_.state();
}

Task<> Line::keep() {
    for (;;) {
        auto session = co_await open();
        Error why = session ? Error() : std::move(session.error());
        if (session) {
            const auto opened_at = std::chrono::steady_clock::now();
            why = co_await serve(std::move(*session));
            // One that drops us as soon as we are there is not back.
            if (std::chrono::steady_clock::now() - opened_at > kPauses.open_max) {
                server_.succeeded();
            }
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
        server_.failed();
        listener_.failed(why);
        const bool goes_on = co_await sleep_for(server_.wait());
        if (!goes_on) {
            co_return;
        }
    }
}

Task<Result<Line::SessionPtr>> Line::open() {
    const Deadline deadline = Deadline::in(kConnectTime);
    Address address = url_.hosts.front();
    if (url_.has_sentinels()) {
        auto master = co_await find_master(deadline);
        if (!master) {
            co_return fail(std::move(master.error()));
        }
        address = std::move(*master);
    }
    auto session = co_await open_at(std::move(address), false, deadline);
    co_return session;
}

Task<Result<Line::SessionPtr>> Line::open_at(Address address, bool is_sentinel, Deadline deadline) {
    auto connection = co_await dialer_.open(address.host, address.port, deadline);
    if (!connection) {
        co_return fail(std::move(connection.error()));
    }
    auto session = std::make_shared<Session>(executor_, std::move(*connection), std::move(address));
    if (is_sentinel) {
        co_return session;
    }
    auto known = co_await introduce(session, deadline);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    co_return session;
}

Task<Result<Reply>> Line::ask(
    SessionPtr session, std::vector<std::string> words, Deadline deadline
) {
    auto written = co_await session->connection->write(encode(words), deadline);
    if (!written) {
        co_return fail(std::move(written.error()));
    }
    auto reply = co_await session->read(deadline);
    if (!reply) {
        co_return fail(std::move(reply.error()));
    }
    if (reply->is(Reply::Kind::error)) {
        co_return fail(
            is_about_the_password(reply->text) ? Code::unauthorized : Code::upstream_error,
            "Redis at " + session->address.to_string() + " refuses " + words.front() + ": " +
                reply->text
        );
    }
    co_return std::move(*reply);
}

Task<Result<>> Line::introduce(SessionPtr session, Deadline deadline) {
    std::vector<std::vector<std::string>> commands;
    if (!url_.password.empty()) {
        commands.push_back(authentication(url_));
    }
    if (url_.db != 0) {
        commands.push_back({"SELECT", std::to_string(url_.db)});
    }
    // One that asks for a password says so now.
    commands.push_back({"PING"});
    for (std::vector<std::string>& command : commands) {
        auto reply = co_await ask(session, std::move(command), deadline);
        if (!reply) {
            co_return fail(std::move(reply.error()));
        }
    }
    if (url_.has_sentinels()) {
        auto checked = co_await check_role(session, deadline);
        co_return checked;
    }
    co_return Result<>();
}

// Sentinels may name for a moment the one that was the master.
Task<Result<>> Line::check_role(SessionPtr session, Deadline deadline) {
    const auto role = co_await ask(session, {"ROLE"}, deadline);
    if (!role) {
        co_return fail(role.error());
    }
    if (role->items.empty() || role->items.front().text != "master") {
        co_return fail(
            Code::upstream_error, "Redis at " + session->address.to_string() + " is no master"
        );
    }
    co_return Result<>();
}

Task<Result<Address>> Line::find_master(Deadline deadline) {
    Error last;
    for (const Address& sentinel : url_.hosts) {
        // One that is silent leaves time for the others.
        const Deadline its = deadline.or_in(kConnectTime / static_cast<int>(url_.hosts.size() + 1));
        auto master = co_await ask_sentinel(sentinel, its);
        if (master) {
            co_return master;
        }
        last = std::move(master.error());
    }
    co_return fail(std::move(last));
}

Task<Result<Address>> Line::ask_sentinel(Address sentinel, Deadline deadline) {
    auto session = co_await open_at(sentinel, true, deadline);
    if (!session) {
        co_return fail(std::move(session.error()));
    }
    const std::vector<std::string> question{"SENTINEL", "get-master-addr-by-name", url_.service};
    auto reply = co_await ask(*session, question, deadline);
    if (!reply && reply.error().code == Code::unauthorized && !url_.password.empty()) {
        // Few sentinels ask for a password, and the others would refuse one.
        const auto known = co_await ask(*session, authentication(url_), deadline);
        if (!known) {
            co_return fail(known.error());
        }
        reply = co_await ask(*session, question, deadline);
    }
    if (!reply) {
        co_return fail(std::move(reply.error()));
    }
    if (reply->items.size() != 2) {
        co_return fail(
            Code::not_found,
            "the sentinel at " + sentinel.to_string() + " knows no service '" + url_.service + "'"
        );
    }
    Address master{reply->items[0].text, 0};
    const std::string& port = reply->items[1].text;
    std::from_chars(port.data(), port.data() + port.size(), master.port);
    co_return master;
}

Task<Error> Line::serve(SessionPtr session) {
    session_ = session;
    is_serving_ = true;
    dropped_.reset();
    tasks_.spawn("redis writer", write(session));
    tasks_.spawn("redis ping", ping(session));
    if (url_.has_sentinels()) {
        tasks_.spawn("redis sentinel", follow_master(session));
    }
    listener_.opened();
    Result<> read;
    while (read && !dropped_) {
        auto reply = session->replies.next();
        if (!reply) {
            read = fail(std::move(reply.error()));
        } else if (*reply) {
            listener_.heard(std::move(**reply));
        } else {
            read = co_await session->read_more(Deadline::in(kSilenceMax));
        }
    }
    session->connection->close();
    session->is_over = true;
    session->changed.notify();
    session_ = nullptr;
    is_serving_ = false;
    listener_.closed();
    if (dropped_) {
        co_return *std::exchange(dropped_, std::nullopt);
    }
    co_return std::move(read.error());
}

Task<> Line::write(SessionPtr session) {
    while (!session->is_over) {
        if (session->waiting.empty()) {
            const bool is_woken = co_await session->changed.wait();
            if (!is_woken) {
                co_return;
            }
            continue;
        }
        std::string batch = std::exchange(session->waiting, {});
        session->being_written = batch.size();
        const auto written =
            co_await session->connection->write(std::move(batch), Deadline::in(kSilenceMax));
        session->being_written = 0;
        if (!written) {
            session->connection->close();
            co_return;
        }
    }
}

Task<> Line::ping(SessionPtr session) {
    for (;;) {
        const bool goes_on = co_await sleep_for(kPingEvery);
        if (!goes_on || session->is_over) {
            co_return;
        }
        listener_.ping();
    }
}

// One that was cut off from the sentinels still believes that it is the master.
Task<> Line::follow_master(SessionPtr session) {
    for (;;) {
        const bool goes_on = co_await sleep_for(kAskSentinelsEvery);
        if (!goes_on || session->is_over) {
            co_return;
        }
        const auto master = co_await find_master(Deadline::in(kConnectTime));
        if (master && *master != session->address && session == session_) {
            drop(Error(Code::upstream_error, "another Redis is the master now"));
            co_return;
        }
    }
}

}  // namespace comfyd::cluster::redis
