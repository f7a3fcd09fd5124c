// Whatever becomes of connections and of the server: nothing is lost, nothing is written twice.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "ledger/postgres/writer.hpp"
#include "ledger/postgres_ledger.hpp"
#include "ledger/test_support.hpp"
#include "support/fault_proxy.hpp"
#include "support/postgres.hpp"
#include "support/wait.hpp"

namespace comfyd::ledger::test {
namespace {

using support::PostgresServer;
using support::run_sql;
using support::wait_until;

class PostgresFailures : public testing::Test {
protected:
    std::unique_ptr<PostgresLedger> open(const std::string& url, Millis patience) {
        PostgresLedger::Options options;
        options.url = url;
        options.patience = patience;
        options.probe_interval = Millis(20);
        options.connect_timeout = Millis(30'000);
        options.answer_timeout = kLong;
        return get(PostgresLedger::open(options, clock_));
    }
    std::int64_t count(const std::string& sql) { return std::stoll(run_sql(url_, sql)); }
    std::string over(const support::FaultProxy& proxy) const {
        std::string url = url_;
        const std::string port = std::to_string(server_.port());
        return url.replace(url.find(port), port.size(), std::to_string(proxy.port()));
    }

    static constexpr Millis kLong{120'000};
    PostgresServer& server_ = PostgresServer::shared();
    ManualClock clock_;
    const std::string url_ = make_postgres_database();
};

// A job from beginning to end, and the next.
Task<> work(jobs::Ledger& ledger, const Clock& clock, int count, std::atomic<int>& done) {
    for (int i = 0; i < count; ++i) {
        jobs::NewJob made;
        made.spec = simple_spec();
        made.spec.idempotency_key = JobId::make(clock.now()).to_string();
        made.change = jobs::make_job(JobId::make(clock.now()), made.spec, clock.now());
        const auto job = made.change.job;
        auto accepted = co_await ledger.accept(std::move(made));
        EXPECT_TRUE(get(std::move(accepted)).created);
        auto started = get(jobs::start(job, "worker", 2, clock.now()));
        auto first = co_await ledger.commit(started);
        get(std::move(first));
        auto second =
            co_await ledger.commit(get(jobs::complete(started.job, {}, {}, 3, clock.now())));
        get(std::move(second));
        ++done;
    }
}

// Works while `disturb` does what it does, each time that some jobs have been done.
class PostgresDisturbed : public PostgresFailures {
protected:
    void work_through(const std::function<void()>& disturb, int times) {
        constexpr int kWorkers = 8;
        constexpr int kJobs = 30;
        const auto ledger = open(url_, kLong);
        boost::asio::io_context& io = make_io();
        std::atomic<int> done = 0;
        for (int i = 0; i < kWorkers; ++i) {
            boost::asio::co_spawn(
                io,
                work(*ledger, clock_, kJobs, done),
                [](std::exception_ptr error) { EXPECT_FALSE(error); }
            );
        }
        std::thread worker([&io] { io.run(); });
        for (int i = 1; i <= times; ++i) {
            wait_until([&] { return done >= i * kWorkers * kJobs / (times + 1); }, kLong);
            disturb();
        }
        worker.join();
        EXPECT_EQ(done, kWorkers * kJobs);
        EXPECT_EQ(count("SELECT count(*) FROM jobs WHERE state = 3 AND outcome = 3"), done);
        EXPECT_EQ(count("SELECT count(*) FROM job_events"), 2 * done);
        EXPECT_EQ(count("SELECT sum(count) FROM counters WHERE kind = 0 AND state = 3"), done);
        EXPECT_EQ(count("SELECT coalesce(sum(count), 0) FROM counters WHERE state <> 3"), 0);
        EXPECT_EQ(count("SELECT sum(completed) FROM rollups"), done);
        EXPECT_EQ(count("SELECT count(*) FROM idempotency_keys"), done);
        EXPECT_TRUE(ledger->healthy());
    }
};

TEST_F(PostgresDisturbed, SessionsThatAreEndedInTheMiddleLoseNothing) {
    work_through(
        [this] {
            run_sql(
                url_,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                "current_database() AND pid <> pg_backend_pid()"
            );
        },
        10
    );
}

TEST_F(PostgresDisturbed, AServerThatCrashesAndComesBackLosesNothing) {
    work_through(
        [this] {
            server_.crash();
            server_.start();
        },
        2
    );
}

TEST_F(PostgresFailures, WritesWaitForAServerThatIsGoneButNotForEver) {
    const auto ledger = open(url_, Millis(100));
    const auto make = [this] { return make_new(simple_spec(), clock_.now()); };
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    EXPECT_TRUE(ledger->healthy());
    server_.crash();
    EXPECT_EQ(await_code(ledger->accept(make())), Code::storage_unavailable);
    EXPECT_EQ(await_code(ledger->counts(std::nullopt)), Code::storage_unavailable);
    ASSERT_FALSE(ledger->healthy());
    EXPECT_EQ(ledger->healthy().error().code, Code::storage_unavailable);
    EXPECT_NE(ledger->storage_stats().breaker, CircuitBreaker::State::closed);
    server_.start();
    EXPECT_TRUE(wait_until([&] { return ledger->healthy().has_value(); })) << "by itself";
    EXPECT_EQ(ledger->storage_stats().breaker, CircuitBreaker::State::closed);
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    EXPECT_EQ(await_value(ledger->counts(std::nullopt)).of(jobs::State::queued), 2U);
}

TEST_F(PostgresFailures, AServerThatDoesNotAnswerIsAskedAnew) {
    support::FaultProxy proxy(static_cast<std::uint16_t>(server_.port()));
    PostgresLedger::Options options;
    options.url = over(proxy);
    options.answer_timeout = Millis(500);
    options.patience = kLong;
    const auto ledger = get(PostgresLedger::open(options, clock_));
    const auto make = [this] { return make_new(simple_spec(), clock_.now()); };
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    proxy.inflict(support::FaultProxy::Fault::swallow_answers);
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    EXPECT_EQ(count("SELECT count(*) FROM jobs"), 2);
}

// It takes connections and says nothing: each attempt takes its whole time, and many ask.
TEST_F(PostgresFailures, ReadsDoNotQueueUpForAServerThatDoesNotAnswer) {
    support::FaultProxy proxy(static_cast<std::uint16_t>(server_.port()));
    PostgresLedger::Options options;
    options.url = over(proxy);
    options.connect_timeout = Millis(300);
    options.answer_timeout = Millis(300);
    options.readers = 1;
    const auto ledger = get(PostgresLedger::open(options, clock_));
    proxy.inflict_on_all(support::FaultProxy::Fault::swallow_both);
    const std::size_t before = proxy.accepted_connections();
    constexpr int kReads = 200;
    boost::asio::io_context& io = make_io();
    int refused = 0;
    for (int i = 0; i < kReads; ++i) {
        boost::asio::co_spawn(
            io,
            ledger->counts(std::nullopt),
            [&](std::exception_ptr, const Result<jobs::StateCounts>& outcome) {
                EXPECT_FALSE(outcome);
                refused += outcome ? 0 : 1;
            }
        );
    }
    io.run();
    EXPECT_EQ(refused, kReads);
    EXPECT_LT(proxy.accepted_connections() - before, 20U) << "one attempt is for all who wait";
    EXPECT_NE(ledger->storage_stats().breaker, CircuitBreaker::State::closed);
    proxy.heal();
    EXPECT_TRUE(wait_until([&] { return await(ledger->counts(std::nullopt)).has_value(); }));
    EXPECT_EQ(ledger->storage_stats().breaker, CircuitBreaker::State::closed);
}

TEST_F(PostgresFailures, AServerThatSaysNonsenseIsAskedAnew) {
    support::FaultProxy proxy(static_cast<std::uint16_t>(server_.port()));
    const auto ledger = open(over(proxy), kLong);
    const auto make = [this] { return make_new(simple_spec(), clock_.now()); };
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    EXPECT_EQ(await_value(ledger->counts(std::nullopt)).of(jobs::State::queued), 1U);
    proxy.inflict(support::FaultProxy::Fault::garble_answers);
    EXPECT_TRUE(await_value(ledger->accept(make())).created);
    proxy.inflict(support::FaultProxy::Fault::garble_answers);
    EXPECT_EQ(await_value(ledger->counts(std::nullopt)).of(jobs::State::queued), 2U);
    EXPECT_EQ(count("SELECT count(*) FROM jobs"), 2);
}

// What one of them needs is prepared for both, and both are on their way before either is answered.
TEST_F(PostgresFailures, TwoTransactionsAtOnceAreTheFirstOfAConnection) {
    constexpr int kTimes = 20;
    const auto ledger = open(url_, kLong);
    const auto taken = await_value(ledger->leases()->take("main", NodeId::make(clock_.now())));
    ASSERT_TRUE(taken);
    const auto led = ledger->under(taken->term);
    for (int i = 0; i < kTimes; ++i) {
        run_sql(
            url_,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
            "current_database() AND pid <> pg_backend_pid()"
        );
        boost::asio::io_context& io = make_io();
        for (jobs::Ledger* to : {static_cast<jobs::Ledger*>(ledger.get()), led.get()}) {
            boost::asio::co_spawn(
                io,
                to->accept(make_new(simple_spec(), clock_.now())),
                [](std::exception_ptr, const Result<jobs::Accepted>& outcome) {
                    EXPECT_TRUE(outcome) << outcome.error().message;
                }
            );
        }
        io.run();
    }
    EXPECT_EQ(count("SELECT count(*) FROM jobs"), 2 * kTimes);
}

TEST_F(PostgresFailures, ANodeThatStopsInTheMiddleOfATransactionHoldsUpNobody) {
    support::FaultProxy proxy(static_cast<std::uint16_t>(server_.port()));
    const auto stopped = open(over(proxy), kLong);
    const auto other = open(url_, kLong);
    auto spec = simple_spec();
    spec.idempotency_key = "key";
    spec.workflow = R"({"1": {"class_type": "stops here"}})";
    auto first = make_new(spec, clock_.now());
    await_value(stopped->write_note("connected", ""));
    proxy.inflict_after(
        support::FaultProxy::Way::to_server, "stops here", support::FaultProxy::Fault::hold_requests
    );
    proxy.refuse(true);  // a node that is stopped does not connect anew either
    std::optional<Result<jobs::Accepted>> said;
    boost::asio::io_context& io = make_io();
    boost::asio::co_spawn(
        io,
        stopped->accept(first),
        [&](std::exception_ptr, Result<jobs::Accepted> outcome) {
            said.emplace(std::move(outcome));
        }
    );
    io.poll();
    ASSERT_TRUE(wait_until([&] { return proxy.has_struck(); }));
    const auto made = make_new(spec, clock_.now());
    EXPECT_TRUE(await_value(other->accept(made)).created);
    EXPECT_TRUE(other->healthy());
    proxy.refuse(false);
    proxy.release();
    io.run();
    EXPECT_EQ(get(std::move(*said)).existing->id, made.change.job.id);
    EXPECT_EQ(count("SELECT count(*) FROM jobs"), 1);
}

TEST_F(PostgresFailures, AStoppedLedgerSaysSo) {
    const auto ledger = open(url_, kLong);
    ledger->stop();
    EXPECT_EQ(
        await_code(ledger->accept(make_new(simple_spec(), clock_.now()))), Code::shutting_down
    );
    EXPECT_EQ(await_code(ledger->counts(std::nullopt)), Code::shutting_down);
    ledger->stop();
}

TEST_F(PostgresFailures, StoppingDoesNotWaitForAServerThatIsGone) {
    const auto ledger = open(url_, kLong);
    server_.crash();
    boost::asio::io_context& io = make_io();
    std::optional<Code> code;
    boost::asio::co_spawn(
        io,
        ledger->accept(make_new(simple_spec(), clock_.now())),
        [&](std::exception_ptr, const Result<jobs::Accepted>& outcome) {
            code = outcome ? std::nullopt : std::optional(outcome.error().code);
        }
    );
    io.poll();
    ledger->stop();
    io.run();
    EXPECT_EQ(code, Code::shutting_down);
    server_.start();
}

// Over a proxy that loses answers.
class PostgresLostAnswer : public PostgresFailures {
protected:
    PostgresLostAnswer() {
        // Also what is written behind has had its turn then.
        for (int i = 0; i < 10; ++i) {
            await_value(ledger_->write_note("connected", ""));
        }
    }

    // What the task says, whose COMMIT was done but not answered.
    template <class T>
    Result<T> lose_answer(
        Task<Result<T>> task, const std::string& until, const std::string& to = ""
    ) {
        std::optional<Result<T>> said;
        using Proxy = support::FaultProxy;
        if (to.empty()) {
            proxy_.inflict(Proxy::Fault::swallow_answers);
        } else {
            proxy_.inflict_after(Proxy::Way::to_server, to, Proxy::Fault::swallow_answers);
        }
        boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr, Result<T> outcome) {
            said.emplace(std::move(outcome));
        });
        io_.restart();
        io_.poll();
        EXPECT_TRUE(wait_until([&] { return count(until) > 0; }));
        EXPECT_FALSE(said);
        proxy_.inflict(Proxy::Fault::cut);
        io_.run();
        return std::move(*said);
    }
    jobs::NewJob make(const std::string& key = "") {
        auto spec = full_spec();
        spec.idempotency_key = key;
        return make_new(spec, clock_.now());
    }

