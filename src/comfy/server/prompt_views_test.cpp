#include "comfy/server/prompt_views.hpp"

#include <gtest/gtest.h>

namespace comfyd::comfy::server {
namespace {

HistoryView entry(std::string id) {
    HistoryView view;
    view.prompt.number = 3;
    view.prompt.id = std::move(id);
    view.status = run_status(true, {});
    return view;
}

TEST(PromptViews, AHistoryIsAnObjectOfEntries) {
    HistoryPage page;
    EXPECT_EQ(encode(page), "{}");
    page.members = {encode_member(entry("a")), encode_member(entry("b"))};
    const auto read = json::parse_object(encode(page));
    ASSERT_TRUE(read);
    ASSERT_EQ(read->size(), 2U);
    EXPECT_EQ(read->at("b"), *json::parse_object(R"({"prompt": [3, "b", {}, {}, []], "outputs": {},
            "status": {"status_str": "success", "completed": true, "messages": []}, "meta": {}})"));
}

TEST(PromptViews, AJobTellsOnlyWhatIsKnown) {
    JobView job;
    job.id = "a";
    job.priority = 0;
    job.created = from_unix_ms(5);
    EXPECT_EQ(
        to_json(job),
        *json::parse_object(R"({"id": "a", "status": "pending", "priority": 0, "create_time": 5,
            "outputs_count": 0, "previewable_outputs_count": 0})")
    );
    job.status = JobStatus::failed;
    job.started = from_unix_ms(6);
    job.ended = from_unix_ms(7);
    job.error = {{"node_id", "1"}};
    job.details = {.status = run_status(false, {}), .graph = json::object()};
    const json::object told = to_json(job);
    EXPECT_EQ(told.at("execution_end_time"), 7);
    EXPECT_EQ(told.at("execution_error").at("node_id"), "1");
    EXPECT_EQ(told.at("execution_status").at("status_str"), "error");
    EXPECT_TRUE(told.at("workflow").as_object().contains("extra_data"));
    EXPECT_FALSE(told.contains("outputs"));
}

TEST(PromptViews, APageOfJobsSaysWhereItIs) {
    JobsPage page;
    page.total = 9;
    page.has_more = true;
    JobsQuery query;
    query.offset = 4;
    EXPECT_EQ(to_json(page, query), *json::parse_object(R"({"jobs": [],
            "pagination": {"offset": 4, "limit": null, "total": 9, "has_more": true}})"));
}

}  // namespace
}  // namespace comfyd::comfy::server
