// Prompts, queue, history and jobs over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "standalone/test_support.hpp"

namespace comfyd::standalone {
namespace {

using support::Reply;
using support::wait_until;
using test::long_work;
using test::parse;
using test::small_picture;
using test::TestServer;

class Prompts : public testing::Test {
protected:
    bool is_running(const std::string& id) {
        const json::value queue = server_.http().get("/queue").json();
        const json::array& running = queue.at("queue_running").as_array();
        return !running.empty() && running[0].at(1) == json::value(id);
    }
    // Occupies the server until it is interrupted.
    std::string occupy(int seed = 0) {
        const std::string id = server_.submit(long_work(seed));
        EXPECT_TRUE(wait_until([&] { return is_running(id); }));
        return id;
    }
    std::vector<std::string> pending() {
        std::vector<std::string> ids;
        const json::value items = server_.http().get("/queue").json_at("/queue_pending");
        for (const json::value& item : items.as_array()) {
            ids.emplace_back(item.at(1).as_string());
        }
        return ids;
    }

    TestServer server_;
};

TEST_F(Prompts, RunAndAreInTheHistory) {
    const Reply reply = server_.post_prompt(small_picture(1), {{"client_id", "me"}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json_at("/number"), 0);
    EXPECT_EQ(reply.json_at("/node_errors"), json::object());
    const std::string id(reply.json_at("/prompt_id").as_string());
    const json::value entry = server_.wait_ended(id);
    ASSERT_TRUE(entry.is_object());
    EXPECT_EQ(
        entry.at("outputs"),
        parse(
            R"({"3": {"images": [{"filename": "small_00001_.png", "subfolder": "", "type": "output"}]}})"
        )
    );
    EXPECT_EQ(
        entry.at("meta"),
        parse(
            R"({"3": {"node_id": "3", "display_node": "3", "parent_node": null, "real_node_id": "3"}})"
        )
    );
    EXPECT_EQ(entry.at("status").at("status_str"), "success");
    EXPECT_EQ(entry.at("status").at("completed"), true);
    const json::array& messages = entry.at("status").at("messages").as_array();
    ASSERT_EQ(messages.size(), 3U);
    EXPECT_EQ(messages[0].at(0), "execution_start");
    EXPECT_EQ(messages[1].at(0), "execution_cached");
    EXPECT_EQ(messages[2].at(0), "execution_success");
    const json::array& item = entry.at("prompt").as_array();
    ASSERT_EQ(item.size(), 5U);
    EXPECT_EQ(item[0], 0);
    EXPECT_EQ(item[1], json::value(id));
    EXPECT_EQ(item[2], json::value(small_picture(1)));
    EXPECT_EQ(item[3].at("client_id"), "me");
    EXPECT_TRUE(item[3].at("create_time").is_number());
    EXPECT_EQ(item[4], json::array{"3"});
}

TEST_F(Prompts, OfEveryRouteAlsoUnderApi) {
    const Reply reply = server_.http().post_json("/api/prompt", {{"prompt", small_picture()}});
    ASSERT_EQ(reply.status, 200);
    server_.wait_ended(std::string(reply.json_at("/prompt_id").as_string()));
    for (const char* path :
         {"/api/queue", "/api/history", "/api/object_info", "/api/system_stats"}) {
        EXPECT_EQ(server_.http().get(path).status, 200) << path;
    }
    EXPECT_EQ(server_.http().get("/jobs").status, 404) << "the prefix belongs to it";
}

TEST_F(Prompts, RefusedOnesSayWhy) {
    struct Case {
        const char* body;
        const char* type;
    };
    for (const Case& wrong : std::vector<Case>{
             {"{}", "no_prompt"},
             {"[]", "no_prompt"},
             {"{", "invalid_json"},
             {R"({"prompt": null})", "invalid_request"},
             {R"({"prompt": {}})", "prompt_no_outputs"},
             {R"({"prompt": {"1": {"class_type": "Nothing", "inputs": {}}}})", "missing_node_type"},
             {R"({"prompt": {}, "prompt_id": "mine"})", "invalid_prompt_id"},
             {R"({"prompt": {}, "number": "x"})", "invalid_request"},
             {R"({"prompt": {"1": {"class_type": "SaveImage", "inputs": {}}}})",
              "prompt_outputs_failed_validation"},
         }) {
        const Reply reply = server_.http().post("/prompt", wrong.body);
        EXPECT_EQ(reply.status, 400) << wrong.body;
        EXPECT_EQ(reply.json_at("/error/type"), wrong.type) << reply.body;
        EXPECT_TRUE(reply.json_at("/node_errors").is_object());
    }
    EXPECT_EQ(server_.http().get("/history").json(), json::object());
}

TEST_F(Prompts, RunTheGoodOutputsWhenOthersAreBad) {
    json::object graph = small_picture(2);
    graph["9"] = parse(R"({"class_type": "SaveImage", "inputs": {"filename_prefix": "x"}})");
    const Reply reply = server_.post_prompt(graph);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_TRUE(reply.json_at("/node_errors/9").is_object()) << reply.body;
    const json::value entry =
        server_.wait_ended(std::string(reply.json_at("/prompt_id").as_string()));
    EXPECT_EQ(entry.at("outputs").as_object().size(), 1U);
}

TEST_F(Prompts, RunOnlyWhatIsAskedFor) {
    json::object graph = small_picture(3);
    graph["4"] = parse(R"({"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}})");
    const json::value entry = server_.run(graph, {{"partial_execution_targets", json::array{"4"}}});
    EXPECT_TRUE(entry.at("outputs").as_object().contains("4"));
    EXPECT_EQ(entry.at("outputs").as_object().size(), 1U);
}

TEST_F(Prompts, RunInTheOrderOfTheirNumbers) {
    const std::string first = occupy();
    const std::string a = server_.submit(small_picture(10));
    const std::string b = server_.submit(small_picture(11), {{"number", 0.5}});
    const std::string c = server_.submit(small_picture(12), {{"front", true}});
    const std::string d = server_.submit(small_picture(13), {{"front", true}});
    EXPECT_EQ(pending(), (std::vector<std::string>{d, c, b, a}));
    EXPECT_EQ(server_.http().get("/prompt").json_at("/exec_info/queue_remaining"), 5);
    server_.http().post("/interrupt", "");
    server_.wait_ended(a);
    std::vector<std::string> order;
    const json::value history = server_.http().get("/history").json();
    for (const auto& [id, entry] : history.as_object()) {
        order.emplace_back(id);
    }
    EXPECT_EQ(order, (std::vector<std::string>{first, d, c, b, a}));
}

TEST_F(Prompts, AnIdMayBeUsedTwiceEvenWithTheSameNumber) {
    const std::string id = "0197f0aa-0000-7000-8000-000000000001";
    occupy();
    for (int color : {21, 22}) {
        server_.submit(small_picture(color), {{"prompt_id", id}, {"number", 1}});
    }
    EXPECT_EQ(pending(), (std::vector<std::string>{id, id}));
    server_.http().post("/interrupt", "{}");
    EXPECT_TRUE(wait_until([&] {
        return server_.http().get("/prompt").json_at("/exec_info/queue_remaining") ==
               json::value(0);
    }));
    const json::value entry = server_.wait_ended(id);
    EXPECT_EQ(entry.at("prompt").at(2), json::value(small_picture(22)));
}

TEST_F(Prompts, AreInterruptedByIdOrWhateverRuns) {
    const std::string id = occupy();
    EXPECT_EQ(server_.http().post_json("/interrupt", {{"prompt_id", "another"}}).status, 200);
    EXPECT_TRUE(is_running(id));
    EXPECT_EQ(server_.http().post_json("/interrupt", {{"prompt_id", id}}).status, 200);
    const json::value entry = server_.wait_ended(id);
    EXPECT_EQ(entry.at("status").at("status_str"), "error");
    EXPECT_EQ(entry.at("status").at("completed"), false);
    EXPECT_EQ(entry.at("status").at("messages").as_array().back().at(0), "execution_interrupted");
    EXPECT_EQ(server_.http().post("/interrupt", "[]").status, 500);
    EXPECT_EQ(server_.http().get("/api/jobs/" + id).json_at("/status"), "cancelled");
}

TEST_F(Prompts, LeaveTheQueueWithoutATrace) {
    const std::string running = occupy();
    const std::string a = server_.submit(small_picture(1));
    const std::string b = server_.submit(small_picture(2));
    const std::string c = server_.submit(small_picture(3));
    server_.http().post_json("/queue", {{"delete", json::array{a, "unknown"}}});
    EXPECT_EQ(pending(), (std::vector<std::string>{b, c}));
    EXPECT_EQ(server_.http().post("/api/jobs/" + b + "/cancel", "").json_at("/cancelled"), true);
    EXPECT_EQ(pending(), (std::vector<std::string>{c}));
    server_.http().post_json("/queue", {{"clear", true}});
    EXPECT_TRUE(pending().empty());
    EXPECT_TRUE(is_running(running)) << "the running one is untouched";
    const Reply cancelled =
        server_.http().post_json("/api/jobs/cancel", {{"job_ids", json::array{running}}});
    EXPECT_EQ(cancelled.json_at("/cancelled"), true) << cancelled.body;
    server_.wait_ended(running);
    EXPECT_EQ(server_.http().get("/history/" + a).json(), json::object());
    EXPECT_EQ(
        server_.http().post_json("/api/jobs/cancel", {{"job_ids", json::array{"x"}}}).status, 400
    );
}

TEST_F(Prompts, ThatFailSayWhereAndTheNextOneRuns) {
    const json::object graph = parse(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 0}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "../../out"}}})"
    );
    const std::string id = server_.submit(graph);
    const json::value entry = server_.wait_ended(id);
    EXPECT_EQ(entry.at("status").at("status_str"), "error");
    const json::value& error = entry.at("status").at("messages").as_array().back();
    EXPECT_EQ(error.at(0), "execution_error");
    EXPECT_EQ(error.at(1).at("node_id"), "2");
    EXPECT_EQ(error.at(1).at("node_type"), "SaveImage");
    EXPECT_EQ(error.at(1).at("executed"), json::array{"1"});
    EXPECT_FALSE(error.at(1).at("exception_type").as_string().empty());
    EXPECT_TRUE(error.at(1).at("exception_message").as_string().ends_with("\n"));
    const json::value job = server_.http().get("/api/jobs/" + id).json();
    EXPECT_EQ(job.at("status"), "failed");
    EXPECT_EQ(job.at("execution_error").at("node_id"), "2");
    EXPECT_EQ(server_.run(small_picture(5)).at("status").at("completed"), true);
}

