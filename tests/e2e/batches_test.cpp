// One workflow with many sets of parameters, over the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "native_support.hpp"
#include "support/comfyd.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

std::string text_at(const Reply& reply, std::string_view pointer) {
    const json::value value = reply.json_at(pointer);
    return value.is_string() ? std::string(value.get_string()) : "";
}

net::FormPart part(std::string name, std::string data, std::optional<std::string> file = {}) {
    return {std::move(name), std::move(file), "", std::move(data)};
}

std::vector<json::value> lines_of(const std::string& body) {
    std::vector<json::value> lines;
    std::istringstream text(body);
    for (std::string line; std::getline(text, line);) {
        auto parsed = json::parse(line);
        EXPECT_TRUE(parsed) << line;
        lines.push_back(parsed ? std::move(*parsed) : json::value());
    }
    return lines;
}

class Batches : public testing::Test {
protected:
    explicit Batches(std::vector<std::string> more = {})
        : comfyd_({.arguments = with_engine(std::move(more))}) {}

    static std::vector<std::string> with_engine(std::vector<std::string> more) {
        more.insert(more.end(), {"--set", "engine.slots=2"});
        return more;
    }
    void SetUp() override {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_.http().get("/object_info/EmptyImage").body.size() > 2;
        })) << comfyd_.log();
    }

    static json::array colours(int count) {
        json::array items;
        for (int i = 0; i < count; ++i) {
            items.emplace_back(json::object{
                {"custom_id", "colour " + std::to_string(i)},
                {"params", json::object{{"1.color", i * 7}}}
            });
        }
        return items;
    }
    Reply post(json::object body, net::Headers headers = {}) {
        if (!body.contains("workflow")) {
            body["workflow"] = small_picture();
        }
        return comfyd_.http().post_json("/v2/batches", body, std::move(headers));
    }
    std::string make(int count, json::object more = {}) {
        more["items"] = colours(count);
        const Reply made = post(std::move(more));
        EXPECT_EQ(made.status, 201) << made.body;
        return text_at(made, "/id");
    }
    Reply batch(const std::string& id, const std::string& rest = "") {
        return comfyd_.http().get("/v2/batches/" + id + rest);
    }
    Reply act(const std::string& id, const std::string& what) {
        return comfyd_.http().post("/v2/batches/" + id + "/" + what, "");
    }
    Reply wait_for(
        const std::string& id,
        const std::string& status,
        std::chrono::seconds deadline = std::chrono::seconds(120)
    ) {
        Reply last;
        EXPECT_TRUE(wait_until(
            [&] {
                last = batch(id);
                return text_at(last, "/status") == status;
            },
            deadline
        )) << last.body
           << comfyd_.log();
        return last;
    }
    // Every item has one job of its own, and there are no others.
    void expect_each_once(const std::string& id, int count) {
        std::set<std::string> jobs;
        for (const json::value& line : lines_of(batch(id, "/manifest").body)) {
            EXPECT_EQ(line.at("status"), "completed") << json::serialize(line);
            jobs.insert(std::string(line.at("job_id").as_string()));
        }
        EXPECT_EQ(jobs.size(), static_cast<std::size_t>(count));
        std::set<std::string> stored;
        std::string cursor;
        do {
            const Reply page = comfyd_.http().get(
                "/v2/workflows/executions?limit=1000" + (cursor.empty() ? "" : "&cursor=" + cursor)
            );
            ASSERT_EQ(page.status, 200) << page.body;
            const json::value listed = page.json_at("/executions");
            for (const json::value& job : listed.as_array()) {
                stored.insert(std::string(job.at("execution_id").as_string()));
            }
            cursor = text_at(page, "/next_cursor");
        } while (!cursor.empty());
        EXPECT_EQ(stored, jobs);
    }

    TempDir folder_;
    Comfyd comfyd_;
};

