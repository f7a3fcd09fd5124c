#include "agent/give_back.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/cloud_double.hpp"

namespace comfyd::agent {
namespace {

using support::CloudDouble;

std::optional<Rented> rented(const std::map<std::string, std::string>& variables) {
    return find_rented([&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::string() : found->second;
    });
}

std::optional<Rented> pod(const CloudDouble& cloud, const std::string& id, const char* key) {
    return rented({{"COMFYD_API_URL", cloud.url()}, {"RUNPOD_POD_ID", id}, {"RUNPOD_API_KEY", key}}
    );
}

TEST(GiveBack, OfMachinesThatWereOrderedAndHaveAKeyOfTheirOwn) {
    const std::string url = "https://api.example.com/v2/";
    const auto found =
        rented({{"COMFYD_API_URL", url}, {"RUNPOD_POD_ID", "a/b"}, {"RUNPOD_API_KEY", "key"}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->url, "https://api.example.com/v2/pods/a%2Fb");
    EXPECT_FALSE(rented({{"RUNPOD_POD_ID", "p"}, {"RUNPOD_API_KEY", "key"}})) << "somebody's own";
    EXPECT_FALSE(rented({{"COMFYD_API_URL", url}, {"RUNPOD_POD_ID", "p"}}));
    EXPECT_FALSE(rented({{"COMFYD_API_URL", url}, {"RUNPOD_API_KEY", "key"}}));
    EXPECT_FALSE(rented({{"COMFYD_API_URL", url}}));
    for (const char* wrong : {"http://api.example.com", "nonsense", "ftp://x", "https://"}) {
        EXPECT_FALSE(
            rented({{"COMFYD_API_URL", wrong}, {"CONTAINER_ID", "7"}, {"CONTAINER_API_KEY", "key"}})
        ) << wrong;
    }
}

TEST(GiveBack, ToRunPod) {
    support::RunPodDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    cloud.add("comfyd-f-2");
    const auto machine = pod(cloud, id, CloudDouble::kKey);
    ASSERT_TRUE(machine);
    cloud.set({.errors = 3});
    EXPECT_TRUE(give_back(*machine, "", Millis(1)));
    EXPECT_THAT(cloud.machines(), testing::ElementsAre("comfyd-f-2"));
    EXPECT_TRUE(give_back(*machine, "", Millis(1))) << "it is gone already";
    EXPECT_THAT(cloud.wrong(), testing::IsEmpty());
}

TEST(GiveBack, ToVast) {
    support::VastDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    const auto machine = rented(
        {{"COMFYD_API_URL", cloud.url()},
         {"CONTAINER_ID", id},
         {"CONTAINER_API_KEY", CloudDouble::kKey}}
    );
    ASSERT_TRUE(machine);
    cloud.set({.too_many = 2, .retry_after_s = -1});
    EXPECT_TRUE(give_back(*machine, "", Millis(1)));
    EXPECT_TRUE(cloud.machines().empty());
    EXPECT_THAT(cloud.wrong(), testing::IsEmpty());
}

TEST(GiveBack, IsGivenUpAfterSomeTries) {
    support::RunPodDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    const auto failed = give_back(*pod(cloud, id, "key-of-another"), "", Millis(1));
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message, testing::HasSubstr("401"));
    EXPECT_THAT(failed.error().message, testing::Not(testing::HasSubstr("key-of-another")));
    EXPECT_EQ(cloud.asked("remove"), 5);
    EXPECT_EQ(cloud.machines().size(), 1U);
}

}  // namespace
}  // namespace comfyd::agent
