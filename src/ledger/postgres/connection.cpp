#include "ledger/postgres/connection.hpp"

#include <unistd.h>

#include <deque>
#include <unordered_map>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace comfyd::ledger::postgres {
namespace {

using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;
using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock,
    boost::asio::wait_traits<std::chrono::steady_clock>,
    Executor>;
constexpr boost::asio::use_awaitable_t<Executor> kAwait{};

struct CloseConnection {
    void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Handle = std::unique_ptr<PGconn, CloseConnection>;

std::string message_of(const PGconn* connection) {
    std::string message = PQerrorMessage(connection);
    while (!message.empty() && message.back() == '\n') {
        message.pop_back();
    }
    return message;
}

Error unavailable(const std::string& why) {
    return Error(
        Code::storage_unavailable,
        "PostgreSQL cannot be reached: " + why + "; see that it runs, and that ledger.url is right"
    );
}

// The server is stopping or was told to end this session, or it is no longer the one to write to.
bool ends_session(const char* state) {
    const std::string_view text = state == nullptr ? "" : state;
    return text.starts_with("57P") || text == "25006";
}

void ignore_notice(void*, const PGresult*) {}

// libpq may change its socket from one step to the next, so each has one of its own.
Task<bool> wait_for(Executor executor, int socket, Descriptor::wait_type what, Timer& timer) {
    Descriptor descriptor(executor, ::dup(socket));
    boost::system::error_code error;
    timer.async_wait([&descriptor](boost::system::error_code cancelled) {
        if (!cancelled) {
            boost::system::error_code ignored;
            descriptor.cancel(ignored);
        }
    });
    co_await descriptor.async_wait(what, boost::asio::redirect_error(kAwait, error));
    const bool is_in_time = timer.expiry() > std::chrono::steady_clock::now();
    timer.cancel();
    // The timer's handler refers to the descriptor: it runs before this returns to the caller.
    co_await boost::asio::post(executor, kAwait);
    co_return !error && is_in_time;
}

Task<Result<Handle>> connect(Executor executor, const std::string conninfo, Millis timeout) {
    Handle handle(PQconnectStart(conninfo.c_str()));
    if (!handle || PQstatus(handle.get()) == CONNECTION_BAD) {
        co_return fail(unavailable(handle ? message_of(handle.get()) : "no memory"));
    }
    PQsetNoticeReceiver(handle.get(), ignore_notice, nullptr);
    Timer timer(executor, timeout);
    auto step = PGRES_POLLING_WRITING;
    while (step != PGRES_POLLING_OK) {
        if (step == PGRES_POLLING_FAILED) {
            co_return fail(unavailable(message_of(handle.get())));
        }
        const auto what =
            step == PGRES_POLLING_READING ? Descriptor::wait_read : Descriptor::wait_write;
        const bool is_ready = co_await wait_for(executor, PQsocket(handle.get()), what, timer);
        if (!is_ready) {
            co_return fail(unavailable("it does not answer"));
        }
        step = PQconnectPoll(handle.get());
    }
    if (PQsetnonblocking(handle.get(), 1) != 0 || PQenterPipelineMode(handle.get()) != 1) {
        co_return fail(unavailable(message_of(handle.get())));
    }
    co_return handle;
}

}  // namespace

Error Failure::to_error() const {
    if (is_broken) {
        return unavailable(message);
    }
    const std::string text = "PostgreSQL refused a statement: " + message;
    if (state == "53100") {
        return Error(Code::storage_full, text);
    }
    if (state == "23505") {
        return Error(Code::conflict, text);
    }
    const bool is_data = state.starts_with("22") || state.starts_with("23");
    return Error(is_data ? Code::internal : Code::storage_unavailable, text, {{"sqlstate", state}});
}

// Statements that are to be answered.
struct Connection::Flight {
    explicit Flight(Executor executor) : answered(executor) {}
    void end() {
        is_answered = true;
        answered.notify();
    }