TEST_F(Batches, EachSetBecomesAPictureOfItsOwn) {
    const Reply made = post({{"items", colours(20)}, {"name", "twenty"}, {"metadata", {{"a", 1}}}});
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    EXPECT_EQ(made.headers.get("Location"), "/v2/batches/" + id);
    EXPECT_EQ(made.json_at("/request_counts/total"), 20);
    EXPECT_EQ(text_at(made, "/status"), "running");
    const Reply ended = wait_for(id, "completed");
    EXPECT_EQ(ended.json_at("/request_counts/completed"), 20);
    EXPECT_EQ(ended.json_at("/request_counts/failed"), 0);
    EXPECT_EQ(ended.json_at("/progress"), 1.0);
    EXPECT_EQ(text_at(ended, "/name"), "twenty");
    EXPECT_EQ(ended.json_at("/metadata/a"), 1);
    const auto lines = lines_of(batch(id, "/manifest").body);
    ASSERT_EQ(lines.size(), 20U);
    std::set<std::string> hashes;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i].at("index"), static_cast<int>(i));
        EXPECT_EQ(lines[i].at("custom_id"), json::value("colour " + std::to_string(i)));
        EXPECT_EQ(lines[i].at("params").at("1.color"), static_cast<int>(i) * 7);
        hashes.insert(std::string(lines[i].at("outputs").at(0).at("hash").as_string()));
    }
    EXPECT_EQ(hashes.size(), 20U);
    EXPECT_EQ(lines[7].at("outputs").at(0).at("path"), "00007-colour_7.png");
    const Reply page = batch(id, "/items?limit=8&cursor=9");
    EXPECT_EQ(page.json_at("/count"), 8);
    EXPECT_EQ(page.json_at("/items/0/index"), 10);
    EXPECT_EQ(page.json_at("/next_cursor"), "17");
    EXPECT_EQ(batch(id, "/items?status=failed").json_at("/count"), 0);
    const Reply list = comfyd_.http().get("/v2/batches");
    EXPECT_EQ(list.json_at("/batches/0/id").as_string(), id);
    expect_each_once(id, 20);
}

TEST_F(Batches, ACsvFileIsTypedByTheWorkflow) {
    std::string csv =
        "\xEF\xBB\xBF"
        "custom_id;1.color;3.filename_prefix\r\n";
    csv += "red;16711680;\"a \"\"b\"\"\"\r\n";
    csv += "blue;255;\r\n";
    const Reply made = comfyd_.http().upload(
        "/v2/batches",
        {part("workflow", json::serialize(small_picture())),
         part("params", R"({"1.width": 24})"),
         part("file", csv, "colours.csv")}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    wait_for(id, "completed");
    const auto lines = lines_of(batch(id, "/manifest").body);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(
        json::serialize(lines[0].at("params")),
        R"({"1.width":24,"1.color":16711680,"3.filename_prefix":"a \"b\""})"
    );
    EXPECT_EQ(json::serialize(lines[1].at("params")), R"({"1.width":24,"1.color":255})");
}

TEST_F(Batches, WhatIsWrongWithARowIsToldAndNothingStays) {
    const auto upload = [this](const std::string& file, const std::string& name) {
        return comfyd_.http().upload(
            "/v2/batches",
            {part("workflow", json::serialize(small_picture())), part("file", file, name)}
        );
    };
    const Reply wrong = upload("1.color\n1\n2\nmany\n", "a.csv");
    EXPECT_EQ(wrong.status, 400) << wrong.body;
    EXPECT_THAT(text_at(wrong, "/error/message"), HasSubstr("record 3 (line 4)"));
    EXPECT_EQ(wrong.json_at("/error/details/record"), 3);
    EXPECT_EQ(wrong.json_at("/error/details/line"), 4);
    EXPECT_EQ(upload("1.colour\n1\n", "a.csv").status, 400);
    EXPECT_EQ(upload("1.color\n", "a.csv").status, 400);
    EXPECT_EQ(upload("1.color\n1\n", "a.bin").status, 400);
    EXPECT_EQ(upload("{\"1.color\": 1}\n{\n", "a.jsonl").status, 400);
    EXPECT_EQ(upload("[{\"1.color\": 1}", "a.json").status, 400);
    EXPECT_THAT(
        text_at(
            upload(
                std::string(
                    "\xFF\xFE"
                    "1\0",
                    4
                ),
                "a.csv"
            ),
            "/error/message"
        ),
        HasSubstr("UTF-16")
    );
    EXPECT_EQ(post({}).status, 400);
    EXPECT_EQ(post({{"items", json::array{}}}).status, 400);
    EXPECT_EQ(post({{"items", colours(1)}, {"colour", 1}}).status, 400);
    // A workflow that cannot run is refused at once.
    json::object unknown = small_picture();
    unknown["2"].as_object()["class_type"] = "NoSuchNode";
    const Reply refused = post({{"items", colours(3)}, {"workflow", unknown}});
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("NoSuchNode"));
    EXPECT_EQ(comfyd_.http().get("/v2/batches").json_at("/count"), 0);
}