    boost::asio::io_context io_{1};  // outlives the ledger
    support::FaultProxy proxy_{static_cast<std::uint16_t>(server_.port())};
    std::unique_ptr<PostgresLedger> ledger_ = open(over(proxy_), kLong);
};

TEST_F(PostgresLostAnswer, AnAcceptIsStillTheOneThatMadeTheJob) {
    auto made = make("key");
    const JobId id = made.change.job.id;
    EXPECT_TRUE(get(lose_answer(ledger_->accept(made), "SELECT count(*) FROM jobs")).created);
    EXPECT_EQ(await_value(ledger_->find_key(made.spec.tenant, "key")).existing->id, id);
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::queued), 1U);
    EXPECT_EQ(await_value(ledger_->accept(made)).existing->id, id);
    EXPECT_EQ(count("SELECT count(*) FROM jobs"), 1);
}

TEST_F(PostgresLostAnswer, AChangeIsDoneOnce) {
    auto made = make();
    await_value(ledger_->accept(made));
    const auto change = get(jobs::start(made.change.job, "worker", 2, clock_.now()));
    get(lose_answer(ledger_->commit(change), "SELECT count(*) FROM jobs WHERE state = 1"));
    EXPECT_EQ(await_code(ledger_->commit(change)), Code::conflict) << "this one is another";
    EXPECT_EQ(await_value(ledger_->events(made.change.job.id, 0)).size(), 2U);
    const auto counts = await_value(ledger_->counts(std::nullopt));
    EXPECT_EQ(counts.of(jobs::State::queued), 0U);
    EXPECT_EQ(counts.of(jobs::State::running), 1U);
    EXPECT_EQ(await_value(ledger_->counts()).pending, 1U) << "its webhook wants to hear of it";
}

