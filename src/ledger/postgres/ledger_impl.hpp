// What a PostgresLedger consists of: its thread, its connections, and what must be remembered
// between writes.
#pragma once

#include <pthread.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/dependency.hpp"
#include "base/hop.hpp"
#include "base/mutex.hpp"
#include "ledger/postgres/job_secrets.hpp"
#include "ledger/postgres/partitions.hpp"
#include "ledger/postgres/purge.hpp"
#include "ledger/postgres/readers.hpp"
#include "ledger/postgres/secret_texts.hpp"
#include "ledger/postgres/telling.hpp"
#include "ledger/postgres/writer.hpp"
#include "ledger/postgres_ledger.hpp"

namespace comfyd::ledger {

using namespace postgres;

class PostgresLedger::Impl {
public:
    Impl(const Options& options, const std::string& conninfo, Clock& of_now)
        : guard_(io_.get_executor()),
          tasks_(io_.get_executor()),
          chores_(io_.get_executor()),
          readers_(
              io_.get_executor(),
              conninfo,
              {options.connect_timeout, options.answer_timeout},
              options.readers,
              server_
          ),
          clock(of_now),
          secrets(options.secret),
          secret_texts(options.secret),
          telling(options.routing, secret_texts),
          writer(io_.get_executor(), conninfo, options, of_now, server_) {
        tasks_.spawn("ledger", writer.run());
        chores_.spawn("ledger partitions", tend_partitions());
        thread_ = std::thread([this] {
            ::pthread_setname_np(::pthread_self(), "ledger");
            io_.run();
        });
    }
    ~Impl() { stop(); }

    void stop() {
        writer.stop();
        {
            const Lock lock(mutex_);
            if (is_stopped_) {
                return;
            }
            is_stopped_ = true;
            boost::asio::post(io_, [this] {
                readers_.close();
                chores_.cancel();
            });
            guard_.reset();
        }
        thread_.join();
    }

    // What `read` makes of the answers, on the executor of whoever asks.
    template <class Read>
    Task<std::invoke_result_t<Read&, const std::vector<Rows>&>> ask(
        Statements statements, Read read
    ) {
        std::optional<Guard> guard;
        {
            const Lock lock(mutex_);
            if (!is_stopped_) {
                guard.emplace(io_.get_executor());
            }
        }
        if (!guard) {
            co_return fail(Code::shutting_down, "comfyd is stopping; send the request again later");
        }
        auto answers = co_await await_on(
            io_.get_executor(), ask_guarded(std::move(*guard), std::move(statements))
        );
        if (!answers) {
            co_return fail(std::move(answers.error()));
        }
        co_return read(*answers);
    }
    template <class Read>
    auto ask_one(Statement statement, Read read) {
        Statements statements;
        statements.push_back(std::move(statement));
        return ask(std::move(statements), [read](const std::vector<Rows>& answers) {
            return read(answers.at(0));
        });
    }

private:
    using Guard = boost::asio::executor_work_guard<Executor>;

    // The guard goes where the thread is that it keeps running.
    Task<Result<std::vector<Rows>>> ask_guarded(Guard, Statements statements) {
        auto answers = co_await readers_.read(std::move(statements));
        co_return answers;
    }

    Task<> tend_partitions() {
        constexpr Millis kBetween = std::chrono::hours(1);
        while (true) {
            auto tended =
                co_await writer.write(TendPartitions(), std::nullopt, Writer::Urgency::behind);
            if (tended && *tended) {
                continue;
            }
            const bool is_time = co_await sleep_for(kBetween);
            if (!is_time) {
                co_return;
            }
        }
    }

    boost::asio::io_context io_{1};
    Guard guard_;
    TaskGroup tasks_;
    TaskGroup chores_;
    // Rests are short: the writer looks for it all the time.
    Dependency server_{
        "ledger", {.failures = 1, .open_first = Millis(100), .open_max = Millis(1'000)}
    };
    Readers readers_;
    std::thread thread_;
    Mutex mutex_;
    bool is_stopped_ COMFYD_GUARDED_BY(mutex_) = false;

public:
    Clock& clock;
    const JobSecrets secrets;
    const SecretTexts secret_texts;
    const Telling telling;
    PurgeCursor purge_cursor;  // used by the writer
    Writer writer;
};

}  // namespace comfyd::ledger
