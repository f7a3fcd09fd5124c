#include "ledger/postgres/readers.hpp"

#include <algorithm>
#include <utility>

#include "ledger/postgres/settings.hpp"

namespace comfyd::ledger::postgres {

Readers::Readers(
    Executor executor,
    std::string conninfo,
    Connection::Limits limits,
    std::size_t count,
    Dependency& server
)
    : executor_(executor), conninfo_(std::move(conninfo)), limits_(limits), server_(server) {
    for (std::size_t i = 0; i < count; ++i) {
        places_.push_back(std::make_unique<Place>(executor));
    }
}

void Readers::close() {
    is_closed_ = true;
    for (const auto& place : places_) {
        place->connection.reset();
    }
}

Readers::Place& Readers::least_busy() {
    return **std::min_element(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
        return a->waiting < b->waiting;
    });
}

// Waits once for a server that is away, and no longer than it rests: who comes when it is nearly
// back is served.
Task<Result<std::shared_ptr<Connection>>> Readers::connection_of(Place& place) {
    constexpr Millis kMoment{100};  // while somebody else finds out whether the server is back
    for (bool has_waited = false;; has_waited = true) {
        if (place.is_connecting) {
            co_await place.connected.wait();
        }
        if (is_closed_) {
            co_return fail(Code::shutting_down, "comfyd is stopping; send the request again later");
        }
        if (place.connection && !place.connection->is_broken()) {
            co_return place.connection;
        }
        const auto pass = place.is_connecting ? std::nullopt : server_.admit();
        if (pass) {
            auto connected = co_await connect(place);
            co_return connected;
        }
        if (has_waited) {
            co_return fail(
                Code::storage_unavailable,
                "PostgreSQL cannot be reached and is left alone for a moment; try again later"
            );
        }
        co_await sleep_for(std::max(kMoment, server_.wait()));
    }
}

Task<Result<std::shared_ptr<Connection>>> Readers::connect(Place& place) {
    place.is_connecting = true;
    auto opened = co_await open_reading(executor_, conninfo_, limits_);
    place.is_connecting = false;
    place.connected.notify();
    if (!opened) {
        server_.failed();
        co_return fail(std::move(opened.error()));
    }
    server_.succeeded();
    place.connection = std::move(*opened);
    co_return place.connection;
}

Task<Result<std::vector<Rows>>> Readers::read(Statements statements) {
    constexpr int kAttempts = 2;
    Result<std::vector<Rows>> outcome = std::vector<Rows>();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        Place& place = least_busy();
        place.waiting += 1;
        auto connection = co_await connection_of(place);
        if (!connection) {
            place.waiting -= 1;
            co_return fail(std::move(connection.error()));
        }
        auto answers = co_await (*connection)->run(statements);
        place.waiting -= 1;
        if (answers) {
            co_return std::move(*answers);
        }
        outcome = fail(answers.error().to_error());
        const Failure& failure = answers.error();
        if (is_closed_ || !(failure.is_broken || failure.may_pass())) {
            break;
        }
    }
    co_return outcome;
}

}  // namespace comfyd::ledger::postgres
