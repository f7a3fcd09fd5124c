#include "jobs/content_flights.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

TEST(ContentFlights, OneOfARegionHasItFirstAndTheOthersHaveItFromThere) {
    ContentFlights flights;
    EXPECT_FALSE(flights.must_wait("here", "a"));
    flights.begin("here", "a", "w0", true);
    EXPECT_TRUE(flights.must_wait("here", "a"));
    EXPECT_FALSE(flights.must_wait("there", "a")) << "another region";
    EXPECT_FALSE(flights.must_wait("here", "b")) << "another content";
    flights.end("here", "a", "w0", true);
    EXPECT_TRUE(flights.has("w0", "a"));
    // As many at a time as those who have it can serve: more and more.
    std::size_t holders = 1;
    for (int round = 0; round < 3; ++round) {
        std::size_t begun = 0;
        while (!flights.must_wait("here", "a")) {
            flights.begin(
                "here", "a", "r" + std::to_string(round) + "-" + std::to_string(begun++), true
            );
        }
        EXPECT_EQ(begun, ContentFlights::kFlightsPerHolder * holders);
        for (std::size_t i = 0; i < begun; ++i) {
            flights.end("here", "a", "r" + std::to_string(round) + "-" + std::to_string(i), true);
        }
        holders += begun;
    }
}

TEST(ContentFlights, NobodyWaitsForOneThatFailsOrCannotShare) {
    ContentFlights flights;
    flights.begin("here", "a", "calls by itself", false);
    EXPECT_FALSE(flights.must_wait("here", "a"));
    flights.end("here", "a", "calls by itself", true);
    EXPECT_FALSE(flights.has("calls by itself", "a"));
    flights.begin("here", "a", "w0", true);
    EXPECT_TRUE(flights.must_wait("here", "a"));
    flights.end("here", "a", "w0", false);
    EXPECT_FALSE(flights.must_wait("here", "a"));
    flights.begin("here", "a", "w1", true);
    flights.forget("w1");
    EXPECT_FALSE(flights.must_wait("here", "a"));
    flights.end("here", "a", "w1", true);
    EXPECT_FALSE(flights.has("w1", "a"));
}

}  // namespace
}  // namespace comfyd::jobs
