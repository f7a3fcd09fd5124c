#include "jobs/reuse.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

const Time kNow(Millis(1'763'000'000'000));

Job make(const std::string& key, const std::string& tenant = "t", int age = 0) {
    Spec spec;
    spec.tenant = tenant;
    spec.reuse_key = key;
    return make_job(JobId::make(kNow + Millis(age)), spec, kNow).job;
}

scheduler::JobKeys keys_of(int priority, bool batch = false) {
    scheduler::JobKeys keys;
    keys.priority = priority;
    keys.batch = batch;
    return keys;
}

Job completed(const Job& job) {
    Output output;
    output.asset = AssetId::make(kNow);
    output.node_id = "9";
    output.hash = "blake3:1";
    return complete(start(job, "w", 2, kNow)->job, {output}, {{"9", 1}}, 3, kNow)->job;
}

TEST(Reuse, AJobIsCompletedWithTheOutputsOfAnother) {
    const Job source = completed(make("k"));
    const Job job = make("k");
    const auto done = complete_from(job, source, 2, kNow + Millis(5));
    ASSERT_TRUE(done);
    EXPECT_EQ(done->job.state, State::completed);
    EXPECT_EQ(done->job.reused_from, source.id);
    EXPECT_EQ(done->job.attempt, 0);
    EXPECT_FALSE(done->job.started_at);
    EXPECT_EQ(done->job.usage, Usage{});
    EXPECT_FALSE(done->used);
    EXPECT_EQ(done->job.ui_outputs, source.ui_outputs);
    ASSERT_EQ(done->job.outputs.size(), 1U);
    EXPECT_EQ(done->job.outputs[0].hash, "blake3:1");
    EXPECT_NE(done->job.outputs[0].asset, source.outputs[0].asset);
    EXPECT_EQ(done->event.data.at("outputs_reused"), json::value(true));
    const auto next = complete_from(make("k"), done->job, 2, kNow);
    EXPECT_EQ(next->job.reused_from, source.id) << "who ran it, not who passed it on";

    EXPECT_FALSE(complete_from(start(job, "w", 2, kNow)->job, source, 3, kNow));
    EXPECT_FALSE(complete_from(source, source, 9, kNow));
    EXPECT_FALSE(complete_from(job, make("k"), 2, kNow));
}

TEST(Reuse, ARunWithoutOutputsAnswersNobody) {
    const Job running = start(make("k"), "w", 2, kNow)->job;
    EXPECT_FALSE(can_answer(running));
    EXPECT_FALSE(can_answer(complete(running, {}, {}, 3, kNow)->job));
    EXPECT_TRUE(can_answer(complete(running, {}, {{"9", 1}}, 3, kNow)->job));
}

TEST(Coalescing, TheFirstLeadsAndTheOthersFollow) {
    Coalescing flight;
    const Job first = make("k", "t", 0);
    const Job second = make("k", "t", 1);
    EXPECT_FALSE(flight.leader_for(first));
    flight.lead(first);
    flight.lead(first);
    EXPECT_EQ(flight.leader_for(second), first.id);
    EXPECT_FALSE(flight.leader_for(make("k", "other")));
    EXPECT_FALSE(flight.leader_for(make("l")));
    flight.follow(second, keys_of(3));
    EXPECT_EQ(flight.followed_by(second.id), first.id);
    EXPECT_FALSE(flight.followed_by(first.id));
    const auto freed = flight.end(first.id);
    ASSERT_EQ(freed.size(), 1U);
    EXPECT_EQ(freed[0].job, second.id);
    EXPECT_EQ(freed[0].keys.priority, 3);
    EXPECT_EQ(flight.followers(), 0U);
    EXPECT_FALSE(flight.leader_for(second));
    EXPECT_TRUE(flight.end(first.id).empty());
}

TEST(Coalescing, TheMostUrgentTakesOver) {
    Coalescing flight;
    const Job first = make("k", "t", 0);
    const Job second = make("k", "t", 1);
    const Job third = make("k", "t", 2);
    const Job fourth = make("k", "t", 3);
    flight.lead(first);
    flight.follow(second, keys_of(9, true));
    flight.follow(third, keys_of(5));
    flight.follow(fourth, keys_of(5));
    const auto next = flight.pass_on(first.id);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->job, third.id);
    EXPECT_EQ(flight.leader_for(first), third.id);
    EXPECT_EQ(flight.followers(), 2U);
    EXPECT_FALSE(flight.pass_on(first.id)) << "it leads no more";
    EXPECT_EQ(flight.pass_on(third.id)->job, fourth.id);
    EXPECT_EQ(flight.drop_follower(second.id)->priority, 9);
    EXPECT_FALSE(flight.drop_follower(second.id));
    EXPECT_FALSE(flight.pass_on(fourth.id));
    EXPECT_FALSE(flight.leader_for(first));
}

TEST(Coalescing, WhoIsOvertakenFollows) {
    Coalescing flight;
    const Job first = make("k", "t", 0);
    const Job second = make("k", "t", 1);
    flight.lead(first);
    flight.take_lead(second, keys_of(2));
    EXPECT_EQ(flight.leader_for(first), second.id);
    EXPECT_EQ(flight.followed_by(first.id), second.id);
    EXPECT_TRUE(flight.end(first.id).empty());
    EXPECT_EQ(flight.end(second.id).at(0).job, first.id);
}

}  // namespace
}  // namespace comfyd::jobs