TEST_F(Batches, TheSameKeyMakesOneBatch) {
    net::Headers key;
    key.set("Idempotency-Key", "k1");
    const Reply first = post({{"items", colours(3)}}, key);
    ASSERT_EQ(first.status, 201) << first.body;
    const Reply again = post({{"items", colours(3)}}, key);
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
    EXPECT_EQ(again.json_at("/id"), first.json_at("/id"));
    EXPECT_EQ(post({{"items", colours(4)}}, key).status, 422);
    const std::string id = text_at(first, "/id");
    wait_for(id, "completed");
    expect_each_once(id, 3);
}

TEST_F(Batches, TheArchiveHasAKnownLengthAndParts) {
    const std::string id = make(30);
    const Reply early = batch(id, "/zip");
    if (early.status != 200) {
        EXPECT_EQ(early.status, 409) << early.body;
    }
    wait_for(id, "completed");
    const Reply whole = batch(id, "/zip");
    ASSERT_EQ(whole.status, 200) << whole.body;
    EXPECT_EQ(whole.headers.get("Content-Type"), "application/zip");
    EXPECT_EQ(whole.headers.get("Content-Length"), std::to_string(whole.body.size()));
    const std::string etag(whole.headers.get("ETag"));
    const std::string file = folder_.write("a.zip", whole.body);
    EXPECT_EQ(
        std::system(("python3 -c \"import zipfile,sys; z=zipfile.ZipFile(sys.argv[1]); "
                     "assert z.testzip() is None and len(z.namelist()) == 30, z.namelist()\" " +
                     file)
                        .c_str()),
        0
    );
    std::string joined;
    while (joined.size() < whole.body.size()) {
        net::Headers range;
        const std::size_t last = joined.size() + 777;
        range.set("Range", "bytes=" + std::to_string(joined.size()) + "-" + std::to_string(last));
        range.set("If-Range", etag);
        const Reply piece = comfyd_.http().get("/v2/batches/" + id + "/zip", range);
        ASSERT_EQ(piece.status, 206) << piece.body;
        ASSERT_FALSE(piece.body.empty());
        joined += piece.body;
    }
    EXPECT_EQ(joined, whole.body);
    net::Headers stale;
    stale.set("Range", "bytes=0-9");
    stale.set("If-Range", "\"other\"");
    EXPECT_EQ(comfyd_.http().get("/v2/batches/" + id + "/zip", stale).status, 200);
    net::Headers behind;
    behind.set("Range", "bytes=99999999-");
    EXPECT_EQ(comfyd_.http().get("/v2/batches/" + id + "/zip", behind).status, 416);
    net::Headers known;
    known.set("If-None-Match", etag);
    EXPECT_EQ(comfyd_.http().get("/v2/batches/" + id + "/zip", known).status, 304);
    net::ClientRequest head;
    head.method = "HEAD";
    head.url = "/v2/batches/" + id + "/zip";
    const Reply only_head = comfyd_.http().send(std::move(head));
    EXPECT_EQ(only_head.status, 200);
    EXPECT_EQ(only_head.headers.get("Content-Length"), std::to_string(whole.body.size()));
    comfyd_.restart();
    EXPECT_EQ(batch(id, "/zip").body, whole.body);
}

