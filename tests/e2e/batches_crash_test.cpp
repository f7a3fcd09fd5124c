// Batches over crashes, in numbers, of two tenants, and in front of ComfyUI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>

#include "native_support.hpp"
#include "tenants_support.hpp"

namespace comfyd::support {
namespace {

std::string text_at(const Reply& reply, std::string_view pointer) {
    const json::value value = reply.json_at(pointer);
    return value.is_string() ? std::string(value.get_string()) : "";
}

std::vector<net::FormPart> form(const json::object& workflow, const std::string& csv) {
    return {
        {"workflow", std::nullopt, "", json::serialize(workflow)},
        {"max_attempts", std::nullopt, "", "9"},
        {"file", "sets.csv", "text/csv", csv},
    };
}

// Each with a colour of its own.
std::string colours(int count) {
    std::string csv = "1.color\n";
    for (int i = 0; i < count; ++i) {
        csv += std::to_string(i) + "\n";
    }
    return csv;
}

std::string wait_for_end(
    Http& http, const std::string& id, std::chrono::seconds deadline = std::chrono::seconds(150)
) {
    Reply last;
    wait_until(
        [&] {
            last = http.get("/v2/batches/" + id);
            const std::string status = text_at(last, "/status");
            return status == "completed" || status == "cancelled";
        },
        deadline
    );
    return last.body;
}

std::set<std::string> jobs_of(Http& http, const std::string& id) {
    std::set<std::string> jobs;
    std::istringstream manifest(http.get("/v2/batches/" + id + "/manifest").body);
    for (std::string line; std::getline(manifest, line);) {
        const auto item = json::parse(line);
        EXPECT_EQ(item->at("status"), "completed") << line;
        jobs.insert(std::string(item->at("job_id").as_string()));
    }
    return jobs;
}

std::set<std::string> all_jobs(Http& http) {
    std::set<std::string> jobs;
    std::string cursor;
    do {
        const Reply page = http.get(
            "/v2/workflows/executions?limit=1000" + (cursor.empty() ? "" : "&cursor=" + cursor)
        );
        const json::value listed = page.json_at("/executions");
        for (const json::value& job : listed.as_array()) {
            jobs.insert(std::string(job.at("execution_id").as_string()));
        }
        cursor = text_at(page, "/next_cursor");
    } while (!cursor.empty());
    return jobs;
}

TEST(BatchCrashes, ALoadThatIsCutOffIsRepeatedWithoutLossOrDouble) {
    Comfyd comfyd;
    constexpr int kItems = 3000;
    const auto parts = form(small_picture(), colours(kItems));
    net::Headers key;
    key.set("Idempotency-Key", "load");
    for (int round = 0; round < 6; ++round) {
        std::thread client([&] { comfyd.http().upload("/v2/batches", parts, key); });
        // Somewhere between its first group and its last.
        wait_until(
            [&] {
                const json::value total =
                    comfyd.http().get("/v2/batches").json_at("/batches/0/request_counts/total");
                return total.is_int64() && total.get_int64() > round * 500;
            },
            std::chrono::seconds(10)
        );
        comfyd.kill();
        client.join();
        comfyd.start();
    }
    Reply made;
    ASSERT_TRUE(wait_until([&] {
        made = comfyd.http().upload("/v2/batches", parts, key);
        return made.ok();
    })) << made.body;
    EXPECT_EQ(made.json_at("/request_counts/total"), kItems);
    EXPECT_EQ(comfyd.http().get("/v2/batches").json_at("/count"), 1);
    const std::string id = text_at(made, "/id");
    // Each index is there once, with its own values.
    std::istringstream manifest(comfyd.http().get("/v2/batches/" + id + "/manifest").body);
    int index = 0;
    for (std::string line; std::getline(manifest, line); ++index) {
        const auto item = json::parse(line);
        ASSERT_EQ(item->at("index"), index);
        ASSERT_EQ(item->at("params").at("1.color"), index);
    }
    EXPECT_EQ(index, kItems);
    EXPECT_EQ(comfyd.http().post("/v2/batches/" + id + "/cancel", "").status, 200);
    EXPECT_THAT(wait_for_end(comfyd.http(), id), testing::HasSubstr("cancelled"));
}

TEST(BatchCrashes, ARunThatIsCutOffGoesOnWithoutLossOrDouble) {
    Comfyd comfyd;
    constexpr int kItems = 240;
    Reply made;
    ASSERT_TRUE(wait_until([&] {
        made = comfyd.http().upload("/v2/batches", form(small_picture(), colours(kItems)));
        return made.status == 201;
    })) << made.body;
    const std::string id = text_at(made, "/id");
    for (int round = 0; round < 6; ++round) {
        wait_until(
            [&] {
                const json::value done =
                    comfyd.http().get("/v2/batches/" + id).json_at("/request_counts/completed");
                return done.is_int64() && done.get_int64() >= round * 30;
            },
            std::chrono::seconds(30)
        );
        comfyd.restart();
    }
    const std::string ended = wait_for_end(comfyd.http(), id);
    EXPECT_THAT(ended, testing::HasSubstr("\"completed\":240")) << comfyd.log();
    const auto jobs = jobs_of(comfyd.http(), id);
    EXPECT_EQ(jobs.size(), static_cast<std::size_t>(kItems));
    EXPECT_EQ(all_jobs(comfyd.http()), jobs);
}

TEST(BatchNumbers, TenThousandItemsAndNoMore) {
    Comfyd comfyd({.arguments = {"--set", "batches.in_flight=500"}});
    constexpr int kItems = 10'000;
    std::string csv = "1.color\n";
    for (int i = 0; i < kItems; ++i) {
        csv += "7\n";
    }
    auto parts = form(small_picture(), csv);
    parts.push_back({"reuse", std::nullopt, "", "true"});  // the same picture: made once
    Reply made;
    ASSERT_TRUE(wait_until([&] {
        made = comfyd.http().upload("/v2/batches", parts);
        return made.status != 400;
    })) << made.body;
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    const std::string ended = wait_for_end(comfyd.http(), id, std::chrono::seconds(170));
    EXPECT_THAT(ended, testing::HasSubstr("\"completed\":10000"));
    parts[2].data += "7\n";
    const Reply more = comfyd.http().upload("/v2/batches", parts);
    EXPECT_EQ(more.status, 413) << more.body;
    EXPECT_EQ(comfyd.http().get("/v2/batches").json_at("/count"), 1);
}

class BatchTenants : public TwoTenants {};
INSTANTIATE_TEST_SUITE_P(Workers, BatchTenants, testing::Values(WorkerKind::engine), name_of);

TEST_P(BatchTenants, NothingOfOneIsSeenByAnother) {
    const Reply made = red_->upload("/v2/batches", form(small_picture(), colours(3)));
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    EXPECT_THAT(wait_for_end(*red_, id), testing::HasSubstr("\"completed\":3"));
    for (const char* rest : {"", "/items", "/events", "/manifest", "/zip"}) {
        EXPECT_EQ(blue_->get("/v2/batches/" + id + rest).status, 404) << rest;
        EXPECT_EQ(red_->get("/v2/batches/" + id + rest).status, 200) << rest;
    }
    for (const char* what : {"pause", "resume", "cancel", "retry"}) {
        EXPECT_EQ(blue_->post("/v2/batches/" + id + "/" + what, "").status, 404) << what;
    }
    EXPECT_EQ(blue_->get("/v2/batches").json_at("/count"), 0);
    EXPECT_EQ(blue_->get("/v1/batches").json_at("/data"), json::array());
    EXPECT_EQ(blue_->get("/v1/batches/batch_" + id).status, 404);
    EXPECT_EQ(blue_->post("/v1/batches/batch_" + id + "/cancel", "").status, 404);
    EXPECT_EQ(blue_->get("/v1/files/file-" + id + "-output/content").status, 404);
    EXPECT_EQ(red_->get("/v1/files/file-" + id + "-output/content").status, 200);
    const Reply file = red_->upload(
        "/v1/files", {{"purpose", std::nullopt, "", "batch"}, {"file", "a.jsonl", "", "{}\n"}}
    );
    const std::string file_id = text_at(file, "/id");
    EXPECT_EQ(red_->get("/v1/files/" + file_id).status, 200);
    EXPECT_EQ(blue_->get("/v1/files/" + file_id).status, 404);
    EXPECT_EQ(blue_->get("/v1/files/" + file_id + "/content").status, 404);
    EXPECT_EQ(blue_->del("/v1/files/" + file_id).status, 404);
    EXPECT_EQ(
        blue_
            ->post_json(
                "/v1/batches", {{"input_file_id", file_id}, {"endpoint", "/v2/workflows/execute"}}
            )
            .status,
        404
    );
    EXPECT_EQ(
        blue_
            ->post_json(
                "/v2/batches",
                {{"workflow", small_picture()}, {"input_asset_id", file_id.substr(5)}}
            )
            .status,
        404
    );
}

class BatchesOfComfyUI : public NativeTest {};

TEST_F(BatchesOfComfyUI, PromptsAreSetByTheirName) {
    start();
    std::string csv = "prompt,seed\n";
    for (int i = 0; i < 12; ++i) {
        csv += "\"a cat, number " + std::to_string(i) + "\",random\n";
    }
    const Reply made = http().upload("/v2/batches", form(text_to_image("nothing"), csv));
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string id = text_at(made, "/id");
    EXPECT_THAT(wait_for_end(http(), id), testing::HasSubstr("\"completed\":12"));
    std::istringstream manifest(http().get("/v2/batches/" + id + "/manifest").body);
    int index = 0;
    for (std::string line; std::getline(manifest, line); ++index) {
        const auto item = json::parse(line);
        const std::string asset(item->at("outputs").at(0).at("asset_id").as_string());
        const Reply picture = http().get("/api/v2/assets/" + asset + "/content");
        EXPECT_THAT(picture.body, testing::HasSubstr("a cat, number " + std::to_string(index)));
    }
    EXPECT_EQ(index, 12);
}

}  // namespace
}  // namespace comfyd::support