TEST_F(Prompts, OfTheSameContentAreCachedUntilMemoryIsFreed) {
    const auto cached = [](const json::value& entry) {
        return entry.at("status").at("messages").at(1).at(1).at("nodes").as_array().size();
    };
    EXPECT_EQ(cached(server_.run(small_picture(7))), 0U);
    const json::value again = server_.run(small_picture(7));
    EXPECT_EQ(cached(again), 3U);
    EXPECT_EQ(again.at("outputs").at("3").at("images").at(0).at("filename"), "small_00001_.png");
    EXPECT_EQ(server_.http().post_json("/free", {{"unload_models", true}}).status, 200);
    EXPECT_EQ(cached(server_.run(small_picture(7))), 3U);
    EXPECT_EQ(server_.http().post_json("/free", {{"free_memory", true}}).status, 200);
    EXPECT_EQ(cached(server_.run(small_picture(7))), 0U);
    EXPECT_EQ(server_.http().post("/free", "").status, 500);
}

TEST_F(Prompts, HistoryInPages) {
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i) {
        ids.push_back(server_.submit(small_picture(i)));
        server_.wait_ended(ids.back());
    }
    const auto get = [&](const std::string& query) {
        std::vector<std::string> found;
        const json::value history = server_.http().get("/history" + query).json();
        for (const auto& [id, entry] : history.as_object()) {
            found.emplace_back(id);
        }
        return found;
    };
    using Ids = std::vector<std::string>;
    EXPECT_EQ(get(""), ids);
    EXPECT_EQ(get("?max_items=2"), (Ids{ids[3], ids[4]}));
    EXPECT_EQ(get("?max_items=2&offset=1"), (Ids{ids[1], ids[2]}));
    EXPECT_EQ(get("?max_items=9&offset=4"), (Ids{ids[4]}));
    EXPECT_EQ(get("?offset=3"), (Ids{ids[3], ids[4]}));
    EXPECT_EQ(server_.http().get("/history?max_items=x").status, 500);
    server_.http().post_json("/history", {{"delete", json::array{ids[0]}}});
    EXPECT_EQ(get("").size(), 4U);
    server_.http().post_json("/history", {{"clear", true}});
    EXPECT_TRUE(get("").empty());
}

