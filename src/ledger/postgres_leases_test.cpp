// Who leads, and that nobody writes who did: over PostgreSQL.
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <set>

#include "ledger/postgres_ledger.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"
#include "support/wait.hpp"

namespace comfyd::ledger::test {
namespace {

using support::run_sql;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A session that is left in the middle of a transaction.
class Session {
public:
    explicit Session(const std::string& url) : connection_(PQconnectdb(url.c_str()), PQfinish) {}
    std::string run(const std::string& sql) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(
            PQexec(connection_.get(), sql.c_str()), PQclear
        );
        return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
    }
    int pid() const { return PQbackendPID(connection_.get()); }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

class PostgresLeases : public testing::Test {
protected:
    std::unique_ptr<PostgresLedger> open() {
        PostgresLedger::Options options;
        options.url = url_;
        return get(PostgresLedger::open(options, clock_));
    }
    jobs::Job accept(jobs::Ledger& ledger, const jobs::Spec& spec = simple_spec()) {
        auto made = make_new(spec, clock_.now());
        const auto job = made.change.job;
        EXPECT_TRUE(await_value(ledger.accept(std::move(made))).created);
        return job;
    }
    jobs::Change start(const jobs::Job& job) {
        return get(jobs::start(job, "worker", job.sequence + 1, clock_.now()));
    }
    void let_run_out() {
        run_sql(url_, "UPDATE leases SET expires_at = clock_timestamp() - interval '1 second'");
    }
    // Pages of arrivals to the end of a round.
    std::vector<JobId> arrivals(jobs::ArrivalCursor& cursor, int limit = 100) {
        std::vector<JobId> found;
        for (bool more = true; more;) {
            auto page = await_value(one_->arrivals("main", cursor, limit));
            for (const auto& entry : page.jobs) {
                found.push_back(entry.job.id);
            }
            cursor = page.next;
            more = page.more;
        }
        return found;
    }

    // Without those that were found before: whoever reads arrivals may be told of one again.
    std::vector<JobId> fresh(jobs::ArrivalCursor& cursor, int limit = 100) {
        std::vector<JobId> found;
        for (const JobId& id : arrivals(cursor, limit)) {
            if (known_.insert(id).second) {
                found.push_back(id);
            }
        }
        return found;
    }

    std::set<JobId> known_;
    ManualClock clock_;
    const std::string url_ = make_postgres_database();
    std::unique_ptr<PostgresLedger> one_ = open();
    std::unique_ptr<PostgresLedger> two_ = open();
    const NodeId first_ = NodeId::make(clock_.now());
    const NodeId second_ = NodeId::make(clock_.now());
};

TEST_F(PostgresLeases, OneNodeLeadsUntilItResigns) {
    const auto taken = await_value(one_->take("main", first_)).value();
    EXPECT_EQ(taken.term, (jobs::Term{"main", 1, first_}));
    EXPECT_EQ(taken.quiet_in, Millis(0)) << "nobody led before";
    EXPECT_FALSE(await_value(two_->take("main", second_)));
    await_value(one_->renew(taken.term, 7));
    const auto leases = await_value(two_->all());
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].term, taken.term);
    EXPECT_EQ(leases[0].queued, 7U);
    EXPECT_GT(leases[0].expires_in, Millis(0));
    await_value(one_->resign(taken.term));
    EXPECT_EQ(await_value(two_->all())[0].term.node, NodeId{});
    const auto next = await_value(two_->take("main", second_)).value();
    EXPECT_EQ(next.term, (jobs::Term{"main", 2, second_}));
    EXPECT_EQ(next.quiet_in, Millis(0)) << "who resigns has nothing under way";
    EXPECT_EQ(await_code(one_->renew(taken.term, 0)), Code::lead_lost);
    await_value(one_->resign(taken.term));
    EXPECT_FALSE(await_value(one_->take("main", first_)));
    await_value(two_->renew(next.term, 0));
    await_value(two_->resign(next.term));
    EXPECT_EQ(await_code(two_->renew(next.term, 0)), Code::lead_lost) << "and holds no lock again";
    EXPECT_TRUE(await_value(one_->take("main", first_)));
}

TEST_F(PostgresLeases, DomainsHaveLeadersOfTheirOwn) {
    EXPECT_TRUE(await_value(one_->take("here", first_)));
    EXPECT_TRUE(await_value(two_->take("there", second_)));
    EXPECT_FALSE(await_value(two_->take("here", second_)));
    EXPECT_THAT(await_value(one_->all()), SizeIs(2));
}

TEST_F(PostgresLeases, ALeaderWhoseSessionIsGoneIsFollowedAtOnce) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    one_.reset();
    std::optional<cluster::Taken> next;
    // The server notices the end of the session a moment later.
    EXPECT_TRUE(support::wait_until([&] {
        next = await_value(two_->take("main", second_));
        return next.has_value();
    }));
    EXPECT_EQ(next->term.epoch, term.epoch + 1);
}

