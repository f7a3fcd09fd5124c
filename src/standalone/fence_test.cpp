// The fence against leaders that were, over real sockets.
#include "comfy/fence.hpp"

#include <gtest/gtest.h>

#include "standalone/test_support.hpp"

namespace comfyd::standalone {
namespace {

using support::Reply;
using test::small_picture;
using test::TestServer;

class Fenced : public testing::Test {
protected:
    Reply post(const std::string& id, std::uint64_t epoch, const std::string& domain = "main") {
        const json::object lead = comfy::LeadMark{domain, epoch}.to_json();
        return server_.post_prompt(
            small_picture(),
            {{"prompt_id", id}, {"extra_data", json::object{{comfy::kLeadKey, lead}, {"x", 1}}}}
        );
    }
    Reply announce(const json::object& lead) {
        return server_.http().post_json(std::string(comfy::kLeadRoute), lead);
    }

    const std::string first_ = "0190a1b2-0000-7000-8000-000000000001";
    const std::string second_ = "0190a1b2-0000-7000-8000-000000000002";
    TestServer server_;
};

TEST_F(Fenced, ALeaderIsServed) {
    ASSERT_EQ(post(first_, 3).status, 200);
    const json::value entry = server_.wait_ended(first_);
    ASSERT_TRUE(entry.is_object());
    const json::object& extra = entry.at("prompt").at(3).as_object();
    EXPECT_TRUE(extra.contains("x"));
    EXPECT_FALSE(extra.contains(comfy::kLeadKey)) << "nobody else's business";
}

TEST_F(Fenced, ALowerEpochIsRefused) {
    ASSERT_EQ(post(first_, 3).status, 200);
    const Reply refused = post(second_, 2);
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.json_at("/error/type"), json::value(comfy::kLowerEpoch));
    EXPECT_EQ(refused.json_at("/node_errors"), json::object());
    EXPECT_EQ(post(second_, 1, "another").status, 200);
}

TEST_F(Fenced, APromptRunsOnce) {
    ASSERT_EQ(post(first_, 3).status, 200);
    server_.wait_ended(first_);
    const Reply refused = post(first_, 4);
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.json_at("/error/type"), json::value(comfy::kKnownPrompt));
}

TEST_F(Fenced, ANewLeaderIsHeardOf) {
    const Reply known = announce({{"domain", "main"}, {"epoch", 5}});
    EXPECT_EQ(known.status, 200);
    EXPECT_EQ(known.json(), (json::object{{"domain", "main"}, {"epoch", 5}}));
    const Reply refused = announce({{"domain", "main"}, {"epoch", 4}});
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.json_at("/error/type"), json::value(comfy::kLowerEpoch));
    EXPECT_EQ(post(first_, 4).status, 409);
    EXPECT_EQ(post(first_, 5).status, 200);
    EXPECT_EQ(announce({{"domain", "main"}}).status, 400);
}

TEST_F(Fenced, PromptsOfOthersPass) {
    ASSERT_EQ(post(first_, 3).status, 200);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(server_.post_prompt(small_picture(), {{"prompt_id", second_}}).status, 200);
    }
}

}  // namespace
}  // namespace comfyd::standalone
