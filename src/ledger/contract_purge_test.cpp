// What retention relies on, for every storage: jobs go whole, in their order, and only those that
// nobody needs any more.
#include <gmock/gmock.h>

#include "jobs/doctor.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::State;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kHash = "blake3:" + std::string(64, 'a');

class PurgeContract : public Contract {
protected:
    jobs::Job complete_with(const jobs::Job& job, std::vector<jobs::Output> outputs) {
        return commit(jobs::complete(job, std::move(outputs), {}, job.sequence + 1, clock_.now()));
    }
    jobs::Output output(std::string hash = kHash, bool is_small = false) {
        jobs::Output made = full_output(clock_.now());
        made.hash = std::move(hash);
        if (is_small) {
            made.bytes = std::make_shared<const std::string>("small");
        }
        return made;
    }
    // To the end of the round.
    int purge(int limit = 100) {
        int count = 0;
        for (bool more = true; more;) {
            const auto purged = await_value(ledger().purge(clock_.now(), limit));
            count += purged.jobs;
            more = purged.more;
        }
        return count;
    }
    bool has(const jobs::Job& job) { return await_value(ledger().find(job.id)).has_value(); }
    std::uint64_t count(State state) {
        return await_value(ledger().counts(std::nullopt)).of(state);
    }
    void pass_time() { clock_.advance(Millis(1'000)); }

    static std::string mentioning(const std::string& id, const std::string& hash) {
        return R"({"1": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", )"
               R"("info": {"id": ")" +
               id + R"(", "hash": ")" + hash + R"("}}}}})";
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, PurgeContract, testing::ValuesIn(backends()), backend_name);

TEST_P(PurgeContract, OnlyJobsThatEndedBeforeGo) {
    const auto old = complete(start(accept(simple_spec())));
    const auto failed = commit(jobs::expire(accept(simple_spec()), 2, clock_.now()));
    const auto waiting = accept(simple_spec());
    const auto running = start(accept(simple_spec()));
    pass_time();
    const auto young = complete(start(accept(simple_spec())));
    EXPECT_EQ(purge(), 2);
    storage_->reopen();
    EXPECT_FALSE(has(old));
    EXPECT_FALSE(has(failed));
    EXPECT_TRUE(has(waiting));
    EXPECT_TRUE(has(running));
    EXPECT_TRUE(has(young));
    EXPECT_EQ(count(State::completed), 1U);
    EXPECT_EQ(count(State::expired), 0U);
    EXPECT_EQ(count(State::queued), 1U);
    EXPECT_EQ(await_value(ledger().list({})).jobs.size(), 3U);
}

TEST_P(PurgeContract, WhatAFailedJobHadFinishedIsThereAndGoesWithIt) {
    const auto running = start(accept(simple_spec()));
    auto failed = jobs::fail_job(running, jobs::Failure{}, running.sequence + 1, clock_.now());
    jobs::keep_finished(*failed, {output(), output("blake3:small", true)}, {{"9", 1}});
    const auto job = commit(failed);
    storage_->reopen();
    const auto stored = await_value(ledger().find(job.id));
    ASSERT_EQ(stored->outputs.size(), 2U);
    EXPECT_EQ(stored->ui_outputs, job.ui_outputs);
    for (const auto& record : job.outputs) {
        EXPECT_TRUE(await_value(catalogue().find(record.asset)));
    }
    EXPECT_TRUE(await_value(catalogue().kept_bytes("blake3:small")));
    // Brought back, it makes others; none is left over when it goes.
    const auto revived = commit(jobs::revive(*stored, stored->sequence + 1, clock_.now()));
    EXPECT_TRUE(await_value(ledger().find(job.id))->outputs.empty());
    const auto ended = complete_with(start(revived), {output()});
    EXPECT_EQ(await_value(ledger().find(job.id))->outputs.size(), 1U);
    pass_time();
    EXPECT_EQ(purge(), 1);
    for (const auto* outputs : {&job.outputs, &ended.outputs}) {
        for (const auto& record : *outputs) {
            EXPECT_FALSE(await_value(catalogue().find(record.asset)));
        }
    }
    EXPECT_FALSE(await_value(catalogue().kept_bytes("blake3:small")));
}