TEST_F(PostgresLeases, ALeaderWhoseLeaseRanOutIsFollowedThoughItsSessionLives) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    let_run_out();
    const auto next = await_value(two_->take("main", second_)).value();
    EXPECT_EQ(next.term.epoch, term.epoch + 1);
    EXPECT_EQ(await_code(one_->renew(term, 0)), Code::lead_lost);
    EXPECT_FALSE(await_value(one_->take("main", first_)));
}

TEST_F(PostgresLeases, ATransactionThatIsHalfSentDoesNotHoldUpATakeOver) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    one_.reset();
    Session stopped(url_);
    stopped.run("SELECT pg_advisory_lock(0)");
    stopped.run("BEGIN");
    stopped.run("SELECT 1 FROM leases FOR KEY SHARE");
    run_sql(
        url_,
        "UPDATE leases SET backend = " + std::to_string(stopped.pid()) +
            ", expires_at = clock_timestamp() - interval '1 second'"
    );
    EXPECT_EQ(await_value(two_->take("main", second_)).value().term.epoch, term.epoch + 1);
}

TEST_F(PostgresLeases, ARenewalDoesNotWaitForAWriteUnderTheTerm) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    Session writing(url_);
    writing.run("BEGIN");
    writing.run("SELECT 1 FROM leases FOR KEY SHARE");
    await_value(one_->renew(term, 0));
}

TEST_F(PostgresLeases, WhatIsWrittenUnderATermThatEndedIsRefusedWholly) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    const auto led = one_->under(term);
    const auto job = accept(*led);
    await_value(led->commit(start(job)));
    let_run_out();
    const auto next = await_value(two_->take("main", second_)).value().term;

    const auto waiting = accept(*two_);
    EXPECT_EQ(await_code(led->commit(start(waiting))), Code::lead_lost);
    EXPECT_EQ(await_code(led->accept(make_new(simple_spec(), clock_.now()))), Code::lead_lost);
    EXPECT_EQ(await_code(led->discard(job.id)), Code::lead_lost);
    EXPECT_EQ(await_code(led->purge(clock_.now(), 1)), Code::lead_lost);
    EXPECT_EQ(await_value(one_->find(waiting.id))->state, jobs::State::queued);
    EXPECT_EQ(await_value(led->counts(std::nullopt)).of(jobs::State::queued), 1U);
    await_value(two_->under(next)->commit(start(waiting)));
}

Task<> note_code(Task<Result<>> task, std::vector<std::optional<Code>>& into) {
    auto outcome = co_await std::move(task);
    into.push_back(outcome ? std::nullopt : std::optional(outcome.error().code));
}

TEST_F(PostgresLeases, ALostLeadDoesNotDisturbWritesWithoutATerm) {
    const auto term = await_value(one_->take("main", first_)).value().term;
    const auto led = one_->under(term);
    std::vector<jobs::Job> jobs;
    for (int i = 0; i < 20; ++i) {
        jobs.push_back(accept(*one_));
    }
    let_run_out();
    EXPECT_TRUE(await_value(two_->take("main", second_)));
    boost::asio::io_context& io = make_io();
    std::vector<std::optional<Code>> with;
    std::vector<std::optional<Code>> without;
    const auto ignore = [](std::exception_ptr) {};
    for (std::size_t i = 0; i < jobs.size(); i += 2) {
        boost::asio::co_spawn(io, note_code(led->commit(start(jobs[i])), with), ignore);
        boost::asio::co_spawn(io, note_code(one_->commit(start(jobs[i + 1])), without), ignore);
    }
    io.run();
    EXPECT_THAT(with, SizeIs(10));
    EXPECT_THAT(with, testing::Each(Code::lead_lost));
    EXPECT_THAT(without, testing::Each(std::nullopt));
    EXPECT_TRUE(one_->healthy());
}

TEST_F(PostgresLeases, ArrivalsAreAllUnfinishedJobsAndThenThoseThatCome) {
    std::vector<JobId> made;
    for (int i = 0; i < 5; ++i) {
        made.push_back(accept(*two_).id);
    }
    auto elsewhere = simple_spec();
    elsewhere.domain = "elsewhere";
    accept(*two_, elsewhere);
    const auto ended = accept(*two_);
    const auto expired = get(jobs::expire(ended, 2, clock_.now()));
    await_value(two_->commit(expired));

    jobs::ArrivalCursor cursor;
    EXPECT_EQ(fresh(cursor, 2), made);
    EXPECT_THAT(fresh(cursor), IsEmpty());
    const auto later = accept(*two_);
    EXPECT_THAT(fresh(cursor), ElementsAre(later.id));
    await_value(two_->commit(get(jobs::revive(expired.job, 3, clock_.now()))));
    EXPECT_THAT(fresh(cursor), ElementsAre(ended.id)) << "it waits again";
    const auto page = await_value(one_->arrivals("elsewhere", {}, 10));
    ASSERT_THAT(page.jobs, SizeIs(1));
    EXPECT_EQ(page.jobs[0].requirement, elsewhere.requirement);
}