TEST_F(Batches, TheArchiveIsWholeThoughAnOutputWasDeleted) {
    const std::string id = make(5);
    wait_for(id, "completed");
    const auto names_in = [&](const Reply& archive) {
        const std::string file = folder_.write("left.zip", archive.body);
        Process list(
            {"/usr/bin/python3",
             "-c",
             R"python(
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
print(len(archive.namelist()))
)python",
             file}
        );
        EXPECT_EQ(list.wait(), 0) << list.errors();
        return list.output();
    };
    EXPECT_EQ(names_in(batch(id, "/zip")), "5\n");
    const json::value item = batch(id, "/items").json_at("/items/2");
    const std::string asset(item.at("outputs").at(0).at("asset_id").as_string());
    const Reply removed =
        comfyd_.http().send({.method = "DELETE", .url = "/api/v2/assets/" + asset});
    ASSERT_LT(removed.status, 300) << removed.body;
    const Reply left = batch(id, "/zip");
    EXPECT_EQ(left.headers.get("Content-Length"), std::to_string(left.body.size()));
    EXPECT_EQ(names_in(left), "4\n");
}

TEST_F(Batches, OneThatIsPausedStartsNothing) {
    const Reply made = post({{"items", colours(1000)}});
    const std::string id = text_at(made, "/id");
    ASSERT_EQ(act(id, "pause").status, 200);
    EXPECT_EQ(text_at(batch(id), "/status"), "paused");
    // What was under way ends; the rest waits, also over a restart.
    ASSERT_TRUE(wait_until([&] { return batch(id).json_at("/request_counts/running") == 0; }));
    comfyd_.restart();
    const Reply paused = batch(id);
    EXPECT_EQ(text_at(paused, "/status"), "paused");
    EXPECT_NE(paused.json_at("/request_counts/waiting"), 0);
    ASSERT_EQ(act(id, "resume").status, 200);
    wait_for(id, "completed");
    expect_each_once(id, 1000);
    EXPECT_EQ(act(id, "pause").status, 409);
}

TEST_F(Batches, OneThatIsCancelledEnds) {
    const std::string id = make(2000);
    ASSERT_TRUE(wait_until([&] { return batch(id).json_at("/request_counts/completed") != 0; }));
    ASSERT_EQ(act(id, "cancel").status, 200);
    const Reply ended = wait_for(id, "cancelled");
    const json::value counts = ended.json_at("/request_counts");
    EXPECT_EQ(counts.at("completed").as_int64() + counts.at("cancelled").as_int64(), 2000)
        << ended.body;
    EXPECT_GT(counts.at("cancelled").as_int64(), 0);
    EXPECT_EQ(act(id, "cancel").status, 200);
    EXPECT_EQ(batch(id, "/zip").status, 200);
    // Nothing of it waits in the queue.
    EXPECT_TRUE(wait_until([&] {
        return comfyd_.http().get("/queue").json_at("/queue_pending") == json::array();
    }));
}

TEST_F(Batches, WhatFailsIsListedAndCanBeRunAgain) {
    // The engine refuses to load what is not there; the first of them is good.
    WebhookReceiver receiver;
    json::array items = colours(6);
    for (const std::size_t index : {2U, 4U}) {
        items[index].as_object()["params"].as_object()["1.width"] = 16384;
        items[index].as_object()["params"].as_object()["1.height"] = 16384;
        items[index].as_object()["params"].as_object()["1.batch_size"] = 64;
    }
    json::object body{{"items", items}, {"max_attempts", 1}};
    body["webhook_config"] = json::object{{"url", receiver.url()}, {"secret", "s"}};
    receiver.script_statuses({500, 200});
    const Reply made = post(body);
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    auto stream = comfyd_.http().events("/v2/batches/" + id + "/events");
    const Reply ended = wait_for(id, "completed");
    EXPECT_EQ(ended.json_at("/request_counts/completed"), 4);
    EXPECT_EQ(ended.json_at("/request_counts/failed"), 2);
    ASSERT_TRUE(receiver.wait_for(2));
    const auto told = receiver.requests();
    EXPECT_EQ(told[0].body, told[1].body);
    EXPECT_EQ(told[0].headers.get("webhook-id"), told[1].headers.get("webhook-id"));
    EXPECT_EQ(told[0].headers.get("X-Webhook-Event"), "batch.completed");
    EXPECT_FALSE(told[0].headers.get("webhook-signature").empty());
    const json::value news = told[0].json();
    EXPECT_EQ(news.at("type"), "batch.completed");
    EXPECT_EQ(news.at("data").at("request_counts").at("failed"), 2);
    ASSERT_EQ(news.at("data").at("failures").as_array().size(), 2U);
    EXPECT_EQ(news.at("data").at("failures").at(0).at("index"), 2);
    EXPECT_EQ(news.at("data").at("failures").at(0).at("custom_id"), "colour 2");
    const auto last =
        stream->wait_for([](const SseEvent& event) { return event.type == "completed"; });
    ASSERT_TRUE(last);
    EXPECT_EQ(last->json().at("failures").as_array().size(), 2U);
    EXPECT_TRUE(stream->wait_end());

    ASSERT_EQ(act(id, "retry").status, 200);
    const Reply again = wait_for(id, "completed");
    EXPECT_EQ(again.json_at("/request_counts/failed"), 2);
    ASSERT_TRUE(receiver.wait_for(3));
    EXPECT_NE(receiver.requests()[2].headers.get("webhook-id"), told[0].headers.get("webhook-id"));
}

