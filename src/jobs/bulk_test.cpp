#include "jobs/bulk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

const Time kNow = from_unix_ms(1'763'430'000'000);

BulkItem item(int index, ItemState state = ItemState::waiting) {
    BulkItem made;
    made.index = index;
    made.params = "{}";
    made.state = state;
    return made;
}

Bulk loading(int items) {
    Bulk bulk;
    bulk.id = BulkId::make(kNow);
    std::vector<BulkItem> all;
    for (int i = 0; i < items; ++i) {
        all.push_back(item(i));
    }
    return items > 0 ? add_items(bulk, std::move(all))->bulk : bulk;
}
Bulk running(int items) {
    return finish_loading(loading(items), kNow)->bulk;
}
Bulk moved(const Bulk& bulk, int index, ItemState from, ItemState to) {
    return move_items(bulk, {{from, item(index, to)}}, kNow).bulk;
}

TEST(Bulk, EveryChangeCountsOnce) {
    Bulk bulk = loading(3);
    EXPECT_EQ(bulk.revision, 1);
    EXPECT_EQ(bulk.counts.total, 3);
    EXPECT_EQ(bulk.counts.waiting(), 3);
    bulk = finish_loading(bulk, kNow)->bulk;
    EXPECT_EQ(bulk.revision, 2);
    EXPECT_EQ(bulk.state, BulkState::running);
    bulk = moved(bulk, 0, ItemState::waiting, ItemState::running);
    EXPECT_EQ(bulk.counts.running, 1);
    EXPECT_EQ(bulk.counts.waiting(), 2);
    bulk = moved(bulk, 0, ItemState::running, ItemState::completed);
    EXPECT_EQ(bulk.counts.running, 0);
    EXPECT_EQ(bulk.counts.completed, 1);
    EXPECT_FALSE(bulk.ended_at);
}

TEST(Bulk, ItEndsWithItsLastItem) {
    Bulk bulk = running(2);
    bulk.has_webhook = true;
    bulk = moved(bulk, 0, ItemState::waiting, ItemState::failed);
    EXPECT_TRUE(bulk.is_open());
    bulk = moved(bulk, 1, ItemState::waiting, ItemState::completed);
    EXPECT_EQ(bulk.state, BulkState::completed);
    EXPECT_EQ(bulk.ended_at, kNow);
    ASSERT_TRUE(bulk.news);
    EXPECT_TRUE(bulk.is_open()) << "its end is to be told";
    EXPECT_FALSE(note_news(bulk, std::nullopt).bulk.is_open());
}

TEST(Bulk, NobodyLooksAfterOneThatRests) {
    Bulk bulk = moved(running(2), 0, ItemState::waiting, ItemState::running);
    bulk = pause(bulk)->bulk;
    EXPECT_TRUE(bulk.is_open()) << "something of it runs";
    bulk = moved(bulk, 0, ItemState::running, ItemState::completed);
    EXPECT_FALSE(bulk.is_open());
    EXPECT_TRUE(resume(bulk)->bulk.is_open());
    EXPECT_TRUE(cancel(bulk, kNow)->bulk.is_open());
    EXPECT_TRUE(pause(loading(1))->bulk.is_open());
}

TEST(Bulk, CancelledIsWhatHadSomethingToCancel) {
    Bulk bulk = cancel(running(2), kNow)->bulk;
    EXPECT_EQ(bulk.state, BulkState::cancelling);
    const Bulk in_time = moved(
        moved(bulk, 0, ItemState::waiting, ItemState::completed),
        1,
        ItemState::waiting,
        ItemState::completed
    );
    EXPECT_EQ(in_time.state, BulkState::completed);
    bulk = moved(bulk, 0, ItemState::waiting, ItemState::completed);
    bulk = moved(bulk, 1, ItemState::waiting, ItemState::cancelled);
    EXPECT_EQ(bulk.state, BulkState::cancelled);
    EXPECT_FALSE(cancel(bulk, kNow));
    EXPECT_EQ(cancel(loading(0), kNow)->bulk.state, BulkState::cancelled);
    EXPECT_EQ(cancel(loading(5), kNow)->bulk.state, BulkState::cancelling);
}

TEST(Bulk, WhatItsStateDoesNotAllowIsAConflict) {
    const Bulk ended = moved(running(1), 0, ItemState::waiting, ItemState::failed);
    for (const auto& refused :
         {add_items(ended, {item(1)}),
          finish_loading(ended, kNow),
          pause(ended),
          resume(ended),
          retry_items(cancel(running(1), kNow)->bulk, {})}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::conflict);
    }
    EXPECT_TRUE(pause(loading(1))->bulk.paused);
    EXPECT_FALSE(resume(pause(running(1))->bulk)->bulk.paused);
}

TEST(Bulk, WhatFailedWaitsAgainAsIfNothingHadHappened) {
    Bulk bulk = running(1);
    BulkItem failed = item(0, ItemState::failed);
    failed.job = JobId::make(kNow);
    failed.failure = Failure::from(Error(Code::internal, "no"));
    bulk = move_items(bulk, {{ItemState::waiting, failed}}, kNow).bulk;
    const auto again = retry_items(bulk, {failed});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->bulk.state, BulkState::running);
    EXPECT_FALSE(again->bulk.ended_at);
    EXPECT_EQ(again->bulk.counts.waiting(), 1);
    EXPECT_EQ(again->bulk.counts.failed, 0);
    EXPECT_EQ(again->moved[0].state, ItemState::waiting);
    EXPECT_FALSE(again->moved[0].job);
    EXPECT_FALSE(again->moved[0].failure);
}

TEST(Bulk, AnItemIsWhatItsJobBecame) {
    Job job;
    for (const State state : {State::queued, State::running, State::retry_waiting}) {
        job.state = state;
        EXPECT_FALSE(settle_item(item(0), job));
    }
    job.state = State::completed;
    Output output;
    output.name = "a.png";
    output.size_bytes = 7;
    job.outputs = {output};
    const auto completed = settle_item(item(0), job);
    ASSERT_TRUE(completed);
    EXPECT_EQ(completed->state, ItemState::completed);
    ASSERT_EQ(completed->outputs.size(), 1U);
    EXPECT_EQ(completed->outputs[0].name, "a.png");
    EXPECT_EQ(completed->outputs[0].size_bytes, 7U);
    job.state = State::cancelled;
    EXPECT_EQ(settle_item(item(0), job)->state, ItemState::cancelled);
    for (const State state : {State::failed, State::expired}) {
        job.state = state;
        job.failure = Failure::from(Error(Code::internal, "no"));
        EXPECT_EQ(settle_item(item(0), job)->state, ItemState::failed);
        EXPECT_TRUE(settle_item(item(0), job)->failure);
    }
}

}  // namespace
}  // namespace comfyd::jobs
