// Dead letters over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::ScriptedWorker;
using test::self_of;
using test::submission;
using test::submit_job;
using test::TestApi;
using test::text;

constexpr const char* kPath = "/api/v2/dead-letters";

json::object letters(TestApi& api, const std::string& query = "") {
    const auto response = api.get(kPath + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse(response.body);
}

std::size_t count(TestApi& api, const std::string& query = "") {
    return letters(api, query).at("dead_letters").as_array().size();
}

// Failed jobs of the given number, each at its own time.
std::vector<std::string> fail_jobs(TestApi& api, int number) {
    api.open_worker(ScriptedWorker::Script::fail);
    std::vector<std::string> ids;
    for (int i = 0; i < number; ++i) {
        api.clock.advance(Millis(1));
        const json::object job = submit_job(api, R"(,"workflow_id":"w","metadata":{"a":1})");
        ids.push_back(text(job, "id"));
        api.wait_for_status(self_of(job), "failed");
    }
    return ids;
}

TEST(DeadLetters, AreTheJobsThatFailedWithTheirCauses) {
    TestApi api;
    EXPECT_EQ(count(api), 0U);
    const auto ids = fail_jobs(api, 3);
    const json::object listed = letters(api);
    ASSERT_EQ(listed.at("dead_letters").as_array().size(), 3U);
    const json::object& newest = listed.at("dead_letters").at(0).as_object();
    EXPECT_EQ(text(newest, "id"), ids.back());
    EXPECT_EQ(text(newest, "cause"), "node_error");
    EXPECT_EQ(text(newest, "category"), "execution_error");
    EXPECT_EQ(text(newest, "node_id"), "3");
    EXPECT_EQ(text(newest, "worker"), "scripted");
    EXPECT_EQ(text(newest, "message"), "the sampler burst");
    EXPECT_FALSE(text(newest, "advice").empty());
    EXPECT_EQ(count(api, "?cause=node_error"), 3U);
    EXPECT_EQ(count(api, "?cause=cuda_fault"), 0U);
}

TEST(DeadLetters, ComePageByPage) {
    TestApi api;
    fail_jobs(api, 5);
    for (const std::string filter : {"", "&cause=node_error"}) {
        std::string cursor;
        std::size_t seen = 0;
        for (int page = 0; page < 3; ++page) {
            const json::object listed =
                letters(api, "?limit=2" + filter + (cursor.empty() ? "" : "&cursor=" + cursor));
            seen += listed.at("dead_letters").as_array().size();
            EXPECT_EQ(listed.at("next_cursor").is_null(), page == 2) << page;
            cursor = page == 2 ? "" : text(listed, "next_cursor");
        }
        EXPECT_EQ(seen, 5U);
    }
}

TEST(DeadLetters, OneShowsAllThatIsKnown) {
    TestApi api;
    const auto ids = fail_jobs(api, 1);
    const auto response = api.get(std::string(kPath) + "/" + ids[0]);
    ASSERT_EQ(response.status, 200) << response.body;
    const json::object letter = parse(response.body);
    EXPECT_EQ(letter.at("workflow"), parse(test::kWorkflow));
    ASSERT_EQ(letter.at("attempts").as_array().size(), 1U);
    EXPECT_EQ(letter.at("attempts").at(0).at("cause"), "node_error");
    EXPECT_EQ(letter.at("attempts").at(0).at("worker"), "scripted");
    EXPECT_EQ(letter.at("details").at("node_type"), "KSampler");
    EXPECT_TRUE(letter.at("outputs").as_array().empty());
    const json::object job = parse(api.get("/api/v2/jobs/" + ids[0]).body);
    EXPECT_EQ(job.at("attempts"), letter.at("attempts"));
    EXPECT_EQ(job.at("error").at("cause"), "node_error");
}

TEST(DeadLetters, AreRunAgainWithChangesAsNewJobs) {
    TestApi api;
    const auto ids = fail_jobs(api, 1);
    const std::string path = std::string(kPath) + "/" + ids[0] + "/retry";
    const auto refused = api.post(path, R"({"inputs":{"99.nothing":1}})");
    EXPECT_EQ(refused.status, 422) << refused.body;
    api.open_worker(ScriptedWorker::Script::succeed);
    const auto made = api.post(path, R"({"inputs":{"1.width":16},"priority":9,"timeout":7})");
    ASSERT_EQ(made.status, 201) << made.body;
    const json::object job = parse(made.body);
    EXPECT_NE(text(job, "id"), ids[0]);
    EXPECT_EQ(text(job, "retried_from"), ids[0]);
    EXPECT_EQ(job.at("priority"), 9);
    EXPECT_EQ(text(job, "workflow_id"), "w");
    EXPECT_EQ(job.at("metadata"), parse(R"({"a":1})"));
    const json::object changed = parse(api.get(self_of(job) + "/workflow").body);
    EXPECT_EQ(changed.at("workflow").at("1").at("inputs").at("width"), 16);
    EXPECT_EQ(count(api), 1U) << "the dead letter stays";
}

TEST(DeadLetters, ArePurgedOneByOneOrByTheirCause) {
    TestApi api;
    const auto ids = fail_jobs(api, 4);
    EXPECT_EQ(api.send("DELETE", std::string(kPath) + "/" + ids[0]).status, 200);
    EXPECT_EQ(count(api), 3U);
    EXPECT_EQ(api.get("/api/v2/jobs/" + ids[0]).status, 404);
    const auto none = api.post(std::string(kPath) + "/purge", R"({"cause":"hung"})");
    EXPECT_EQ(parse(none.body).at("purged"), 0);
    const auto all = api.post(std::string(kPath) + "/purge", R"({"cause":"node_error"})");
    EXPECT_EQ(parse(all.body).at("purged"), 3) << all.body;
    EXPECT_EQ(parse(all.body).at("more"), false);
    EXPECT_EQ(count(api), 0U);
}

TEST(DeadLetters, WrongQuestionsNameTheField) {
    TestApi api;
    for (const char* query : {"limit=0", "limit=201", "limit=x", "cursor=x", "cause=luck"}) {
        const auto response = api.get(std::string(kPath) + "?" + query);
        EXPECT_EQ(response.status, 422) << query;
        const std::string field(query, std::string_view(query).find('='));
        EXPECT_EQ(parse(response.body).at("error").at("details").at("field"), json::value(field));
    }
    EXPECT_EQ(api.post(std::string(kPath) + "/purge", R"({"cause":"luck"})").status, 422);
    EXPECT_EQ(api.post(std::string(kPath) + "/purge", R"({"created_before":"now"})").status, 422);
    EXPECT_EQ(api.post(std::string(kPath) + "/purge", "[]").status, 422);
}

TEST(DeadLetters, OnesThatAreNoneOrAnothersAreNotFound) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("acme-key")}, {"b", "other", auth::hash_key("other-key")}
    };
    TestApi api(std::move(arrangement));
    const auto as = [](const char* key) { return header("Authorization", key); };
    const auto waiting = api.post("/api/v2/jobs", submission(), as("Bearer acme-key"));
    const std::string id = text(parse(waiting.body), "id");
    EXPECT_EQ(api.get(std::string(kPath) + "/" + id, as("Bearer acme-key")).status, 404);
    api.open_worker(ScriptedWorker::Script::fail);
    for (int tries = 0; tries < 100'000; ++tries) {
        if (api.get(std::string(kPath) + "/" + id, as("Bearer acme-key")).status == 200) {
            break;
        }
    }
    const std::string path = std::string(kPath) + "/" + id;
    EXPECT_EQ(api.get(path, as("Bearer other-key")).status, 404);
    EXPECT_EQ(api.post(path + "/retry", "{}", as("Bearer other-key")).status, 404);
    EXPECT_EQ(api.send("DELETE", path, {}, as("Bearer other-key")).status, 404);
    const auto purged = api.post(std::string(kPath) + "/purge", "{}", as("Bearer other-key"));
    EXPECT_EQ(parse(purged.body).at("purged"), 0);
    EXPECT_EQ(
        api.get(std::string(kPath) + "?all_tenants=true", as("Bearer other-key")).status, 403
    );
    EXPECT_EQ(api.get(path, as("Bearer acme-key")).status, 200);
}

}  // namespace
}  // namespace comfyd::api
