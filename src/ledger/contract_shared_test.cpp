// What jobs::SharedLedger promises, for every ledger that nodes share.
#include <gmock/gmock.h>

#include <algorithm>

#include "ledger/shared_test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class SharedLedgerContract : public SharedContract {
protected:
    // What a reader that follows the domain is told when it looks again, page by page.
    struct Reader {
        std::string domain = "main";
        jobs::ArrivalCursor cursor{};
    };
    std::vector<JobId> read_page(Reader& reader, int limit, bool& more) {
        auto page = await_value(node(1).shared.arrivals(reader.domain, reader.cursor, limit));
        reader.cursor = page.next;
        more = page.more;
        std::vector<JobId> ids;
        for (const jobs::Unfinished& one : page.jobs) {
            ids.push_back(one.job.id);
        }
        return ids;
    }
    std::vector<JobId> read(Reader& reader, int limit = 100) {
        std::vector<JobId> ids;
        for (bool more = true; more;) {
            const auto page = read_page(reader, limit, more);
            ids.insert(ids.end(), page.begin(), page.end());
        }
        return ids;
    }
    jobs::Change start(const jobs::Job& job) {
        return get(jobs::start(job, "worker-1", job.sequence + 1, clock_.now(), std::nullopt));
    }
    jobs::Change complete(const jobs::Job& job) {
        return get(jobs::complete(job, {}, {}, job.sequence + 1, clock_.now()));
    }
};
INSTANTIATE_TEST_SUITE_P(
    Ledger, SharedLedgerContract, testing::ValuesIn(shared_backends()), shared_backend_name
);

TEST_P(SharedLedgerContract, ALeaderChangesJobs) {
    const jobs::Job job = accept(1);
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    const auto ledger = node(0).shared.under(taken->term);
    const jobs::Change started = start(job);
    await_value(ledger->commit(started));
    await_value(ledger->commit(complete(started.job)));
    EXPECT_EQ(await_value(node(1).ledger.find(job.id))->state, jobs::State::completed);
}

TEST_P(SharedLedgerContract, WhoLeadsNoMoreChangesNothing) {
    const jobs::Job job = accept(0);
    const auto first = take(0);
    ASSERT_TRUE(first);
    const auto ledger = node(0).shared.under(first->term);
    storage_->cut_session(0);
    ASSERT_TRUE(take(1));
    EXPECT_EQ(await_code(ledger->commit(start(job))), Code::lead_lost);
    EXPECT_EQ(await_value(ledger->find(job.id))->state, jobs::State::queued) << "reading it may";
    EXPECT_THAT(await_value(ledger->events(job.id, job.sequence)), IsEmpty());
    auto late = make_job();
    const JobId id = late.change.job.id;
    late.then = start(late.change.job);
    EXPECT_EQ(await_code(ledger->accept(std::move(late))), Code::lead_lost);
    EXPECT_FALSE(await_value(ledger->find(id)));
}

TEST_P(SharedLedgerContract, WhoResignedChangesNothing) {
    const jobs::Job job = accept(0);
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    const auto ledger = node(0).shared.under(taken->term);
    ASSERT_TRUE(await(node(0).leases.resign(taken->term)));
    EXPECT_EQ(await_code(ledger->commit(start(job))), Code::lead_lost);
}

TEST_P(SharedLedgerContract, ATermOfAnotherNodeIsNone) {
    const jobs::Job job = accept(0);
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    jobs::Term term = taken->term;
    term.node = node(1).id;
    EXPECT_EQ(await_code(node(1).shared.under(term)->commit(start(job))), Code::lead_lost);
}

TEST_P(SharedLedgerContract, AllOpenJobsArrive) {
    std::vector<JobId> accepted;
    for (int i = 0; i < 7; ++i) {
        accepted.push_back(accept(i % 2).id);
    }
    accept(0, "elsewhere");
    const jobs::Job ended = accept(0);
    const jobs::Change started = start(ended);
    await_value(node(0).ledger.commit(started));
    await_value(node(0).ledger.commit(complete(started.job)));
    Reader reader;
    EXPECT_EQ(read(reader, 3), accepted);
    EXPECT_THAT(read(reader), IsEmpty());
}

TEST_P(SharedLedgerContract, ThenThoseArriveThatCame) {
    const JobId first = accept(0).id;
    Reader reader;
    EXPECT_THAT(read(reader), ElementsAre(first));
    const JobId second = accept(1).id;
    const JobId third = accept(0).id;
    EXPECT_THAT(read(reader), ElementsAre(second, third));
}

TEST_P(SharedLedgerContract, WhatTheReaderKnowsIsLeftOut) {
    const JobId known = accept(0).id;
    const JobId unknown = accept(1).id;
    std::vector<JobId> asked;
    const jobs::IsKnown is_known = [&](const jobs::Arrival& one) {
        EXPECT_EQ(one.state, jobs::State::queued);
        EXPECT_EQ(one.revision, 1);
        asked.push_back(one.job);
        return one.job == known;
    };
    const auto page = await_value(node(0).shared.arrivals("main", {}, 1, is_known));
    EXPECT_TRUE(page.more);
    EXPECT_THAT(page.jobs, IsEmpty());
    const auto last = await_value(node(0).shared.arrivals("main", page.next, 10, is_known));
    EXPECT_FALSE(last.more);
    ASSERT_EQ(last.jobs.size(), 1U);
    EXPECT_EQ(last.jobs[0].job.id, unknown);
    EXPECT_THAT(asked, ElementsAre(known, unknown));
    const JobId later = accept(1).id;
    const auto next = await_value(node(0).shared.arrivals("main", last.next, 10, is_known));
    ASSERT_FALSE(next.jobs.empty());
    EXPECT_EQ(next.jobs.back().job.id, later);
}

