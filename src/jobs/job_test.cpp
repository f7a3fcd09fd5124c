#include "jobs/job.hpp"

#include <gtest/gtest.h>

#include <random>

#include "jobs/doctor.hpp"
#include "jobs/give_back.hpp"

namespace comfyd::jobs {
namespace {

const Time kNow(Millis(1'763'000'000'000));

Job new_job(int max_attempts = 3) {
    Spec spec;
    spec.max_attempts = max_attempts;
    return make_job(JobId::make(kNow), spec, kNow).job;
}

Failure lost() {
    return Failure::from(Error(Code::worker_lost, "gone"));
}

TEST(Job, OrdinaryLife) {
    Job job = new_job();
    EXPECT_EQ(job.state, State::queued);
    EXPECT_EQ(job.sequence, 1U);
    job = start(job, "w1", 2, kNow + Millis(10))->job;
    EXPECT_EQ(job.attempt, 1);
    const auto done = complete(job, {}, {}, 9, kNow + Millis(30));
    ASSERT_TRUE(done);
    EXPECT_EQ(done->job.state, State::completed);
    EXPECT_EQ(done->event.type, EventType::completed);
    EXPECT_EQ(done->job.queue_time(), Millis(10));
    EXPECT_EQ(done->job.execution_time(), Millis(20));
}

TEST(Job, RetriesEndAtTheLastAttempt) {
    Job job = new_job(2);
    job = start(job, "w1", 2, kNow)->job;
    job = retry_later(job, lost(), kNow + Millis(1000), 3, kNow)->job;
    EXPECT_EQ(job.state, State::retry_waiting);
    job = requeue(job, 4, kNow)->job;
    job = start(job, "w2", 5, kNow)->job;
    EXPECT_EQ(job.attempt, 2);
    EXPECT_FALSE(retry_later(job, lost(), kNow, 6, kNow));
    EXPECT_EQ(fail_job(job, lost(), 6, kNow)->job.state, State::failed);
}

TEST(Job, AnAttemptThatItsWorkerGaveBackIsNotCounted) {
    Spec spec;
    spec.max_attempts = 1;
    Job job = make_job(JobId::make(kNow), spec, kNow).job;
    job = start(job, "a", 2, kNow)->job;
    const auto back = give_back(job, lost(), 3, kNow);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->job.state, State::retry_waiting);
    EXPECT_EQ(back->job.not_before, kNow) << "it waits for nothing";
    EXPECT_EQ(back->job.max_attempts - back->job.attempt, 1);
    job = requeue(back->job, 4, kNow)->job;
    job = start(job, "b", 5, kNow)->job;
    EXPECT_EQ(job.attempt, 2) << "which names another prompt";
    EXPECT_FALSE(retry_later(job, lost(), kNow, 6, kNow));
}

TEST(Job, OneThatFailedKeepsWhatItHadFinishedUntilItIsBroughtBack) {
    Job job = start(new_job(), "w", 2, kNow)->job;
    job.dialect_data["keep"] = json::object{{"life_ms", 60'000}};
    auto failed = fail_job(job, lost(), 3, kNow);
    Output output;
    output.asset = AssetId::make(kNow);
    output.node_id = "9";
    keep_finished(*failed, {output}, {{"9", json::object()}});
    ASSERT_EQ(failed->job.outputs.size(), 1U);
    EXPECT_EQ(failed->job.outputs[0].expires_at, kNow + Millis(60'000)) << "as was asked for";
    EXPECT_EQ(failed->event.data.at("outputs").as_array().size(), 1U);
    const auto revived = revive(failed->job, 4, kNow);
    EXPECT_TRUE(revived->job.outputs.empty());
    EXPECT_TRUE(revived->job.ui_outputs.empty());
    auto without = fail_job(job, lost(), 3, kNow);
    keep_finished(*without, {}, {});
    EXPECT_FALSE(without->event.data.contains("outputs"));
}

TEST(Job, CancelIsImmediateUnlessRunning) {
    EXPECT_EQ(request_cancel(new_job(), 2, kNow)->job.state, State::cancelled);
    const Job running = start(new_job(), "w", 2, kNow)->job;
    const Job cancelling = request_cancel(running, 3, kNow)->job;
    EXPECT_EQ(cancelling.state, State::running);
    EXPECT_TRUE(cancelling.cancel_requested);
    EXPECT_FALSE(request_cancel(cancelling, 4, kNow));
    EXPECT_EQ(confirm_cancel(cancelling, 4, kNow)->job.state, State::cancelled);
    EXPECT_FALSE(confirm_cancel(running, 4, kNow));
}

TEST(Job, PromptIdsAreCanonicalUuidsAndDifferByAttempt) {
    const JobId id = JobId::make(kNow);
    EXPECT_EQ(prompt_id(id, 1), prompt_id(id, 1));
    EXPECT_NE(prompt_id(id, 1), prompt_id(id, 2));
}

TEST(Job, SequenceBlocksLeaveRoomForForgottenEvents) {
    EXPECT_GT(next_sequence_block(2), 2U + 1000);
    EXPECT_GT(next_sequence_block(next_sequence_block(2)), next_sequence_block(2));
}

TEST(Job, FailureAndOutputSurviveJson) {
    Error error(Code::node_execution_error, "boom", {{"node_id", "3"}, {"node_type", "KSampler"}});
    error.details["traceback"] = json::array{"a\n", "b\n"};
    const Failure failure = Failure::from_json(Failure::from(error).to_json());
    EXPECT_EQ(failure.code, Code::node_execution_error);
    EXPECT_EQ(failure.node_id, "3");
    EXPECT_EQ(failure.class_type, "KSampler");
    EXPECT_EQ(failure.traceback, "a\nb\n");
    Output output;
    output.asset = AssetId::make(kNow);
    output.name = "x.png";
    output.size_bytes = 7;
    EXPECT_EQ(Output::from_json(output.to_json()).asset, output.asset);
    EXPECT_EQ(Output::from_json(output.to_json()).size_bytes, 7U);
    Output variant = output;
    variant.variant = "thumbnail";
    output.media = {{"kind", "image"}};
    output.variants = {variant, variant};
    output.failed_variants = {json::object{{"variant", "poster"}}};
    EXPECT_EQ(Output::from_json(output.to_json()).to_json(), output.to_json());
    EXPECT_EQ(files_of({output, variant}).size(), 4U);
    // Variants have no variants: however deep a text goes, it is not followed.
    json::object deep = variant.to_json();
    for (int i = 0; i < 50; ++i) {
        json::object outer = variant.to_json();
        outer["variants"] = json::array{deep};
        deep = std::move(outer);
    }
    deep.erase("variant");
    EXPECT_EQ(Output::from_json(deep).variants.size(), 1U);
    EXPECT_TRUE(Output::from_json(deep).variants[0].variants.empty());
}

TEST(Job, OneThatIsAnsweredHasVariantsOfItsOwn) {
    Spec spec;
    Job source = make_job(JobId::make(kNow), spec, kNow).job;
    source.state = State::completed;
    Output output;
    output.asset = AssetId::make(kNow);
    output.variants.emplace_back();
    output.variants[0].asset = AssetId::make(kNow);
    source.outputs = {output};
    const Job job = make_job(JobId::make(kNow), spec, kNow).job;
    const auto change = complete_from(job, source, 2, kNow);
    ASSERT_TRUE(change);
    EXPECT_NE(change->job.outputs[0].asset, output.asset);
    EXPECT_NE(change->job.outputs[0].variants[0].asset, output.variants[0].asset);
    EXPECT_NE(change->job.outputs[0].variants[0].asset, change->job.outputs[0].asset);
}

TEST(Webhook, DefaultsToTerminalEvents) {
    Webhook webhook;
    EXPECT_TRUE(webhook.wants("execution.completed"));
    EXPECT_FALSE(webhook.wants("execution.started"));
    webhook.events = {"execution.started"};
    EXPECT_TRUE(webhook.wants("execution.started"));
    EXPECT_FALSE(webhook.wants("execution.completed"));
}

// Random operations on random jobs: whatever is tried in whatever order, a job never leaves its
// rules.
class StateMachineProperty : public testing::TestWithParam<unsigned> {};

TEST_P(StateMachineProperty, HoldsForRandomOperationSequences) {
    std::mt19937 random(GetParam());
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int run = 0; run < 200; ++run) {
        Job job = new_job(1 + pick(4));
        std::uint64_t sequence = job.sequence;
        Time now = kNow;
        int ends = 0;
        for (int step = 0; step < 40; ++step) {
            now += Millis(pick(1000));
            sequence += 1 + static_cast<std::uint64_t>(pick(5));
            Result<Change> change = fail(Code::internal, "");
            const int operation = pick(9);
            switch (operation) {
                case 0:
                    change = start(job, "w", sequence, now);
                    break;
                case 1:
                    change = complete(job, {}, {}, sequence, now);
                    break;
                case 2:
                    change = fail_job(job, lost(), sequence, now);
                    break;
                case 3:
                    change = retry_later(job, lost(), now, sequence, now);
                    break;
                case 4:
                    change = requeue(job, sequence, now);
                    break;
                case 5:
                    change = request_cancel(job, sequence, now);
                    break;
                case 6:
                    change = confirm_cancel(job, sequence, now);
                    break;
                case 7:
                    change = expire(job, sequence, now);
                    break;
                default:
                    change = pick(10) == 0 ? revive(job, sequence, now) : fail(Code::conflict, "");
                    break;
            }
            if (!change) {
                EXPECT_EQ(change.error().code, Code::conflict);
                continue;
            }
            const Job& next = change->job;
            EXPECT_EQ(next.revision, job.revision + 1);
            EXPECT_GT(next.sequence, job.sequence);
            EXPECT_EQ(change->event.sequence, next.sequence);
            EXPECT_EQ(change->event.state, next.state);
            EXPECT_LE(next.attempt, next.max_attempts);
            EXPECT_EQ(next.finished_at.has_value(), is_terminal(next.state));
            if (is_terminal(job.state)) {
                EXPECT_EQ(next.state, State::queued) << "only a revival leaves a terminal state";
                --ends;
            }
            if (is_terminal(next.state)) {
                ++ends;
                EXPECT_FALSE(next.cancel_requested);
            }
            if (next.state == State::running) {
                EXPECT_GE(next.attempt, 1);
                EXPECT_FALSE(next.worker.empty());
            }
            if (next.cancel_requested) {
                EXPECT_EQ(next.state, State::running);
            }
            EXPECT_LE(ends, 1) << "a job ends once";
            job = next;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StateMachineProperty, testing::Range(1U, 11U));

}  // namespace
}  // namespace comfyd::jobs