TEST_F(PostgresLostAnswer, AWorkflowIsSavedOnce) {
    jobs::WorkflowSave save;
    save.of = {"local", "portrait"};
    save.version.content_hash = "1";
    const auto saved = get(lose_answer(
        ledger_->save_workflow(save), "SELECT count(*) FROM workflow_versions", "COMMIT"
    ));
    EXPECT_TRUE(saved.created);
    EXPECT_EQ(saved.version, 1);
    EXPECT_EQ(await_value(ledger_->find_workflow(save.of))->version_count, 1);
}

TEST_F(PostgresLostAnswer, AJobIsDiscardedOnce) {
    auto made = make();
    await_value(ledger_->accept(made));
    await_value(ledger_->commit(get(jobs::expire(made.change.job, 2, clock_.now()))));
    get(lose_answer(ledger_->discard(made.change.job.id), "SELECT 1 - count(*) FROM jobs", "COMMIT")
    );
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::expired), 0U);
}

constexpr int kAhead = static_cast<int>(postgres::kWorthSendingAhead);

// What is written while nothing is answered, and then the line is cut.
class PostgresTwoUnderWay : public PostgresLostAnswer {
protected:
    PostgresTwoUnderWay() { proxy_.inflict(support::FaultProxy::Fault::swallow_answers); }

