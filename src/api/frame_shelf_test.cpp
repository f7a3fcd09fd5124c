// However many listen, an event is encoded once for each dialect, and what is kept of it is
// bounded.
#include "api/frame_shelf.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace comfyd::api {
namespace {

events::EventPtr make_event(std::uint64_t sequence, std::size_t preview_bytes = 0) {
    auto event = std::make_shared<jobs::Event>();
    event->sequence = sequence;
    event->preview.assign(preview_bytes, 'p');
    return event;
}

class Frames : public testing::Test {
protected:
    FramePtr get(const events::EventPtr& event, std::string_view form, std::size_t bytes = 10) {
        return shelf.get(event, form, [&] {
            ++encoded;
            return std::optional(std::string(form) + std::string(bytes, 'x'));
        });
    }

    FrameShelf shelf;
    std::atomic<int> encoded{0};
};

TEST_F(Frames, AreEncodedOnceForEachDialect) {
    const auto event = make_event(1);
    const FramePtr first = get(event, "a");
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(get(event, "a"), first);
    }
    EXPECT_EQ(encoded, 1);
    EXPECT_NE(*get(event, "b"), *first);
    EXPECT_NE(get(make_event(1), "a"), first) << "of another event";
    EXPECT_EQ(encoded, 3);
}

TEST_F(Frames, OfDialectsThatShowNothingAreNone) {
    const auto event = make_event(1);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(
            shelf.get(
                event,
                "silent",
                [this] {
                    ++encoded;
                    return std::optional<std::string>();
                }
            ),
            nullptr
        );
    }
    EXPECT_EQ(encoded, 1);
}

TEST_F(Frames, AreKeptForTheLatestEventsOnly) {
    constexpr std::size_t kMost = FrameShelf::kParts * FrameShelf::kFramesOfPart;
    std::vector<std::weak_ptr<const jobs::Event>> events;
    for (std::uint64_t i = 0; i < 5 * kMost; ++i) {
        const auto event = make_event(i);
        get(event, "a");
        events.emplace_back(event);
    }
    const auto held =
        std::ranges::count_if(events, [](const auto& event) { return !event.expired(); });
    EXPECT_GT(held, 0);
    EXPECT_LE(held, static_cast<std::ptrdiff_t>(kMost));
}

TEST_F(Frames, LargeOnesAreNotKept) {
    std::weak_ptr<const jobs::Event> large = make_event(1);
    {
        const auto event = make_event(1);
        large = event;
        const auto first = get(event, "a", FrameShelf::kFrameBytesMax + 1);
        EXPECT_EQ(*get(event, "a", FrameShelf::kFrameBytesMax + 1), *first);
        EXPECT_EQ(encoded, 2);
    }
    EXPECT_TRUE(large.expired());
    {
        const auto event = make_event(2, FrameShelf::kFrameBytesMax + 1);
        large = event;
        get(event, "a");
    }
    EXPECT_TRUE(large.expired());
}

TEST_F(Frames, AreEncodedOnceByAllThreads) {
    const auto event = make_event(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 200; ++k) {
                EXPECT_NE(get(event, "a"), nullptr);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(encoded, 1);
}

}  // namespace
}  // namespace comfyd::api
