// The native WebSocket where it matters that comfyd is not one ComfyUI: order of answer and
// messages, several sockets, lost workers, slow clients.
#include "native_support.hpp"

namespace comfyd::support {
namespace {

using testing::Contains;
using testing::ElementsAre;

class NativeSocket : public NativeTest {};

TEST_F(NativeSocket, GreetsWithTheQueueAndAnId) {
    start();
    const auto named = socket("me");
    EXPECT_EQ(named->json_messages().at(0).at("type"), "status");
    EXPECT_EQ(named->json_messages().at(0).at("data").at("sid"), "me");
    const auto nameless = http().ws("/api/ws");
    ASSERT_TRUE(wait_until([&] { return !nameless->messages().empty(); }));
    EXPECT_EQ(nameless->json_messages().at(0).at("data").at("sid").as_string().size(), 32U);
}

TEST_F(NativeSocket, NothingIsToldOfAPromptBeforeItsAnswer) {
    start();
    const auto listener = socket("me");
    for (int i = 0; i < 40; ++i) {
        const auto before = listener->messages().size();
        const std::string id = post_prompt(http(), text_to_image(std::to_string(i)), "me");
        ASSERT_TRUE(wait_end_of(*listener, id));
        // The answer names the id; nobody could have known it before.
        const auto all = listener->json_messages();
        EXPECT_EQ(type_of(all.at(before)), "status");
        EXPECT_EQ(story_of(*listener, id).front(), "execution_start");
    }
}

TEST_F(NativeSocket, TheNewestSocketOfAnIdHearsAndOutlivesTheOlderOne) {
    DoubleOptions options;
    options.delay = Millis(200);
    start(options);
    auto old = socket("me");
    const auto fresh = socket("me");
    const std::string first = post_prompt(http(), text_to_image("a"), "me");
    ASSERT_TRUE(wait_end_of(*fresh, first));
    EXPECT_TRUE(story_of(*old, first).empty());
    old->close();
    old.reset();
    const std::string second = post_prompt(http(), text_to_image("b"), "me");
    EXPECT_TRUE(wait_end_of(*fresh, second));
}

TEST_F(NativeSocket, OthersHearOfTheQueueAndNotOfThePrompt) {
    start();
    const auto mine = socket("me");
    const auto other = socket("other");
    const std::string id = post_prompt(http(), text_to_image("a"), "me");
    ASSERT_TRUE(wait_end_of(*mine, id));
    EXPECT_TRUE(wait_until([&] { return other->json_messages().size() >= 4; }));
    EXPECT_TRUE(story_of(*other, id).empty());
    for (const auto& message : other->json_messages()) {
        EXPECT_EQ(type_of(message), "status");
    }
}

TEST_F(NativeSocket, APromptWithoutAClientTellsItsProgressToAll) {
    start();
    const auto anybody = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a"), "");
    ASSERT_TRUE(wait_until([&] {
        return http().get("/history/" + id).json().as_object().contains(id);
    }));
    const auto story = story_of(*anybody, id);
    EXPECT_THAT(story, Contains("progress_state"));
    EXPECT_THAT(story, testing::Not(Contains("execution_start")));
    EXPECT_THAT(story, testing::Not(Contains("executing")));
    EXPECT_THAT(story, testing::Not(Contains("end")));
}

TEST_F(NativeSocket, ALostWorkerIsNoSecondStart) {
    DoubleOptions options;
    options.delay = Millis(300);
    start(options);
    second_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
    const auto listener = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a"), "me");
    ASSERT_TRUE(listener->wait_for([](const json::value& message) {
        return type_of(message) == "executing";
    }));
    worker_->crash();
    worker_->start();
    ASSERT_TRUE(wait_end_of(*listener, id));
    const auto story = story_of(*listener, id);
    EXPECT_EQ(std::count(story.begin(), story.end(), "execution_start"), 1);
    EXPECT_EQ(std::count(story.begin(), story.end(), "execution_success"), 1);
    EXPECT_EQ(std::count(story.begin(), story.end(), "end"), 1);
    EXPECT_EQ(story.front(), "execution_start");
    EXPECT_EQ(story.at(story.size() - 2), "execution_success");
}

TEST_F(NativeSocket, ADeadExecutionThreadBehindAHealthyServerIsNotTheEnd) {
    DoubleOptions options;
    options.faults.dead_worker = true;
    start(options, {"--set", "fleet.lost_after_s=1"});
    const auto listener = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a"), "me");
    // It waits and can be taken back; nothing pretends that it ran.
    ASSERT_TRUE(wait_until([&] {
        return http().get("/prompt").json_at("/exec_info/queue_remaining") == json::value(1);
    }));
    EXPECT_EQ(http().post_json("/interrupt", json::object{{"prompt_id", id}}).status, 200);
    EXPECT_TRUE(wait_end_of(*listener, id));
    EXPECT_THAT(story_of(*listener, id), Contains("execution_interrupted"));
}

TEST_F(NativeSocket, AWorkerThatStallsForHalfASecondLosesNothing) {
    DoubleOptions options;
    options.faults.slow_http = 500;
    start(options);
    const auto listener = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a"), "me");
    ASSERT_TRUE(wait_end_of(*listener, id));
    EXPECT_THAT(story_of(*listener, id), Contains("execution_success"));
}

TEST_F(NativeSocket, APreviewHasTheFormThatTheClientAnnounced) {
    DoubleOptions options;
    options.previews = true;
    start(options);
    const auto plain = socket("plain");
    const auto rich = socket("rich");
    rich->send(R"({"type":"feature_flags","data":{"supports_preview_metadata":true}})");
    ASSERT_TRUE(rich->wait_for([](const json::value& message) {
        return type_of(message) == "feature_flags";
    }));
    for (const char* client : {"plain", "rich"}) {
        const std::string id = post_prompt(http(), text_to_image(client), client);
        ASSERT_TRUE(wait_end_of(client == std::string("rich") ? *rich : *plain, id));
    }
    const auto first_binary = [](const WsStream& from) {
        for (const auto& message : from.messages()) {
            if (message.binary) {
                return static_cast<int>(message.data.at(3));
            }
        }
        return 0;
    };
    EXPECT_EQ(first_binary(*plain), 1);
    EXPECT_EQ(first_binary(*rich), 4);
}

TEST_F(NativeSocket, AReconnectedClientIsToldWhatRuns) {
    DoubleOptions options;
    options.faults.run.hang_interruptible = true;
    start(options);
    auto first = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a"), "me");
    ASSERT_TRUE(first->wait_for([](const json::value& message) {
        return type_of(message) == "executing" && message.at("data").at("node") == "9";
    }));
    first.reset();
    const auto again = socket("me");
    const auto told =
        again->wait_for([](const json::value& message) { return type_of(message) == "executing"; });
    ASSERT_TRUE(told);
    EXPECT_EQ(told->at("data").at("node"), "9");
    EXPECT_EQ(http().post("/interrupt", "").status, 200);
    EXPECT_TRUE(wait_end_of(*again, id));
}

TEST_F(NativeSocket, AFailedPromptTellsItsError) {
    start();
    const auto listener = socket("me");
    const std::string id = post_prompt(http(), text_to_image("a", "node_error"), "me");
    ASSERT_TRUE(wait_end_of(*listener, id));
    const auto error = listener->wait_for([](const json::value& message) {
        return type_of(message) == "execution_error";
    });
    ASSERT_TRUE(error);
    const json::object& data = error->at("data").as_object();
    for (const char* key :
         {"node_id",
          "node_type",
          "executed",
          "exception_message",
          "exception_type",
          "traceback",
          "current_inputs",
          "timestamp"}) {
        EXPECT_TRUE(data.contains(key)) << key;
    }
    EXPECT_FALSE(data.at("node_id").as_string().empty());
    const auto entry = http().get("/history/" + id).json().at(id);
    EXPECT_EQ(entry.at("status").at("status_str"), "error");
    EXPECT_EQ(entry.at("status").at("messages").as_array().back().at(0), "execution_error");
}

}  // namespace
}  // namespace comfyd::support
