// The native WebSocket where it matters that comfyd is not one ComfyUI: order of answer and
// messages, several sockets, lost workers, slow clients.
#include "native_support.hpp"
#include "support/raw_socket.hpp"

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

TEST_F(NativeSocket, ADeadExecutionThreadIsReplacedByAnotherWorker) {
    DoubleOptions dead;
    dead.faults.dead_worker = true;
    thread_.start();
    worker_ = std::make_unique<ComfyDouble>(thread_.context(), dead);
    second_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
    worker_->start();
    second_->start();
    ComfydOptions serve;
    serve.arguments = {
        "--no-engine",
        "--worker",
        worker_->url(),
        "--worker",
        second_->url(),
        "--set",
        "fleet.poll_ms=100",
        "--set",
        "fleet.dead_after_s=1",
    };
    comfyd_ = std::make_unique<Comfyd>(serve);
    wait_workers(2);
    const auto listener = socket("me");
    std::vector<std::string> ids;
    for (int i = 0; i < 2; ++i) {  // one of them meets the dead one
        ids.push_back(post_prompt(http(), text_to_image(std::to_string(i)), "me"));
    }
    for (const std::string& id : ids) {
        ASSERT_TRUE(wait_end_of(*listener, id));
        const auto story = story_of(*listener, id);
        EXPECT_EQ(std::count(story.begin(), story.end(), "execution_start"), 1);
        EXPECT_THAT(story, Contains("execution_success"));
    }
    EXPECT_EQ(worker_->executions().total, 0U);
    EXPECT_EQ(second_->executions().total, 2U);
}

TEST_F(NativeSocket, MessagesOfCustomNodesComeToTheOwner) {
    start();
    const auto mine = socket("me");
    const auto other = socket("other");
    const std::string id = post_prompt(http(), text_to_image("a", "garbage"), "me");
    ASSERT_TRUE(wait_end_of(*mine, id));
    const auto custom = mine->wait_for([](const json::value& message) {
        return type_of(message) == "other.custom.node";
    });
    ASSERT_TRUE(custom);
    EXPECT_EQ(custom->at("data"), json::value(json::object{{"x", json::array{1, nullptr}}}));
    for (const auto& message : other->json_messages()) {
        EXPECT_EQ(type_of(message), "status");
    }
}

// comfyd in front of its engine.
class NativeEngine : public NativeTest {
protected:
    void start_engine(std::vector<std::string> arguments = {}) {
        ComfydOptions serve;
        serve.arguments = std::move(arguments);
        comfyd_ = std::make_unique<Comfyd>(serve);
        wait_workers(1);
    }
    json::value entry_of(const std::string& id) {
        json::value entry;
        EXPECT_TRUE(wait_until([&] {
            const json::value history = http().get("/history/" + id).json();
            const bool there = history.as_object().contains(id);
            entry = there ? history.at(id) : json::value();
            return there;
        }));
        return entry;
    }
    // Says a text of 4 MB, which begins with `number`.
    static json::object long_text(int number) {
        json::object graph;
        json::value text(std::to_string(number) + std::string(64 * 1024, 'x'));
        for (int i = 1; i <= 6; ++i) {
            const std::string id = std::to_string(i);
            graph[id] = {
                {"class_type", "StringConcatenate"},
                {"inputs", {{"string_a", text}, {"string_b", text}, {"delimiter", ""}}}
            };
            text = json::array{json::value(id), 0};
        }
        graph["7"] = {{"class_type", "PreviewAny"}, {"inputs", {{"source", text}}}};
        return graph;
    }
};

