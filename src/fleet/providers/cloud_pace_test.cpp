#include "fleet/providers/cloud_pace.hpp"

#include <gtest/gtest.h>

#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {
namespace {

using std::chrono::seconds;

net::Headers headers(std::string_view name, std::string value) {
    net::Headers made;
    made.set(name, std::move(value));
    return made;
}

TEST(RateLimitHeader, TheLongestOfTheWindowsThatAreUsedUp) {
    EXPECT_EQ(parse_rate_limit(R"("minute";r=0;t=12, "hour";r=2800;t=1812)"), Millis(12'000));
    EXPECT_EQ(parse_rate_limit(R"("minute";r=0;t=12,"hour";t=1812;r=0)"), Millis(1'812'000));
    EXPECT_EQ(parse_rate_limit(R"("minute";r=7;t=12)"), std::nullopt);
    EXPECT_EQ(parse_rate_limit(R"("day";r=0;t=99999999)"), Millis(CloudPace::kPauseMax));
    for (const char* text : {"", ";", ",,;;,", "r=0", "\"minute\";r=-1;t=5", "r=0;t=soon", "100"}) {
        EXPECT_EQ(parse_rate_limit(text), std::nullopt) << text;
    }
}

TEST(CloudPace, WaitsAsLongAsItIsTold) {
    const CloudPace::Moment now = CloudPace::Moment() + seconds(1000);
    const Time wall = *parse_rfc3339("1994-11-06T08:49:30Z");
    CloudPace pace;
    EXPECT_EQ(pace.wait(now), Millis(0));
    pace.heard(200, headers("RateLimit", R"("minute";r=59;t=50)"), now, wall);
    EXPECT_EQ(pace.wait(now), Millis(0));
    pace.heard(429, headers("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"), now, wall);
    EXPECT_EQ(pace.wait(now), Millis(7000));
    EXPECT_EQ(pace.wait(now + seconds(5)), Millis(2000));
    EXPECT_EQ(pace.wait(now + seconds(8)), Millis(0));
    // A later answer that knows of no limit does not take it back.
    pace.heard(200, {}, now, wall);
    EXPECT_EQ(pace.wait(now), Millis(7000));
    pace.heard(200, headers("RateLimit", R"("minute";r=0;t=9)"), now, wall);
    EXPECT_EQ(pace.wait(now), Millis(9000));
}

TEST(CloudPace, A429WithoutAWordIsAPauseToo) {
    const CloudPace::Moment now = CloudPace::Moment() + seconds(1000);
    CloudPace pace;
    pace.heard(429, headers("Retry-After", "soon"), now, Time());
    EXPECT_EQ(pace.wait(now), Millis(CloudPace::kPause));
    pace.heard(503, headers("Retry-After", "999999999"), now, Time());
    EXPECT_EQ(pace.wait(now), Millis(CloudPace::kPauseMax));
}

TEST(ForeignWords, AreShortAndHideSecrets) {
    EXPECT_EQ(presentable("  a\n\tb\x01 c \x7f"), "a b c");
    EXPECT_EQ(presentable("key sk_123456 and sk_123456!", {"sk_123456", "a"}), "key *** and ***!");
    // A secret that the limit would cut in two.
    const std::string before(kWordsBytesMax - 3, 'x');
    EXPECT_EQ(presentable(before + "secret-word", {"secret-word"}), before + "***");
    // No character is cut in two.
    for (std::size_t offset = 0; offset < 4; ++offset) {
        const std::string text =
            presentable(std::string(kWordsBytesMax - offset, 'x') + "üü€😀 and more");
        EXPECT_TRUE(text.ends_with("…")) << offset;
        EXPECT_LE(text.size(), kWordsBytesMax + 3);
    }
    EXPECT_EQ(excerpt_of("<html>\xff\xc3 (</html>"), "<html>?? (</html>");
    EXPECT_EQ(excerpt_of(std::string(100'000, 'y')), std::string(kWordsBytesMax, 'y') + "…");
}

}  // namespace
}  // namespace comfyd::fleet