TEST_F(Batches, TheEndIsToldToThoseWhoseFilterNamesIt) {
    WebhookReceiver receiver;
    const auto endpoint = [&](const std::string& path, json::object more) {
        more["url"] = receiver.url(path);
        const Reply made = comfyd_.http().post_json("/v2/webhooks/endpoints", more);
        EXPECT_EQ(made.status, 201) << made.body;
    };
    endpoint("/jobs", {});
    endpoint("/both", {{"events", {"batch.completed", "batch.cancelled"}}});
    endpoint("/cloud", {{"events", {"batch.completed"}}, {"body", "cloudevents"}});
    endpoint("/cancelled", {{"events", {"batch.cancelled"}}});
    const json::object own{{"url", receiver.url("/own")}, {"events", {"batch.cancelled"}}};
    const std::string id = make(2, {{"webhook_config", own}});
    wait_for(id, "completed");
    // Two jobs, and the two who are told of the batch.
    ASSERT_TRUE(receiver.wait_for(4)) << comfyd_.log();
    std::map<std::string, std::string> told;
    for (const ReceivedRequest& request : receiver.requests()) {
        const json::value body = request.json();
        told[request.path] += std::string(body.at("type").as_string()) + " ";
        EXPECT_FALSE(request.headers.get("webhook-signature").empty());
        if (request.path == "/cloud") {
            EXPECT_EQ(body.at("source"), "/v2/batches");
            EXPECT_EQ(body.at("subject"), json::value(id));
            EXPECT_EQ(body.at("data").at("batch_id"), json::value(id));
        }
    }
    EXPECT_EQ(
        told,
        (std::map<std::string, std::string>{
            {"/jobs", "execution.completed execution.completed "},
            {"/both", "batch.completed "},
            {"/cloud", "batch.completed "},
        })
    );
    const Reply deaf = post(
        {{"items", colours(1)},
         {"webhook_config", {{"url", receiver.url()}, {"events", {"execution.completed"}}}}}
    );
    EXPECT_EQ(deaf.status, 400) << deaf.body;
    EXPECT_NE(deaf.body.find("webhook_config.events"), std::string::npos) << deaf.body;
}