TEST_P(PurgeContract, AJobGoesWithAllThatIsStoredOfIt) {
    auto spec = full_spec();
    spec.webhook.reset();
    spec.reuse_key = "same";
    const auto job = complete_with(start(accept(spec)), {output(), output("blake3:small", true)});
    const auto records = job.outputs;
    pass_time();
    EXPECT_EQ(purge(), 1);
    EXPECT_FALSE(await_value(ledger().find_spec(job.id)));
    EXPECT_THAT(await_value(ledger().events(job.id, 0)), IsEmpty());
    EXPECT_FALSE(await_value(ledger().find_reusable(spec.tenant, "same")));
    EXPECT_FALSE(await_value(ledger().find_key(spec.tenant, spec.idempotency_key)).existing);
    for (const auto& record : records) {
        EXPECT_FALSE(await_value(catalogue().find(record.asset)));
        EXPECT_FALSE(await_value(catalogue().find_by_hash(spec.tenant, record.hash)));
    }
    EXPECT_FALSE(await_value(catalogue().kept_bytes("blake3:small")));
    EXPECT_EQ(
        await_code(ledger().commit(get(jobs::revive(
            commit(jobs::expire(accept(simple_spec()), 2, clock_.now())), 3, clock_.now()
        )))),
        std::nullopt
    ) << "others can be revived";
}

TEST_P(PurgeContract, VariantsAreAssetsOfTheJobAndGoWithIt) {
    jobs::Output made = output();
    made.media = {{"kind", "image"}, {"width", 7}};
    for (const char* kind : {"converted", "thumbnail"}) {
        jobs::Output variant = output("blake3:" + std::string(kind), kind[0] == 't');
        variant.variant = kind;
        made.variants.push_back(std::move(variant));
    }
    made.failed_variants = {json::object{{"variant", "poster"}}};
    const auto job = complete_with(start(accept(simple_spec())), {made});
    storage_->reopen();
    const auto found = await_value(ledger().find(job.id));
    ASSERT_TRUE(found);
    ASSERT_EQ(found->outputs.size(), 1U);
    EXPECT_EQ(found->outputs[0].to_json(), made.to_json());
    for (const jobs::Output* file : jobs::files_of(found->outputs)) {
        const auto record = await_value(catalogue().find(file->asset));
        ASSERT_TRUE(record) << file->name;
        EXPECT_EQ(record->job, job.id);
        EXPECT_EQ(record->tenant, job.tenant);
        EXPECT_EQ(record->hash, file->hash);
    }
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:thumbnail")), "small");
    pass_time();
    EXPECT_EQ(purge(), 1);
    for (const jobs::Output* file : jobs::files_of(found->outputs)) {
        EXPECT_FALSE(await_value(catalogue().find(file->asset)));
    }
    EXPECT_FALSE(await_value(catalogue().kept_bytes("blake3:thumbnail")));
}

TEST_P(PurgeContract, AnIdempotencyKeyIsFreeAgain) {
    auto spec = simple_spec();
    spec.idempotency_key = "key";
    const auto first = complete(start(accept(spec)));
    pass_time();
    purge();
    const auto second = accept(spec);
    EXPECT_NE(first.id, second.id);
    EXPECT_EQ(await_value(ledger().find_key(spec.tenant, "key")).existing->id, second.id);
}

TEST_P(PurgeContract, TheOldestGoFirstAndNoMoreThanAskedFor) {
    std::vector<jobs::Job> made;
    for (int i = 0; i < 5; ++i) {
        made.push_back(complete(start(accept(simple_spec()))));
        pass_time();
    }
    auto step = await_value(ledger().purge(clock_.now(), 2));
    EXPECT_EQ(step.jobs, 2);
    EXPECT_TRUE(step.more);
    EXPECT_FALSE(has(made[1]));
    EXPECT_TRUE(has(made[2]));
    step = await_value(ledger().purge(clock_.now(), 10));
    EXPECT_EQ(step.jobs, 3);
    EXPECT_FALSE(step.more);
}