    struct Command {
        const char* prepares = nullptr;  // else it executes
        std::string name{};              // of what it prepares
        bool has_result = false;
    };
    std::deque<Command> commands;
    std::size_t executed = 0;
    Answers answers{std::vector<Rows>()};
    bool is_answered = false;
    Signal answered;
};

class Connection::Impl : public std::enable_shared_from_this<Impl> {
public:
    Impl(Executor executor, Handle handle, Millis answer_limit)
        : longest(answer_limit),
          executor_(executor),
          handle_(std::move(handle)),
          socket_(executor, ::dup(PQsocket(handle_.get()))) {}

    const Millis longest;  // until an answer

    std::shared_ptr<Flight> start(const Statements& statements) {
        auto flight = std::make_shared<Flight>(executor_);
        if (!handle_ || !send(statements, *flight)) {
            break_off(handle_ ? message_of(handle_.get()) : "the connection was closed");
            flight->answers = tl::unexpected<Failure>({true, {}, why_});
            flight->end();
            return flight;
        }
        flights_.push_back(flight);
        flush();
        read_on();
        return flight;
    }

    bool is_broken() const { return !handle_; }
    std::size_t waiting() const { return flights_.size(); }

    void break_off(std::string why) {
        if (!handle_) {
            return;
        }
        why_ = std::move(why);
        boost::system::error_code ignored;
        socket_.close(ignored);
        handle_.reset();
        for (const auto& flight : std::exchange(flights_, {})) {
            flight->answers = tl::unexpected<Failure>({true, {}, why_});
            flight->end();
        }
    }

private:
    using Names = std::unordered_map<const char*, std::string>;  // of statements, by their text

    // A flight prepares what no answered one has, under a name of its own: whether those that are
    // under way come so far is not known.
    bool send(const Statements& statements, Flight& flight) {
        Names sent;
        for (const Statement& statement : statements) {
            if (statement.sql != nullptr && !prepared_.contains(statement.sql) &&
                !sent.contains(statement.sql)) {
                const std::string& name = sent[statement.sql] = "s" + std::to_string(++names_);
                if (!send_prepare(statement, name)) {
                    return false;
                }
                flight.commands.push_back({statement.sql, name});
            }
            if (!send_execute(statement, sent)) {
                return false;
            }
            flight.commands.push_back({});
        }
        return PQpipelineSync(handle_.get()) == 1;
    }

    bool send_prepare(const Statement& statement, const std::string& name) {
        std::vector<Oid> types;
        for (const Value& value : statement.values) {
            types.push_back(value.type);
        }
        return PQsendPrepare(
                   handle_.get(),
                   name.c_str(),
                   statement.sql,
                   static_cast<int>(types.size()),
                   types.data()
               ) == 1;
    }

    bool send_execute(const Statement& statement, const Names& sent) {
        constexpr int kBinary = 1;
        std::vector<Oid> types;
        std::vector<const char*> values;
        std::vector<int> lengths;
        std::vector<int> formats;
        for (const Value& value : statement.values) {
            types.push_back(value.type);
            values.push_back(value.bytes ? value.bytes->data() : nullptr);
            lengths.push_back(value.bytes ? static_cast<int>(value.bytes->size()) : 0);
            formats.push_back(kBinary);
        }
        const int count = static_cast<int>(values.size());
        if (statement.sql == nullptr) {
            return PQsendQueryParams(
                       handle_.get(),
                       statement.once.c_str(),
                       count,
                       types.data(),
                       values.data(),
                       lengths.data(),
                       formats.data(),
                       kBinary
                   ) == 1;
        }
        const auto prepared = prepared_.find(statement.sql);
        const std::string& name =
            prepared != prepared_.end() ? prepared->second : sent.at(statement.sql);
        return PQsendQueryPrepared(
                   handle_.get(),
                   name.c_str(),
                   count,
                   values.data(),
                   lengths.data(),
                   formats.data(),
                   kBinary
               ) == 1;
    }

    void flush() {
        if (!handle_ || is_writing_) {
            return;
        }
        const int left = PQflush(handle_.get());
        if (left < 0) {
            break_off(message_of(handle_.get()));
            return;
        }
        if (left > 0) {
            is_writing_ = true;
            socket_.async_wait(
                Descriptor::wait_write,
                [self = shared_from_this()](boost::system::error_code error) {
                    self->is_writing_ = false;
                    if (!error) {
                        self->flush();
                    }
                }
            );
        }
    }