TEST_F(Batches, AStoredWorkflowIsRunByItsName) {
    net::Headers headers;
    headers.set("Content-Type", "application/json");
    json::object body{
        {"workflow", small_picture()},
        {"parameters", {{"colour", {{"target", "1.color"}, {"maximum", 1000}}}, {"size", "1.width"}}
        }
    };
    ASSERT_EQ(
        comfyd_.http().put("/v2/workflows/plain", json::serialize(body), headers).status, 201
    );
    const Reply made = post(
        {{"workflow", "plain"},
         {"items",
          json::array{json::object{{"colour", 1}}, json::object{{"colour", 2}, {"size", 8}}}}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(text_at(made, "/workflow_id"), "plain");
    wait_for(text_at(made, "/id"), "completed");
    const Reply wrong =
        post({{"workflow", "plain"}, {"items", json::array{json::object{{"colour", 1001}}}}});
    EXPECT_EQ(wrong.status, 400);
    EXPECT_THAT(text_at(wrong, "/error/message"), HasSubstr("at most 1000"));
    const Reply strange =
        post({{"workflow", "plain"}, {"items", json::array{json::object{{"1.color", 1}}}}});
    EXPECT_EQ(strange.status, 400);
    EXPECT_EQ(post({{"workflow", "nothing"}, {"items", colours(1)}}).status, 404);
}

TEST_F(Batches, AFileThatWasUploadedBeforeIsTaken) {
    const Reply asset = comfyd_.http().upload(
        "/api/v2/assets", {part("file", "{\"1.color\": 5}\n{\"1.color\": 6}\n", "sets.jsonl")}
    );
    ASSERT_TRUE(asset.ok()) << asset.body;
    const Reply made = post({{"input_asset_id", text_at(asset, "/id")}});
    ASSERT_EQ(made.status, 201) << made.body;
    wait_for(text_at(made, "/id"), "completed");
    EXPECT_EQ(post({{"input_asset_id", "00000000-0000-7000-8000-000000000000"}}).status, 404);
}

TEST_F(Batches, OpenAIsShapeIsSpokenToo) {
    std::string lines;
    for (int i = 0; i < 4; ++i) {
        json::object workflow = small_picture(i);
        if (i == 2) {
            workflow["2"].as_object()["class_type"] = "NoSuchNode";
        }
        lines += json::serialize(json::object{
                     {"custom_id", "request-" + std::to_string(i)},
                     {"method", "POST"},
                     {"url", "/v2/workflows/execute"},
                     {"body", {{"workflow", std::move(workflow)}}}
                 }) +
                 "\n";
    }
    const Reply file = comfyd_.http().upload(
        "/v1/files", {part("purpose", "batch"), part("file", lines, "requests.jsonl")}
    );
    ASSERT_EQ(file.status, 200) << file.body;
    EXPECT_EQ(file.json_at("/bytes"), lines.size());
    const std::string file_id = text_at(file, "/id");
    EXPECT_EQ(comfyd_.http().get("/v1/files/" + file_id + "/content").body, lines);
    EXPECT_EQ(comfyd_.http().get("/v1/files/" + file_id).json_at("/filename"), "requests.jsonl");
    const Reply made = comfyd_.http().post_json(
        "/v1/batches",
        {{"input_file_id", file_id},
         {"endpoint", "/v2/workflows/execute"},
         {"completion_window", "24h"},
         {"metadata", {{"k", "v"}}}}
    );
    ASSERT_EQ(made.status, 200) << made.body;
    const std::string id = text_at(made, "/id");
    EXPECT_THAT(id, testing::StartsWith("batch_"));
    Reply ended;
    ASSERT_TRUE(wait_until(
        [&] {
            ended = comfyd_.http().get("/v1/batches/" + id);
            return text_at(ended, "/status") == "completed";
        },
        std::chrono::seconds(60)
    )) << ended.body;
    EXPECT_EQ(ended.json_at("/request_counts/completed"), 3);
    EXPECT_EQ(ended.json_at("/request_counts/failed"), 1);
    EXPECT_EQ(ended.json_at("/metadata/k"), "v");
    const auto results = lines_of(
        comfyd_.http().get("/v1/files/" + text_at(ended, "/output_file_id") + "/content").body
    );
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[2].at("custom_id"), "request-3");
    EXPECT_EQ(results[2].at("response").at("status_code"), 200);
    const std::string url(
        results[2].at("response").at("body").at("outputs").at(0).at("url").as_string()
    );
    EXPECT_EQ(comfyd_.http().get(url.substr(comfyd_.url().size())).status, 200);
    const auto errors = lines_of(
        comfyd_.http().get("/v1/files/" + text_at(ended, "/error_file_id") + "/content").body
    );
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].at("custom_id"), "request-2");
    EXPECT_THAT(
        std::string(errors[0].at("error").at("message").as_string()), HasSubstr("NoSuchNode")
    );
    EXPECT_EQ(comfyd_.http().get("/v1/batches").json_at("/data/0/id").as_string(), id);
    EXPECT_EQ(comfyd_.http().post("/v1/batches/" + id + "/cancel", "").status, 200);
    EXPECT_EQ(comfyd_.http().get("/v1/batches/batch_no").status, 404);
    EXPECT_EQ(
        comfyd_.http()
            .post_json("/v1/batches", {{"input_file_id", file_id}, {"endpoint", "/v1/chat"}})
            .status,
        400
    );
    EXPECT_EQ(comfyd_.http().del("/v1/files/" + file_id).status, 200);
    EXPECT_EQ(comfyd_.http().get("/v1/files/" + file_id).status, 404);
}