TEST_P(PurgeContract, AJobWhoseWebhookIsToBeDeliveredStaysAndHoldsUpNobody) {
    auto spec = simple_spec();
    spec.webhook.emplace();
    spec.webhook->url = "https://example.com/";
    const auto told = complete(start(accept(spec)));
    const auto given_up = complete(start(accept(spec)));
    const auto untold = complete(start(accept(spec)));
    const auto silent = complete(start(accept(simple_spec())));
    for (const auto& delivery : due()) {
        if (delivery.job == told.id) {
            await_value(outbox().delivered(delivery, clock_.now()));
        } else if (delivery.job == given_up.id) {
            await_value(outbox().give_up(delivery, clock_.now(), "nobody there"));
        }
    }
    EXPECT_EQ(await_value(outbox().counts()).dead, 1U);
    pass_time();
    EXPECT_EQ(purge(1), 3);
    EXPECT_TRUE(has(untold));
    EXPECT_FALSE(has(silent));
    EXPECT_EQ(await_value(outbox().counts()).dead, 0U);
    EXPECT_EQ(await_value(outbox().counts()).pending, 1U);
    EXPECT_EQ(purge(1), 0);
    await_value(outbox().delivered(due(1).at(0), clock_.now()));
    EXPECT_EQ(purge(1), 1);
    EXPECT_FALSE(has(untold));
}

TEST_P(PurgeContract, AnOutputThatAnotherJobTakesStaysUntilThatHasEnded) {
    const auto by_id = complete_with(start(accept(simple_spec())), {output("blake3:1")});
    const auto by_hash = complete_with(start(accept(simple_spec())), {output()});
    auto spec = simple_spec();
    spec.workflow = mentioning(by_id.outputs[0].asset.to_string(), kHash);
    const auto taker = accept(spec);
    pass_time();
    EXPECT_EQ(purge(), 0);
    EXPECT_EQ(await_code(ledger().discard(by_id.id)), Code::conflict);
    EXPECT_EQ(await_code(catalogue().remove(by_id.outputs[0].asset)), Code::asset_in_use);
    const auto failed = commit(jobs::expire(taker, 2, clock_.now()));
    auto again = commit(jobs::revive(failed, 3, clock_.now()));
    EXPECT_EQ(purge(), 0) << "it may run again";
    complete(start(again));
    EXPECT_EQ(purge(), 2);
    EXPECT_FALSE(has(by_hash));
}

TEST_P(PurgeContract, AnOutputThatANamedWorkflowTakesStaysUntilThatIsGone) {
    const auto job = complete_with(start(accept(simple_spec())), {output()});
    jobs::WorkflowSave save;
    save.of = {"local", "portrait"};
    save.version.workflow = mentioning("", kHash);
    save.version.content_hash = "1";
    await_value(workflows().save_workflow(save));
    save.version.workflow = "{}";
    save.version.content_hash = "2";
    await_value(workflows().save_workflow(save));
    pass_time();
    EXPECT_EQ(purge(), 0);
    await_value(workflows().remove_workflow_version(save.of, 1, std::nullopt));
    EXPECT_EQ(purge(), 1);
    EXPECT_FALSE(has(job));
}

TEST_P(PurgeContract, AnExpiredUploadStaysWhileAJobTakesIt) {
    assets::Asset upload;
    upload.id = AssetId::make(clock_.now());
    upload.tenant = "local";
    upload.hash = kHash;
    upload.content_type = "image/png";
    upload.expires_at = clock_.now();
    await_value(catalogue().add(upload));
    auto spec = simple_spec();
    spec.workflow = mentioning(upload.id.to_string(), "");
    const auto taker = start(accept(spec));
    pass_time();
    EXPECT_THAT(await_value(catalogue().expired(clock_.now(), std::nullopt, 10)), IsEmpty());
    EXPECT_EQ(await_code(catalogue().remove(upload.id)), Code::asset_in_use);
    complete(taker);
    EXPECT_EQ(await_value(catalogue().expired(clock_.now(), std::nullopt, 10)).size(), 1U);
    EXPECT_TRUE(await_value(catalogue().remove(upload.id)));
}

TEST_P(PurgeContract, EqualOutputsOfTwoTenantsGoEachWithItsJob) {
    const auto red = complete_with(start(accept(simple_spec("red"))), {output("blake3:x", true)});
    pass_time();
    const auto blue = complete_with(start(accept(simple_spec("blue"))), {output("blake3:x", true)});
    EXPECT_EQ(purge(), 1);
    EXPECT_FALSE(has(red));
    EXPECT_TRUE(has(blue));
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:x")), "small");
    EXPECT_EQ(await_value(ledger().counts("red")).of(State::completed), 0U);
    EXPECT_EQ(await_value(ledger().counts("blue")).of(State::completed), 1U);
}