    void read_on() {
        if (!handle_ || is_reading_) {
            return;
        }
        is_reading_ = true;
        socket_.async_wait(
            Descriptor::wait_read,
            [self = shared_from_this()](boost::system::error_code error) {
                self->is_reading_ = false;
                if (!error) {
                    self->read();
                }
            }
        );
    }

    void read() {
        if (!handle_) {
            return;
        }
        if (PQconsumeInput(handle_.get()) != 1) {
            break_off(message_of(handle_.get()));
            return;
        }
        flush();  // with TLS a write may have waited for this
        // After nonsense libpq gives it up and says for ever that there is no result.
        while (is_connected() && !flights_.empty() && PQisBusy(handle_.get()) == 0) {
            take(PQgetResult(handle_.get()));
        }
        if (handle_ && !is_connected()) {
            break_off(message_of(handle_.get()));
        }
        read_on();
    }

    bool is_connected() const { return handle_ && PQstatus(handle_.get()) == CONNECTION_OK; }

    // The next result, or nullptr: the current command has no more.
    void take(PGresult* result) {
        Flight& flight = *flights_.front();
        if (result == nullptr) {
            if (!flight.commands.empty() && flight.commands.front().has_result) {
                flight.commands.pop_front();
            }
            return;
        }
        Rows rows(result);
        const auto status = PQresultStatus(result);
        if (status == PGRES_PIPELINE_SYNC) {
            const auto ended = flights_.front();
            flights_.pop_front();
            ended->end();
            return;
        }
        if (flight.commands.empty()) {
            return;
        }
        flight.commands.front().has_result = true;
        const char* prepares = flight.commands.front().prepares;
        const bool is_good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
        if (is_good && prepares != nullptr) {
            prepared_.emplace(prepares, flight.commands.front().name);
        } else if (is_good && flight.answers) {
            flight.answers->push_back(std::move(rows));
        } else if (!is_good && flight.answers) {
            const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
            const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
            const std::size_t place = flight.answers->size();
            flight.answers = tl::unexpected<Failure>(
                {ends_session(state),
                 state == nullptr ? "" : state,
                 message == nullptr ? message_of(handle_.get()) : message,
                 place}
            );
        }
    }

    Executor executor_;
    Handle handle_;  // nullptr: it broke
    Descriptor socket_;
    bool is_reading_ = false;
    bool is_writing_ = false;
    std::string why_;
    Names prepared_;
    std::uint64_t names_ = 0;  // given so far
    std::deque<std::shared_ptr<Flight>> flights_;
};

Connection::Connection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Connection::~Connection() {
    impl_->break_off("the connection was closed");
}

Task<Result<std::unique_ptr<Connection>>> Connection::open(
    Executor executor, std::string conninfo, Limits limits, Statements settings
) {
    auto handle = co_await connect(executor, std::move(conninfo), limits.connect);
    if (!handle) {
        co_return fail(std::move(handle.error()));
    }
    std::unique_ptr<Connection> made(
        new Connection(std::make_shared<Impl>(executor, std::move(*handle), limits.answer))
    );
    auto set = co_await made->run(std::move(settings));
    if (!set) {
        co_return fail(set.error().to_error());
    }
    co_return made;
}

std::shared_ptr<Connection::Flight> Connection::send(const Statements& statements) {
    return impl_->start(statements);
}

Task<Answers> Connection::receive(std::shared_ptr<Flight> flight) {
    const auto impl = impl_;  // the connection may be dropped meanwhile
    if (!flight->is_answered) {
        co_await flight->answered.wait_for(impl->longest);
    }
    if (!flight->is_answered) {
        impl->break_off("it does not answer");
    }
    co_return std::move(flight->answers);
}

Task<Answers> Connection::run(Statements statements) {
    return receive(send(statements));
}

bool Connection::is_broken() const {
    return impl_->is_broken();
}

std::size_t Connection::waiting() const {
    return impl_->waiting();
}

}  // namespace comfyd::ledger::postgres