TEST_F(Prompts, AsJobs) {
    const std::string done = server_.submit(
        small_picture(1),
        {{"extra_data", parse(R"({"extra_pnginfo": {"workflow": {"id": "w1"}}})")}}
    );
    server_.wait_ended(done);
    const std::string running = occupy();
    const std::string waiting = server_.submit(small_picture(2));
    const auto list = [&](const std::string& query) {
        return server_.http().get("/api/jobs" + query).json();
    };
    const json::value all = list("");
    ASSERT_EQ(all.at("jobs").as_array().size(), 3U);
    EXPECT_EQ(all.at("jobs").at(0).at("id"), json::value(waiting)) << "newest first";
    EXPECT_EQ(all.at("jobs").at(0).at("status"), "pending");
    EXPECT_EQ(all.at("jobs").at(1).at("status"), "in_progress");
    const json::value& last = all.at("jobs").at(2);
    EXPECT_EQ(last.at("status"), "completed");
    EXPECT_EQ(last.at("outputs_count"), 1);
    EXPECT_EQ(last.at("workflow_id"), "w1");
    EXPECT_EQ(last.at("preview_output").at("nodeId"), "3");
    EXPECT_EQ(last.at("preview_output").at("mediaType"), "images");
    EXPECT_EQ(
        all.at("pagination"),
        parse(R"({"offset": 0, "limit": null, "total": 3, "has_more": false})")
    );
    EXPECT_EQ(list("?status=completed").at("jobs").as_array().size(), 1U);
    EXPECT_EQ(list("?workflow_id=w1").at("pagination").at("total"), 1);
    const json::value page = list("?limit=1&offset=1&sort_order=asc");
    EXPECT_EQ(page.at("jobs").at(0).at("id"), json::value(running));
    EXPECT_EQ(page.at("pagination").at("has_more"), true);
    for (const char* wrong : {"?limit=0", "?limit=x", "?offset=x", "?status=odd", "?sort_by=odd"}) {
        EXPECT_EQ(server_.http().get(std::string("/api/jobs") + wrong).status, 400) << wrong;
    }
    const json::value details = server_.http().get("/api/jobs/" + done).json();
    EXPECT_TRUE(details.at("outputs").as_object().contains("3"));
    EXPECT_EQ(details.at("execution_status").at("completed"), true);
    EXPECT_EQ(details.at("workflow").at("prompt"), json::value(small_picture(1)));
    EXPECT_EQ(server_.http().get("/api/jobs/unknown").status, 404);
    server_.http().post("/interrupt", "");
}