    template <class T>
    void begin(Task<Result<T>> task) {
        const std::size_t place = outcomes_.size();
        outcomes_.emplace_back("none");
        boost::asio::co_spawn(io_, std::move(task), [=, this](std::exception_ptr, Result<T> said) {
            outcomes_[place] = said ? "done" : std::string(to_string(said.error().code));
        });
        io_.poll();
    }
    void begin_as_many_as_are_sent_ahead() {
        for (int i = 0; i < kAhead; ++i) {
            begin(ledger_->accept(make("next " + std::to_string(i))));
        }
    }
    void cut() {
        proxy_.inflict(support::FaultProxy::Fault::cut);
        io_.restart();
        io_.run();
    }

    std::vector<std::string> outcomes_;
};

TEST_F(PostgresTwoUnderWay, TheNextIsSentBeforeTheAnswerAndBothAreDoneOnceInTheirOrder) {
    const auto first = make("first");
    begin(ledger_->accept(first));
    EXPECT_TRUE(wait_until([&] { return count("SELECT count(*) FROM jobs") == 1; }));
    begin_as_many_as_are_sent_ahead();
    EXPECT_TRUE(wait_until([&] { return count("SELECT count(*) FROM jobs") == 1 + kAhead; }));
    EXPECT_THAT(outcomes_, testing::Each("none"));
    cut();
    EXPECT_THAT(outcomes_, testing::Each("done"));
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::queued), 1U + kAhead);
    EXPECT_EQ(
        run_sql(url_, "SELECT id FROM jobs ORDER BY arrival LIMIT 1"),
        first.change.job.id.to_string()
    );
}