TEST_F(NativeEngine, AFailedRunShowsWhatWasDone) {
    start_engine();
    ASSERT_EQ(
        http().upload("/upload/image", {{"image", "bad.png", "image/png", "no picture"}}).status,
        200
    );
    const auto listener = socket("me");
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "PrimitiveString", "inputs": {"value": "done"}},
        "2": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}},
        "3": {"class_type": "LoadImage", "inputs": {"image": "bad.png"}},
        "4": {"class_type": "PreviewImage", "inputs": {"images": ["3", 0]}}})");
    const std::string id = post_prompt(http(), graph, "me");
    ASSERT_TRUE(wait_end_of(*listener, id));
    const json::value entry = entry_of(id);
    EXPECT_EQ(entry.at("status").at("status_str"), "error");
    const json::value& ending = entry.at("status").at("messages").as_array().back();
    EXPECT_EQ(ending.at(0), "execution_error");
    EXPECT_EQ(ending.at(1).at("node_id"), "3");
    EXPECT_EQ(ending.at(1).at("node_type"), "LoadImage");
    const json::object& outputs = entry.at("outputs").as_object();
    ASSERT_TRUE(outputs.contains("2")) << json::serialize(entry);
    EXPECT_EQ(outputs.at("2").at("text").at(0), "done");
}

TEST_F(NativeEngine, TheHistoryTellsWhatWasCachedAlsoWithoutAnyClient) {
    start_engine();
    entry_of(post_prompt(http(), small_picture(1), ""));
    const json::value entry = entry_of(post_prompt(http(), small_picture(1), ""));
    const json::value& cached = entry.at("status").at("messages").at(1);
    EXPECT_EQ(cached.at(0), "execution_cached");
    EXPECT_EQ(cached.at(1).at("nodes"), json::value(json::array{"1", "2", "3"}));
}

TEST_F(NativeEngine, AnInterruptedRunNamesTheNode) {
    start_engine();
    const auto listener = socket("me");
    json::object graph = small_picture(1);
    graph["1"].as_object()["inputs"].as_object()["width"] = 1024;
    graph["1"].as_object()["inputs"].as_object()["height"] = 1024;
    graph["1"].as_object()["inputs"].as_object()["batch_size"] = 64;
    graph["2"] = {
        {"class_type", "ImageBlur"},
        {"inputs", {{"image", json::array{"1", 0}}, {"blur_radius", 31}, {"sigma", 10.0}}}
    };
    const std::string id = post_prompt(http(), graph, "me");
    ASSERT_TRUE(listener->wait_for([](const json::value& message) {
        return type_of(message) == "executing" && message.at("data").at("node") == "2";
    }));
    EXPECT_EQ(http().post("/interrupt", "").status, 200);
    ASSERT_TRUE(wait_end_of(*listener, id));
    const json::value ending = entry_of(id).at("status").at("messages").as_array().back();
    EXPECT_EQ(ending.at(0), "execution_interrupted");
    EXPECT_EQ(ending.at(1).at("node_id"), "2");
    EXPECT_EQ(ending.at(1).at("node_type"), "ImageBlur");
    EXPECT_EQ(ending.at(1).at("executed"), json::value(json::array{"1"}));
}

TEST_F(NativeEngine, AClientThatDoesNotReadIsCutOffAndOthersGoOn) {
    start_engine({"--set", "limits.streams=2"});
    SilentReader silent(comfyd_->url(), "/ws?clientId=silent");
    ASSERT_TRUE(silent.connected());
    const auto quick = socket("quick");
    // Both places are taken until the silent one is gone.
    EXPECT_FALSE(http().ws("/ws?clientId=third")->connected());
    std::vector<std::string> ids;
    bool is_cut = false;
    for (int i = 0; i < 20 && !is_cut; ++i) {
        const std::string id = post_prompt(http(), long_text(i), "silent");
        ids.push_back(post_prompt(http(), small_picture(2 * i + 1), "quick"));
        ASSERT_TRUE(wait_end_of(*quick, ids.back()));
        entry_of(id);
        is_cut = http().ws("/ws?clientId=third")->connected();
    }
    EXPECT_TRUE(is_cut || wait_until([&] { return http().ws("/ws?clientId=third")->connected(); }));
    ids.push_back(post_prompt(http(), small_picture(1'000), "quick"));
    EXPECT_TRUE(wait_end_of(*quick, ids.back()));
}

}  // namespace
}  // namespace comfyd::support