TEST_F(Batches, TheDocumentKnowsTheRoutes) {
    const json::value document = comfyd_.http().get("/openapi.json").json();
    const json::object& paths = document.at("paths").as_object();
    for (const char* path :
         {"/v2/batches",
          "/v2/batches/{id}",
          "/v2/batches/{id}/items",
          "/v2/batches/{id}/events",
          "/v2/batches/{id}/pause",
          "/v2/batches/{id}/resume",
          "/v2/batches/{id}/cancel",
          "/v2/batches/{id}/retry",
          "/v2/batches/{id}/manifest",
          "/v2/batches/{id}/zip",
          "/v1/files",
          "/v1/files/{id}",
          "/v1/files/{id}/content",
          "/v1/batches",
          "/v1/batches/{id}",
          "/v1/batches/{id}/cancel"}) {
        EXPECT_TRUE(paths.contains(path)) << path;
    }
}

TEST_F(Batches, TheCommandNamesFilesAfterRowsAndGoesOn) {
    const std::string workflow = folder_.write("square.json", json::serialize(small_picture()));
    std::string csv = "custom_id,1.color\n";
    for (int i = 0; i < 12; ++i) {
        csv += "row" + std::to_string(i) + "," + std::to_string(i) + "\n";
    }
    const std::string table = folder_.write("colours.csv", csv);
    const std::vector<std::string> command{
        COMFYD_BINARY,
        "run",
        workflow,
        "--csv",
        table,
        "-o",
        folder_ / "out",
        "--url",
        comfyd_.url()
    };
    // Cut off in the middle: the same command goes on with the same batch.
    Process first(command);
    ASSERT_TRUE(wait_until([&] { return comfyd_.http().get("/v2/batches").json_at("/count") != 0; })
    );
    first.kill(SIGKILL);
    first.wait();
    Process second(command);
    ASSERT_EQ(second.wait(), 0) << second.errors();
    EXPECT_EQ(comfyd_.http().get("/v2/batches").json_at("/count"), 1);
    for (int i = 0; i < 12; ++i) {
        const std::string name =
            (i < 10 ? "0000" : "000") + std::to_string(i) + "-row" + std::to_string(i) + ".png";
        EXPECT_TRUE(std::filesystem::exists(folder_ / ("out/" + name))) << name;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out/.comfyd-batch.json"));
    const std::string id = text_at(comfyd_.http().get("/v2/batches"), "/batches/0/id");
    const auto batches = [&](std::vector<std::string> more) {
        std::vector<std::string> all{COMFYD_BINARY, "batches"};
        all.insert(all.end(), more.begin(), more.end());
        all.insert(all.end(), {"--url", comfyd_.url()});
        return all;
    };
    Process list(batches({"list"}));
    ASSERT_EQ(list.wait(), 0) << list.errors();
    EXPECT_THAT(list.output(), HasSubstr(id));
    Process show(batches({"show", id}));
    ASSERT_EQ(show.wait(), 0) << show.errors();
    EXPECT_THAT(show.output(), HasSubstr("12 of 12 completed"));
    Process zip(batches({"zip", id, "-o", folder_ / "all.zip"}));
    ASSERT_EQ(zip.wait(), 0) << zip.errors();
    EXPECT_GT(std::filesystem::file_size(folder_ / "all.zip"), 1000U);
    Process pause(batches({"pause", id}));
    EXPECT_EQ(pause.wait(), 2);
    EXPECT_THAT(pause.errors(), HasSubstr("is completed and cannot be paused"));
    Process wrong(
        {COMFYD_BINARY,
         "run",
         workflow,
         "--csv",
         folder_.write("bad.csv", "a\n1\n"),
         "-o",
         folder_ / "bad",
         "--url",
         comfyd_.url()}
    );
    EXPECT_EQ(wrong.wait(), 2);
    EXPECT_THAT(wrong.errors(), HasSubstr("record 1 (line 2)"));
}

}  // namespace
}  // namespace comfyd::support
