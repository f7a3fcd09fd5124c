#include "notify/fresh_changes.hpp"

#include <gtest/gtest.h>

namespace comfyd::notify {
namespace {

struct Told {
    jobs::Job job;
    jobs::Event event;
};

Told completed(std::uint64_t sequence = 4) {
    Told told;
    told.job.id = JobId::make(Time(Millis(1)));
    told.job.state = jobs::State::completed;
    told.event.job = told.job.id;
    told.event.type = jobs::EventType::completed;
    told.event.sequence = sequence;
    return told;
}

TEST(FreshChanges, WhatWasJustToldIsThereByItsNumberUntilItIsDropped) {
    FreshChanges fresh;
    const Told told = completed(4);
    fresh.put(told.job, told.event);
    ASSERT_TRUE(fresh.find(told.job.id, 4));
    EXPECT_EQ(fresh.find(told.job.id, 4)->job.id, told.job.id);
    EXPECT_FALSE(fresh.find(told.job.id, 3));
    EXPECT_FALSE(fresh.find(JobId(), 4));
    fresh.drop(told.job.id);
    EXPECT_FALSE(fresh.find(told.job.id, 4));
}

TEST(FreshChanges, OfOtherEventsTheLedgerIsAsked) {
    FreshChanges fresh;
    Told told = completed();
    fresh.put(told.job, told.event);
    told.event.type = jobs::EventType::started;
    fresh.put(told.job, told.event);
    EXPECT_FALSE(fresh.find(told.job.id, told.event.sequence)) << "it runs again";
    Told answered = completed();
    answered.job.reused_from = JobId::make(Time(Millis(1)));
    fresh.put(answered.job, answered.event);
    EXPECT_FALSE(fresh.find(answered.job.id, answered.event.sequence));
}

TEST(FreshChanges, OnlyTheLatestAndOnlySmallOnes) {
    FreshChanges fresh;
    const Told first = completed();
    fresh.put(first.job, first.event);
    for (std::size_t i = 0; i < FreshChanges::kKept; ++i) {
        const Told told = completed();
        fresh.put(told.job, told.event);
        EXPECT_TRUE(fresh.find(told.job.id, told.event.sequence));
    }
    EXPECT_FALSE(fresh.find(first.job.id, first.event.sequence));
    for (const std::size_t bytes : {std::size_t(100), FreshChanges::kBytesMax}) {
        Told told = completed();
        told.job.ui_outputs["9"] = json::object{{"text", json::array{std::string(bytes, 'a')}}};
        fresh.put(told.job, told.event);
        EXPECT_EQ(
            fresh.find(told.job.id, told.event.sequence) != nullptr, bytes < FreshChanges::kBytesMax
        );
    }
}

}  // namespace
}  // namespace comfyd::notify
