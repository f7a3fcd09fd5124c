// Which finished job answers another, and that a job which was answered is stored as any other.
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

class ReuseContract : public Contract {
protected:
    static jobs::Spec spec_of(const std::string& key, const std::string& tenant = "local") {
        jobs::Spec spec = simple_spec(tenant);
        spec.reuse_key = key;
        return spec;
    }
    jobs::Job run(const jobs::Spec& spec) {
        const auto job = start(accept(spec));
        return commit(
            jobs::complete(job, {full_output(clock_.now())}, {}, job.sequence + 1, clock_.now())
        );
    }
    std::optional<JobId> find(const std::string& key, const std::string& tenant = "local") {
        const auto found = await_value(ledger().find_reusable(tenant, key));
        return found ? std::optional(found->id) : std::nullopt;
    }
};

TEST_P(ReuseContract, TheNewestCompletedOneOfTheTenantIsFound) {
    EXPECT_FALSE(find("k"));
    const auto waiting = accept(spec_of("k"));
    start(accept(spec_of("k")));
    EXPECT_FALSE(find("k"));
    const auto first = run(spec_of("k"));
    EXPECT_EQ(find("k"), first.id);
    clock_.advance(Millis(5));
    const auto second = run(spec_of("k"));
    EXPECT_EQ(find("k"), second.id);
    EXPECT_FALSE(find("k", "another"));
    EXPECT_FALSE(find("l"));
    EXPECT_FALSE(find(""));
    run(simple_spec());
    EXPECT_FALSE(find(""));
    storage_->reopen();
    EXPECT_EQ(find("k"), second.id);
    const auto kept = await_value(ledger().find(waiting.id)).value();
    EXPECT_EQ(kept.reuse_key, "k");
    EXPECT_FALSE(kept.reused_from);
    EXPECT_EQ(await_value(ledger().find_spec(waiting.id))->reuse_key, "k");
}

TEST_P(ReuseContract, AJobIsAcceptedAndCompletedInOneStep) {
    const auto source = run(spec_of("k"));
    auto made = make_new(spec_of("k"), clock_.now());
    made.then = get(jobs::complete_from(made.change.job, source, 2, clock_.now()));
    const JobId id = made.change.job.id;
    const auto asset = made.then->job.outputs.at(0).asset;
    EXPECT_TRUE(await_value(ledger().accept(made)).created);
    storage_->reopen();
    const auto stored = await_value(ledger().find(id)).value();
    EXPECT_EQ(describe(stored), describe(made.then->job));
    EXPECT_EQ(stored.reused_from, source.id);
    const auto events = await_value(ledger().events(id, 0));
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].type, jobs::EventType::queued);
    EXPECT_EQ(events[1].type, jobs::EventType::completed);
    if (GetParam().is_whole) {
        const auto record = await_value(catalogue().find(asset)).value();
        EXPECT_EQ(record.job, id);
        EXPECT_EQ(record.hash, source.outputs.at(0).hash);
    }
    // It ran nothing itself, so those who come next are answered by the one that did.
    EXPECT_EQ(find("k"), source.id);
    const auto counts = await_value(ledger().counts("local"));
    EXPECT_EQ(counts.of(jobs::State::completed), 2U);
    EXPECT_EQ(counts.of(jobs::State::queued), 0U);
}

TEST_P(ReuseContract, AKeyStillLeadsToTheFirstJob) {
    auto spec = spec_of("k");
    const auto source = run(spec);
    spec.idempotency_key = "once";
    const auto first = accept(spec);
    auto again = make_new(spec, clock_.now());
    again.then = get(jobs::complete_from(again.change.job, source, 2, clock_.now()));
    const auto accepted = await_value(ledger().accept(std::move(again)));
    EXPECT_FALSE(accepted.created);
    EXPECT_EQ(accepted.existing.value().id, first.id);
}

INSTANTIATE_TEST_SUITE_P(Ledger, ReuseContract, testing::ValuesIn(job_backends()), backend_name);

}  // namespace
}  // namespace comfyd::ledger::test
