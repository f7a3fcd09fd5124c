#include "api/sse.hpp"

#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

TEST(SseFrame, HasIdEventAndData) {
    EXPECT_EQ(sse_frame("status", "{}", 7), "id: 7\nevent: status\ndata: {}\n\n");
    EXPECT_EQ(sse_frame("", "x"), "data: x\n\n");
    EXPECT_EQ(sse_frame("close", ""), "event: close\ndata: \n\n");
}

TEST(SseFrame, LineBreaksCannotForgeFrames) {
    EXPECT_EQ(sse_frame("a\nb", "x"), "event: ab\ndata: x\n\n");
    EXPECT_EQ(sse_frame("a", "x\ny\r\nz\rw"), "event: a\ndata: x\ndata: y\ndata: z\ndata: w\n\n");
    EXPECT_EQ(sse_frame("a", "x\n\ndata: y"), "event: a\ndata: x\ndata: \ndata: data: y\n\n");
    EXPECT_EQ(sse_frame("a", "x\r"), "event: a\ndata: x\ndata: \n\n");
}

TEST(IsLastEvent, OnlyForTheEndsOfAJob) {
    using enum jobs::EventType;
    jobs::Event event;
    for (const auto type : {completed, failed, cancelled, expired}) {
        event.type = type;
        EXPECT_TRUE(is_last_event(event));
    }
    for (const auto type : {queued, started, progress, output, retrying, cancelling, preview}) {
        event.type = type;
        EXPECT_FALSE(is_last_event(event));
    }
}

TEST(StreamSlot, IsFreeAgainAfterwards) {
    test::Arrangement setup;
    setup.options.streams_max = 1;
    test::TestApi api(std::move(setup));
    {
        const auto first = StreamSlot::open(api.services);
        ASSERT_TRUE(first);
        const auto second = StreamSlot::open(api.services);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, Code::too_many_streams);
    }
    EXPECT_EQ(api.services.streams->load(), 0U);
    EXPECT_TRUE(StreamSlot::open(api.services));
}

}  // namespace
}  // namespace comfyd::api