TEST_F(PostgresLeases, AnArrivalThatIsCommittedLateIsNotMissed) {
    const auto late = accept(*two_);
    Session slow(url_);
    slow.run("BEGIN");
    slow.run(
        "UPDATE jobs SET arrival = pg_current_xact_id() WHERE id = '" + late.id.to_string() + "'"
    );
    jobs::ArrivalCursor cursor;
    EXPECT_THAT(fresh(cursor), ElementsAre(late.id)) << "as it was";
    std::vector<JobId> quick;
    for (int i = 0; i < 3; ++i) {
        quick.push_back(accept(*two_).id);
    }
    EXPECT_EQ(fresh(cursor, 1), quick);
    slow.run("COMMIT");
    EXPECT_THAT(arrivals(cursor, 1), testing::Contains(late.id));
}

TEST_F(PostgresLeases, WhatCameWhileATransactionStaysOpenIsReadOnce) {
    Session open(url_);
    open.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    open.run("SELECT pg_current_xact_id()");
    std::vector<JobId> made;
    jobs::ArrivalCursor cursor;
    for (int i = 0; i < 3; ++i) {
        made.push_back(accept(*two_).id);
        made.push_back(accept(*two_).id);
        EXPECT_EQ(arrivals(cursor, 1), std::vector(made.end() - 2, made.end()));
        EXPECT_THAT(arrivals(cursor), IsEmpty());
    }
    open.run("ROLLBACK");
    EXPECT_THAT(arrivals(cursor), IsEmpty());
}

TEST_F(PostgresLeases, WishesReachTheLeaderOnce) {
    jobs::Wish cancel;
    cancel.job = JobId::make(clock_.now());
    jobs::Wish drain;
    drain.kind = jobs::Wish::Kind::drain;
    drain.worker = "gpu-1";
    drain.details = {{"why", "repair"}};
    await_value(two_->wish(cancel));
    await_value(two_->wish(drain));
    const auto wishes = await_value(one_->wishes("main", 10));
    ASSERT_THAT(wishes, SizeIs(2));
    EXPECT_EQ(wishes[0].job, cancel.job);
    EXPECT_EQ(wishes[1].kind, jobs::Wish::Kind::drain);
    EXPECT_EQ(wishes[1].worker, "gpu-1");
    EXPECT_EQ(wishes[1].details, drain.details);
    EXPECT_THAT(await_value(one_->wishes("elsewhere", 10)), IsEmpty());
    await_value(one_->drop_wishes({wishes[0].id, wishes[1].id}));
    EXPECT_THAT(await_value(one_->wishes("main", 10)), IsEmpty());
}

TEST_F(PostgresLeases, ListenersAreToldOfWhichJobsThereIsMore) {
    const auto still = accept(*two_);
    const auto moved = accept(*two_);
    await_value(two_->commit(start(moved)));
    EXPECT_THAT(
        await_value(one_->advanced({{still.id, 1}, {moved.id, 1}, {JobId::make(clock_.now()), 0}})),
        ElementsAre(moved.id)
    );
    EXPECT_THAT(await_value(one_->advanced({{moved.id, 2}})), IsEmpty());
}

TEST_F(PostgresLeases, TwoNodesClaimDifferentDeliveries) {
    auto spec = simple_spec();
    spec.webhook.emplace();
    spec.webhook->url = "https://example.com/";
    spec.webhook->events = {"execution.queued"};
    for (int i = 0; i < 10; ++i) {
        accept(*one_, spec);
    }
    const auto first = await_value(one_->due(clock_.now(), 6));
    const auto second = await_value(two_->due(clock_.now(), 100));
    EXPECT_THAT(first, SizeIs(6));
    EXPECT_THAT(second, SizeIs(4));
    EXPECT_THAT(await_value(one_->due(clock_.now(), 100)), IsEmpty());
    await_value(one_->delivered(first[0], clock_.now()));
    await_value(two_->retry_at(second[0], clock_.now() + Millis(5'000), "503"));
    EXPECT_EQ(await_value(one_->counts()).pending, 9U);
    clock_.advance(Millis(5'000));
    EXPECT_THAT(await_value(one_->due(clock_.now(), 100)), SizeIs(1));
    clock_.advance(Millis(25'000));
    EXPECT_THAT(await_value(two_->due(clock_.now(), 100)), SizeIs(8)) << "their claims ran out";
    await_value(one_->retry_at(first[1], clock_.now() + Millis(90'000), "too late"));
}

}  // namespace
}  // namespace comfyd::ledger::test
