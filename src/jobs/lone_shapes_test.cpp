#include "jobs/lone_shapes.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

TEST(LoneShapes, AreTriedTogetherAgainAfterAWhile) {
    const Time start = from_unix_ms(1'000'000);
    LoneShapes shapes;
    shapes.add("a", start);
    EXPECT_TRUE(shapes.contains("a", start));
    EXPECT_FALSE(shapes.contains("b", start));
    EXPECT_TRUE(shapes.contains("a", start + LoneShapes::kFor - Millis(1)));
    EXPECT_FALSE(shapes.contains("a", start + LoneShapes::kFor));
    shapes.add("a", start + LoneShapes::kFor);
    EXPECT_TRUE(shapes.contains("a", start + LoneShapes::kFor)) << "it failed again";
}

}  // namespace
}  // namespace comfyd::jobs