TEST_P(SharedLedgerContract, ARevivedJobArrivesAgain) {
    const jobs::Job job = accept(0);
    const jobs::Change started = start(job);
    await_value(node(0).ledger.commit(started));
    const jobs::Change failed =
        get(jobs::fail_job(started.job, {}, started.job.sequence + 1, clock_.now()));
    await_value(node(0).ledger.commit(failed));
    accept(0);
    Reader reader;
    read(reader);
    await_value(
        node(1).ledger.commit(get(jobs::revive(failed.job, failed.job.sequence + 1, clock_.now())))
    );
    EXPECT_THAT(read(reader), ElementsAre(job.id));
}

TEST_P(SharedLedgerContract, ALateCommitIsNotMissed) {
    Reader reader;
    read(reader);
    auto late = make_job();
    const JobId late_id = late.change.job.id;
    const auto commit = storage_->begin_accept(std::move(late));
    const JobId id = accept(0).id;
    auto seen = read(reader);
    EXPECT_THAT(seen, Contains(id));
    EXPECT_THAT(seen, Not(Contains(late_id)));
    commit();
    EXPECT_THAT(read(reader), Contains(late_id));
    EXPECT_THAT(read(reader), IsEmpty());
}

TEST_P(SharedLedgerContract, ALateCommitBetweenTwoPagesIsNotMissed) {
    auto late = make_job();
    const JobId late_id = late.change.job.id;
    const auto commit = storage_->begin_accept(std::move(late));
    for (int i = 0; i < 4; ++i) {
        accept(0);
    }
    Reader reader;
    bool more = false;
    auto seen = read_page(reader, 2, more);
    ASSERT_TRUE(more);
    commit();
    for (int looks = 0; looks < 2; ++looks) {
        const auto rest = read(reader, 2);
        seen.insert(seen.end(), rest.begin(), rest.end());
    }
    EXPECT_THAT(seen, Contains(late_id));
}

TEST_P(SharedLedgerContract, WhatIsHeldUpDoesNotHoldUpOthers) {
    const auto commit = storage_->begin_accept(make_job());
    std::vector<JobId> accepted;
    for (int i = 0; i < 5; ++i) {
        accepted.push_back(accept(0).id);
    }
    Reader reader;
    EXPECT_EQ(read(reader, 2), accepted);
    accepted.push_back(accept(0).id);
    EXPECT_THAT(read(reader, 2), Contains(accepted.back()));
    commit();
}

TEST_P(SharedLedgerContract, WishesAreHeardInTheirOrderUntilTheyAreDropped) {
    const jobs::Job job = accept(0);
    jobs::Wish cancel;
    cancel.job = job.id;
    await_value(node(0).shared.wish(cancel));
    jobs::Wish drain;
    drain.kind = jobs::Wish::Kind::drain;
    drain.worker = "gpu-1";
    drain.details = {{"seconds", 5}};
    await_value(node(1).shared.wish(drain));
    jobs::Wish elsewhere;
    elsewhere.domain = "elsewhere";
    await_value(node(1).shared.wish(elsewhere));

    auto wishes = await_value(node(1).shared.wishes("main", 10));
    ASSERT_EQ(wishes.size(), 2U);
    EXPECT_EQ(wishes[0].kind, jobs::Wish::Kind::cancel);
    EXPECT_EQ(wishes[0].job, job.id);
    EXPECT_EQ(wishes[1].kind, jobs::Wish::Kind::drain);
    EXPECT_EQ(wishes[1].worker, "gpu-1");
    EXPECT_EQ(wishes[1].details, drain.details);
    EXPECT_FALSE(wishes[1].job);
    EXPECT_EQ(await_value(node(0).shared.wishes("main", 1)).size(), 1U);

    await_value(node(1).shared.drop_wishes({wishes[0].id}));
    await_value(node(1).shared.drop_wishes({wishes[0].id}));
    wishes = await_value(node(0).shared.wishes("main", 10));
    ASSERT_EQ(wishes.size(), 1U);
    EXPECT_EQ(wishes[0].worker, "gpu-1");
    EXPECT_EQ(await_value(node(0).shared.wishes("elsewhere", 10)).size(), 1U);
}

TEST_P(SharedLedgerContract, ThoseAreToldOfWhichThereIsMoreToHear) {
    const jobs::Job still = accept(0);
    const jobs::Job moved = accept(0);
    await_value(node(0).ledger.commit(start(moved)));
    const JobId unknown = make_job().change.job.id;
    EXPECT_THAT(
        await_value(node(1).shared.advanced(
            {{still.id, still.sequence}, {moved.id, moved.sequence}, {unknown, 0}}
        )),
        UnorderedElementsAre(moved.id)
    );
    EXPECT_THAT(await_value(node(1).shared.advanced({})), IsEmpty());
}

}  // namespace
}  // namespace comfyd::ledger::test