TEST(Limits, AFullQueueSaysSo) {
    Options options;
    options.pending_max = 1;
    options.history_max = 2;
    TestServer server(options);
    const std::string running = server.submit(long_work());
    ASSERT_TRUE(wait_until([&] {
        return !server.http().get("/queue").json_at("/queue_running").as_array().empty();
    }));
    const std::string waiting = server.submit(small_picture());
    const Reply refused = server.post_prompt(small_picture(1));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.json_at("/error/type"), "queue_full");
    server.http().post("/interrupt", "");
    server.wait_ended(waiting);
    server.run(small_picture(2));
    EXPECT_EQ(server.http().get("/history").json().as_object().size(), 2U) << "the oldest goes";
    EXPECT_EQ(server.http().get("/history/" + running).json(), json::object());
}

// A short prompt may show a long text: what counts is all that is kept of it.
TEST(Limits, TheHistoryEndsByWhatItsEntriesTake) {
    Options options;
    options.history_bytes_max = 2 << 20;
    TestServer server(options);
    const auto long_text = [](const std::string& begin) {
        json::object graph = parse(R"({
            "0": {"class_type": "PrimitiveString", "inputs": {"value": ""}},
            "shown": {"class_type": "PreviewAny", "inputs": {"source": ["15", 0]}}})");
        graph["0"].as_object()["inputs"].as_object()["value"] = begin;
        for (int i = 1; i <= 15; ++i) {  // 2^15 times the text
            const json::array before{json::value(std::to_string(i - 1)), 0};
            graph[std::to_string(i)] = {
                {"class_type", "StringConcatenate"},
                {"inputs", {{"string_a", before}, {"string_b", before}, {"delimiter", ""}}}
            };
        }
        return graph;
    };
    std::vector<std::string> ids;
    for (int i = 0; i < 6; ++i) {
        ids.push_back(server.submit(long_text("number " + std::to_string(i) + "...........")));
        ASSERT_FALSE(server.wait_ended(ids.back()).is_null());
    }
    const json::value history = server.http().get("/history").json();
    ASSERT_EQ(history.as_object().size(), 3U) << "of 0.6 MB each";
    EXPECT_TRUE(history.as_object().contains(ids.back()));
    EXPECT_TRUE(history.as_object().contains(ids[3]));
    EXPECT_GT(
        history.at(ids.back()).at("outputs").at("shown").at("text").at(0).as_string().size(),
        600'000U
    );
}

