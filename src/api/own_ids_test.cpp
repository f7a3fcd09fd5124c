#include "api/own_ids.hpp"

#include <gmock/gmock.h>

namespace comfyd::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OwnIds, AnIdThatIsUsedAgainKnowsAllItsJobs) {
    OwnIds ids;
    const JobId first = JobId::make(Time(Millis(1)));
    const JobId second = JobId::make(Time(Millis(2)));
    ids.add("red", "mine", second);
    ids.add("red", "mine", first);
    ids.add("red", "mine", first);
    EXPECT_THAT(ids.find("red", "mine"), ElementsAre(first, second));
    EXPECT_THAT(ids.find("blue", "mine"), IsEmpty());
}

TEST(OwnIds, TheOldestOfATenantAreForgotten) {
    OwnIds ids;
    const auto name = [](std::size_t i) { return "id-" + std::to_string(i); };
    for (std::size_t i = 0; i < OwnIds::kIdsMax + 10; ++i) {
        ids.add("red", name(i), JobId::make(Time(Millis(i))));
    }
    EXPECT_THAT(ids.find("red", name(9)), IsEmpty());
    EXPECT_EQ(ids.find("red", name(10)).size(), 1U);
    EXPECT_EQ(ids.find("red", name(OwnIds::kIdsMax + 9)).size(), 1U);
}

}  // namespace
}  // namespace comfyd::api
