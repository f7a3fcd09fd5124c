// What the jobs room relies on, for every storage.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::State;
using testing::ElementsAre;
using testing::IsEmpty;

class JobContract : public Contract {
protected:
    jobs::Job find(const JobId& id) { return await_value(ledger().find(id)).value(); }
    std::vector<std::uint64_t> sequences(const JobId& id, std::uint64_t after) {
        std::vector<std::uint64_t> found;
        for (const auto& event : await_value(ledger().events(id, after))) {
            found.push_back(event.sequence);
        }
        return found;
    }
    std::vector<JobId> list_all(jobs::ListQuery query) {
        std::vector<JobId> found;
        while (true) {
            const auto page = await_value(ledger().list(query));
            for (const auto& job : page.jobs) {
                found.push_back(job.id);
            }
            if (!page.next_cursor) {
                return found;
            }
            query.cursor = page.next_cursor;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, JobContract, testing::ValuesIn(job_backends()), backend_name);

TEST_P(JobContract, EveryFieldOfAnAcceptedJobComesBack) {
    const auto spec = full_spec();
    const auto job = accept(spec);
    auto stored = spec;
    stored.secret_extra_data.clear();
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(describe(find(job.id)), describe(job));
        EXPECT_EQ(describe(await_value(ledger().find_spec(job.id)).value()), describe(stored));
        storage_->reopen();
    }
}

TEST_P(JobContract, EveryFieldOfAChangedJobComesBack) {
    auto job = start(accept(full_spec()));
    clock_.advance(Millis(5));
    jobs::Failure failure;
    failure.code = Code::out_of_memory;
    failure.message = "no VRAM";
    failure.node_id = "3";
    failure.class_type = "KSampler";
    failure.traceback = "line 1\nline 2";
    failure.details = {{"free", 12}};
    job = commit(jobs::retry_later(job, failure, clock_.now() + Millis(1'000), 7, clock_.now()));
    EXPECT_EQ(describe(find(job.id)), describe(job));
    job = commit(jobs::requeue(job, 8, clock_.now()));
    job = start(job, jobs::BatchPlace{PromptId::make(clock_.now()), 3});
    EXPECT_FALSE(find(job.id).failure);
    EXPECT_EQ(describe(find(job.id)), describe(job));
    const json::object ui{
        {"9", json::object{{"images", json::array{json::object{{"filename", "a"}}}}}}
    };
    job = commit(jobs::complete(job, {full_output(clock_.now())}, ui, 20, clock_.now()));
    EXPECT_EQ(describe(find(job.id)), describe(job));
    storage_->reopen();
    EXPECT_EQ(describe(find(job.id)), describe(job));
}

TEST_P(JobContract, CancelRequestAndReviveComeBack) {
    auto job = start(accept(simple_spec()));
    job = commit(jobs::request_cancel(job, 3, clock_.now()));
    EXPECT_TRUE(find(job.id).cancel_requested);
    job = commit(jobs::confirm_cancel(job, 4, clock_.now()));
    EXPECT_EQ(find(job.id).state, State::cancelled);
    job = commit(jobs::revive(job, 5, clock_.now()));
    EXPECT_EQ(describe(find(job.id)), describe(job));
}

TEST_P(JobContract, UnknownIdsAreAbsentNotErrors) {
    const auto id = JobId::make(clock_.now());
    EXPECT_FALSE(await_value(ledger().find(id)));
    EXPECT_FALSE(await_value(ledger().find_spec(id)));
    EXPECT_THAT(await_value(ledger().events(id, 0)), IsEmpty());
    EXPECT_FALSE(await_value(ledger().webhook_status(id)).any);
    auto job = make_new(simple_spec(), clock_.now()).change.job;
    EXPECT_EQ(
        await_code(ledger().commit(get(jobs::start(job, "w", 2, clock_.now())))), Code::not_found
    );
}

TEST_P(JobContract, TheSameIdTwiceIsAConflictAndChangesNothing) {
    auto first = make_new(simple_spec(), clock_.now());
    auto second = first;
    second.spec.workflow = "{}";
    await_value(ledger().accept(first));
    EXPECT_EQ(await_code(ledger().accept(second)), Code::conflict);
    EXPECT_EQ(await_value(ledger().find_spec(first.change.job.id))->workflow, first.spec.workflow);
    EXPECT_EQ(await_value(ledger().counts(std::nullopt)).of(State::queued), 1U);
}

TEST_P(JobContract, AnIdempotencyKeyLeadsToTheFirstJob) {
    auto spec = simple_spec();
    spec.idempotency_key = "k";
    spec.request_hash = "h1";
    const auto first = accept(spec);
    spec.request_hash = "h2";
    for (int round = 0; round < 2; ++round) {
        const auto again = await_value(ledger().accept(make_new(spec, clock_.now())));
        EXPECT_FALSE(again.created);
        EXPECT_EQ(again.existing.value().id, first.id);
        EXPECT_EQ(again.existing_request_hash, "h1");
        storage_->reopen();
    }
    EXPECT_EQ(await_value(ledger().counts(std::nullopt)).of(State::queued), 1U);
    const auto held = await_value(ledger().find_key(spec.tenant, "k"));
    EXPECT_EQ(held.existing.value().id, first.id);
    EXPECT_EQ(held.existing_request_hash, "h1");
    spec.tenant = "another";
    EXPECT_FALSE(await_value(ledger().find_key(spec.tenant, "k")).existing);
    accept(spec);
}

TEST_P(JobContract, AnIdempotencyKeyIsFreeAgainAfterADay) {
    auto spec = simple_spec();
    spec.idempotency_key = "k";
    accept(spec);
    clock_.advance(std::chrono::hours(24) - Millis(1));
    EXPECT_FALSE(await_value(ledger().accept(make_new(spec, clock_.now()))).created);
    EXPECT_TRUE(await_value(ledger().find_key(spec.tenant, "k")).existing);
    clock_.advance(Millis(1));
    EXPECT_FALSE(await_value(ledger().find_key(spec.tenant, "k")).existing);
    const auto second = accept(spec);
    const auto third = await_value(ledger().accept(make_new(spec, clock_.now())));
    EXPECT_EQ(third.existing.value().id, second.id);
}

Task<> accept_into(
    jobs::Ledger& ledger, jobs::NewJob job, std::vector<Result<jobs::Accepted>>& outcomes
) {
    auto outcome = co_await ledger.accept(std::move(job));
    outcomes.push_back(std::move(outcome));
}

TEST_P(JobContract, EqualKeysAtTheSameMomentMakeOneJob) {
    std::vector<Result<jobs::Accepted>> outcomes;
    auto spec = simple_spec();
    spec.idempotency_key = "k";
    for (int i = 0; i < 50; ++i) {
        boost::asio::co_spawn(
            io_,
            accept_into(ledger(), make_new(spec, clock_.now()), outcomes),
            [](std::exception_ptr) {}
        );
    }
    io_.run();
    int created = 0;
    for (const auto& outcome : outcomes) {
        created += get(outcome).created ? 1 : 0;
    }
    EXPECT_EQ(outcomes.size(), 50U);
    EXPECT_EQ(created, 1);
    EXPECT_EQ(await_value(ledger().counts(std::nullopt)).of(State::queued), 1U);
}

Task<> commit_into(jobs::Ledger& ledger, jobs::Change change, std::vector<Result<>>& outcomes) {
    auto outcome = co_await ledger.commit(std::move(change));
    outcomes.push_back(std::move(outcome));
}

TEST_P(JobContract, OneOfTwoChangesAtTheSameMomentWinsAndOthersAreNotDisturbed) {
    std::vector<Result<>> rivals;
    std::vector<Result<>> others;
    const auto job = accept(simple_spec());
    for (int i = 0; i < 10; ++i) {
        const auto other = accept(simple_spec());
        auto change = get(jobs::start(job, "worker-" + std::to_string(i), 2, clock_.now()));
        auto undisturbed = get(jobs::start(other, "worker", 2, clock_.now()));
        boost::asio::co_spawn(io_, commit_into(ledger(), change, rivals), [](std::exception_ptr) {
        });
        boost::asio::co_spawn(
            io_, commit_into(ledger(), undisturbed, others), [](std::exception_ptr) {}
        );
    }
    io_.run();
    int won = 0;
    for (const auto& outcome : rivals) {
        won += outcome ? 1 : 0;
        EXPECT_TRUE(outcome || outcome.error().code == Code::conflict);
    }
    EXPECT_EQ(won, 1);
    for (const auto& outcome : others) {
        EXPECT_TRUE(outcome);
    }
    EXPECT_THAT(sequences(job.id, 0), ElementsAre(1U, 2U));
    EXPECT_EQ(await_value(ledger().counts(std::nullopt)).of(State::running), 11U);
}

TEST_P(JobContract, AStaleChangeWritesNothing) {
    auto spec = full_spec();
    const auto job = accept(spec);
    const auto running = start(job);
    EXPECT_EQ(
        await_code(ledger().commit(get(jobs::request_cancel(job, 5, clock_.now())))), Code::conflict
    );
    EXPECT_EQ(describe(find(job.id)), describe(running));
    EXPECT_THAT(sequences(job.id, 0), ElementsAre(1U, 2U));
    if (GetParam().is_whole) {
        EXPECT_EQ(await_value(outbox().counts()).pending, 1U);
    }
}

TEST_P(JobContract, AnEndedJobHasAStampOfItsRevision) {
    auto job = start(accept(simple_spec("acme")));
    EXPECT_FALSE(await_value(ledger().stamp(job.id)));
    EXPECT_FALSE(await_value(ledger().stamp(JobId::make(clock_.now()))));
    job = commit(jobs::fail_job(job, jobs::Failure{}, job.sequence + 1, clock_.now()));
    const auto stamp = await_value(ledger().stamp(job.id));
    ASSERT_TRUE(stamp);
    EXPECT_EQ(stamp->tenant, "acme");
    EXPECT_EQ(stamp->revision, job.revision);
    EXPECT_FALSE(stamp->webhook_delivered);
    job = commit(jobs::revive(job, job.sequence + 1, clock_.now()));
    EXPECT_FALSE(await_value(ledger().stamp(job.id)));
    job = complete(start(job));
    EXPECT_GT(await_value(ledger().stamp(job.id))->revision, stamp->revision);
    await_value(ledger().discard(job.id));
    EXPECT_FALSE(await_value(ledger().stamp(job.id)));
}

TEST_P(JobContract, EventsComeInOrderFromWhereOneAsks) {
    auto made = make_new(simple_spec(), clock_.now());
    await_value(ledger().accept(made));
    clock_.advance(Millis(10));
    auto started = get(jobs::start(made.change.job, "w", 5, clock_.now()));
    await_value(ledger().commit(started));
    clock_.advance(Millis(10));
    const auto sequence = jobs::next_sequence_block(5);
    auto completed =
        get(jobs::complete(started.job, {full_output(clock_.now())}, {}, sequence, clock_.now()));
    await_value(ledger().commit(completed));

    const auto events = await_value(ledger().events(made.change.job.id, 0));
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(describe(events[0]), describe(made.change.event));
    EXPECT_EQ(describe(events[1]), describe(started.event));
    EXPECT_EQ(describe(events[2]), describe(completed.event));
    EXPECT_THAT(sequences(made.change.job.id, 1), ElementsAre(5U, sequence));
    EXPECT_THAT(sequences(made.change.job.id, 5), ElementsAre(sequence));
    EXPECT_THAT(sequences(made.change.job.id, sequence), IsEmpty());
}

TEST_P(JobContract, CountsFollowEveryChange) {
    const auto one = accept(simple_spec("a"));
    accept(simple_spec("a"));
    accept(simple_spec("b"));
    complete(start(one));
    for (int round = 0; round < 2; ++round) {
        const auto all = await_value(ledger().counts(std::nullopt));
        EXPECT_EQ(all.of(State::queued), 2U);
        EXPECT_EQ(all.of(State::running), 0U);
        EXPECT_EQ(all.of(State::completed), 1U);
        const auto of_a = await_value(ledger().counts("a"));
        EXPECT_EQ(of_a.of(State::queued), 1U);
        EXPECT_EQ(of_a.of(State::completed), 1U);
        EXPECT_EQ(await_value(ledger().counts("nobody")).of(State::queued), 0U);
        storage_->reopen();
    }
}

TEST_P(JobContract, ListsNewestFirstInPagesWithFilters) {
    std::vector<jobs::Job> made;
    for (int i = 0; i < 30; ++i) {
        auto spec = simple_spec(i % 2 == 0 ? "even" : "odd");
        spec.workflow_id = i % 3 == 0 ? "third" : "";
        spec.dialect = i % 5 == 0 ? "tasks" : "comfy-v2";
        made.push_back(accept(spec));
        if (i % 4 == 0) {
            made.back() = start(made.back());
        }
        clock_.advance(Millis(1'000));
    }
    const auto expect = [&](const auto& set, const auto& wanted) {
        std::vector<JobId> ids;
        for (auto job = made.rbegin(); job != made.rend(); ++job) {
            if (wanted(*job)) {
                ids.push_back(job->id);
            }
        }
        for (const int limit : {1, 4, 50, 1'000'000}) {
            jobs::ListQuery query;
            set(query);
            query.limit = limit;
            EXPECT_EQ(list_all(query), ids) << "limit " << limit;
        }
    };
    using Query = jobs::ListQuery;
    using Job = jobs::Job;
    expect([](Query&) {}, [](const Job&) { return true; });
    expect(
        [](Query& query) { query.tenant = "even"; },
        [](const Job& job) { return job.tenant == "even"; }
    );
    expect([](Query& query) { query.tenant = "nobody"; }, [](const Job&) { return false; });
    expect(
        [](Query& query) { query.states = {State::running}; },
        [](const Job& job) { return job.state == State::running; }
    );
    expect(
        [](Query& query) {
            query.tenant = "even";
            query.states = {State::queued, State::failed};
        },
        [](const Job& job) { return job.tenant == "even" && job.state == State::queued; }
    );
    expect(
        [](Query& query) {
            query.workflow_id = "third";
            query.dialect = "tasks";
        },
        [](const Job& job) { return job.workflow_id == "third" && job.dialect == "tasks"; }
    );
    const Time after = made[10].created_at;
    const Time before = made[20].created_at;
    expect(
        [&](Query& query) {
            query.tenant = "odd";
            query.created_after = after;
            query.created_before = before;
        },
        [&](const Job& job) {
            return job.tenant == "odd" && job.created_at > after && job.created_at < before;
        }
    );
}

TEST_P(JobContract, ListingByTimeFindsJobsWhoseIdRanAheadOfTheClock) {
    auto job = make_new(simple_spec(), clock_.now() + std::chrono::hours(1));
    job.change.job.created_at = clock_.now();
    await_value(ledger().accept(job));
    jobs::ListQuery query;
    query.created_before = clock_.now() + Millis(1);
    EXPECT_EQ(list_all(query).size(), 1U);
}

TEST_P(JobContract, ListedJobsAreWhole) {
    const auto job = complete(start(accept(full_spec())));
    const auto page = await_value(ledger().list({}));
    ASSERT_EQ(page.jobs.size(), 1U);
    EXPECT_FALSE(page.next_cursor);
    EXPECT_EQ(describe(page.jobs[0]), describe(job));
}

TEST_P(JobContract, UnfinishedJobsComeOldestFirstInPages) {
    std::vector<JobId> open;
    for (int i = 0; i < 25; ++i) {
        auto spec = simple_spec();
        spec.requirement = Requirement::of({{"Class" + std::to_string(i)}});
        if (i % 2 == 0) {
            auto profile = std::make_shared<scheduler::Profile>();
            profile->requirement = spec.requirement;
            profile->models = {{"checkpoint/a.safetensors", 4'000'000'000}};
            profile->shape = "shape" + std::to_string(i);
            profile->vram_bytes = 6'000'000'000;
            spec.profile = std::move(profile);
        }
        const auto job = accept(spec);
        if (i % 5 == 0) {
            complete(start(job));
            continue;
        }
        if (i % 5 == 1) {
            start(job);
        }
        open.push_back(job.id);
    }
    std::vector<JobId> found;
    std::optional<JobId> after;
    while (true) {
        const auto page = await_value(ledger().unfinished(after, 7));
        if (page.empty()) {
            break;
        }
        for (const auto& entry : page) {
            found.push_back(entry.job.id);
            const auto spec = await_value(ledger().find_spec(entry.job.id));
            EXPECT_EQ(entry.requirement, spec->requirement);
            ASSERT_EQ(entry.profile == nullptr, spec->profile == nullptr);
            if (entry.profile) {
                EXPECT_EQ(entry.profile->requirement, spec->requirement);
                EXPECT_EQ("Class" + entry.profile->shape.substr(5), spec->requirement.encoded());
                EXPECT_EQ(entry.profile->models, spec->profile->models);
                EXPECT_EQ(entry.profile->models[0].bytes, 4'000'000'000U);
                EXPECT_EQ(spec->profile->vram_bytes, 6'000'000'000U);
            }
        }
        after = page.back().job.id;
    }
    EXPECT_EQ(found, open);
}

}  // namespace
}  // namespace comfyd::ledger::test