TEST_P(PurgeContract, OutputsThatWentAreNotReused) {
    auto spec = simple_spec();
    spec.reuse_key = "same";
    const auto source = complete_with(start(accept(spec)), {output()});
    const auto waiting = accept(spec);
    pass_time();
    const auto answer = get(jobs::complete_from(waiting, source, 2, clock_.now()));
    auto late = make_new(spec, clock_.now());
    late.then = get(jobs::complete_from(late.change.job, source, 2, clock_.now()));
    EXPECT_EQ(purge(), 1);
    EXPECT_EQ(await_code(ledger().commit(answer)), Code::output_unavailable);
    EXPECT_EQ(await_code(ledger().accept(late)), Code::output_unavailable);
    EXPECT_FALSE(has(late.change.job)) << "nothing of it was written";
    EXPECT_EQ(count(State::queued), 1U);
    EXPECT_EQ(count(State::completed), 0U);
}

TEST_P(PurgeContract, OneJobIsDiscardedAtOnce) {
    const auto waiting = accept(simple_spec());
    EXPECT_EQ(await_code(ledger().discard(waiting.id)), Code::conflict);
    const auto job = complete_with(start(waiting), {output()});
    EXPECT_EQ(await_code(ledger().discard(job.id)), std::nullopt);
    EXPECT_FALSE(has(job));
    EXPECT_EQ(await_code(ledger().discard(job.id)), Code::not_found);
    EXPECT_EQ(count(State::completed), 0U);
}

TEST_P(PurgeContract, AnOutputOfAnEndedJobCanBeRemoved) {
    const auto job = complete_with(start(accept(simple_spec())), {output()});
    EXPECT_TRUE(await_value(catalogue().remove(job.outputs[0].asset)));
    EXPECT_FALSE(await_value(catalogue().find(job.outputs[0].asset)));
    EXPECT_TRUE(has(job));
    pass_time();
    EXPECT_EQ(purge(), 1);
}

TEST_P(PurgeContract, AnOutputMayOutliveItsJobOrGoBefore) {
    auto spec = simple_spec();
    spec.dialect_data["keep"] =
        jobs::Keeping{.retention = "archive", .life = std::chrono::hours(24 * 365)}.to_json();
    const auto job = complete_with(start(accept(spec)), {output(), output("blake3:small", true)});
    spec.dialect_data["keep"] =
        jobs::Keeping{.retention = "immediate", .life = Millis(1)}.to_json();
    const auto brief = complete_with(start(accept(spec)), {output("blake3:brief", true)});
    EXPECT_EQ(job.outputs.at(0).expires_at, clock_.now() + std::chrono::hours(24 * 365));
    clock_.advance(Millis(1));
    const auto expired = await_value(catalogue().expired(clock_.now(), std::nullopt, 10));
    ASSERT_EQ(expired.size(), 1U);
    EXPECT_EQ(expired.front().id, brief.outputs.at(0).asset);
    EXPECT_EQ(expired.front().retention, assets::RetentionClass::immediate);
    EXPECT_TRUE(await_value(catalogue().remove(expired.front().id)));
    EXPECT_TRUE(has(brief));
    pass_time();
    EXPECT_EQ(purge(), 2);
    EXPECT_FALSE(has(job));
    for (const auto& kept : job.outputs) {
        const auto asset = await_value(catalogue().find(kept.asset));
        ASSERT_TRUE(asset);
        EXPECT_FALSE(asset->job);
        EXPECT_EQ(asset->expires_at, kept.expires_at);
    }
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:small")), "small");
    const auto discarded = complete_with(start(accept(spec)), {output("blake3:gone", true)});
    EXPECT_EQ(await_code(ledger().discard(discarded.id)), std::nullopt);
    EXPECT_FALSE(await_value(catalogue().find(discarded.outputs.at(0).asset)))
        << "who removes a job removes all of it";
}

}  // namespace
}  // namespace comfyd::ledger::test