TEST(Limits, ABodyThatIsTooLarge) {
    Options options;
    options.body_bytes_max = 1'000;
    TestServer server(options);
    const Reply reply = server.http().post("/prompt", std::string(2'000, ' '));
    EXPECT_EQ(reply.status, 413);
    EXPECT_EQ(server.http().get("/features").json_at("/max_upload_size"), 1'000);
}

TEST(Stopping, InterruptsWhatRunsAndStartsAfresh) {
    TestServer server;
    server.submit(long_work());
    auto socket = server.http().ws("/ws");
    ASSERT_TRUE(socket->connected());
    ASSERT_TRUE(wait_until([&] {
        return !server.http().get("/queue").json_at("/queue_running").as_array().empty();
    }));
    server.folder().write("temp/left.png", "x");
    server.folder().write("output/kept.png", "x");
    server.stop();
    EXPECT_TRUE(socket->wait_end());
    socket.reset();
    server.start();
    EXPECT_EQ(server.http().get("/prompt").json_at("/exec_info/queue_remaining"), 0);
    EXPECT_EQ(server.http().get("/view?filename=left.png&type=temp").status, 404);
    EXPECT_EQ(server.http().get("/view?filename=kept.png").status, 200);
    auto second = Server::start(server.options());
    ASSERT_FALSE(second) << "one server for a folder";
    EXPECT_EQ(second.error().code, Code::conflict);
}

}  // namespace
}  // namespace comfyd::standalone