TEST_F(PostgresTwoUnderWay, OneThatIsDoneAndOneThatNeverArrivedAreBothDoneOnce) {
    begin(ledger_->accept(make("first")));
    EXPECT_TRUE(wait_until([&] { return count("SELECT count(*) FROM jobs") == 1; }));
    proxy_.inflict(support::FaultProxy::Fault::swallow_both);
    begin_as_many_as_are_sent_ahead();
    cut();
    EXPECT_THAT(outcomes_, testing::Each("done"));
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::queued), 1U + kAhead);
}

TEST_F(PostgresTwoUnderWay, ChangesOfOneJobDoNotOvertakeEachOther) {
    const auto made = make();
    const auto started = get(jobs::start(made.change.job, "worker", 2, clock_.now()));
    const auto completed = get(jobs::complete(started.job, {}, {}, 3, clock_.now()));
    begin(ledger_->accept(made));
    EXPECT_TRUE(wait_until([&] { return count("SELECT count(*) FROM jobs") == 1; }));
    begin(ledger_->commit(started));
    begin(ledger_->commit(completed));
    begin_as_many_as_are_sent_ahead();
    cut();
    EXPECT_THAT(outcomes_, testing::Each("done"));
    EXPECT_EQ(await_value(ledger_->events(made.change.job.id, 0)).size(), 3U);
    EXPECT_EQ(await_value(ledger_->counts(std::nullopt)).of(jobs::State::completed), 1U);
}

}  // namespace
}  // namespace comfyd::ledger::test
