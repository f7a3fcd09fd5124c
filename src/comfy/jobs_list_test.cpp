#include "comfy/jobs_list.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace comfyd::comfy {
namespace {

TEST(JobsQuery, ReadsWhatIsAskedFor) {
    const auto query = parse_jobs_query({
        {"status", "pending, failed,"},
        {"workflow_id", "w"},
        {"sort_by", "execution_duration"},
        {"sort_order", "asc"},
        {"limit", "5"},
        {"offset", "-3"},
        {"other", "x"},
    });
    ASSERT_TRUE(query);
    EXPECT_EQ(query->statuses, (std::vector{JobStatus::pending, JobStatus::failed}));
    EXPECT_EQ(query->workflow_id, "w");
    EXPECT_TRUE(query->by_duration);
    EXPECT_TRUE(query->ascending);
    EXPECT_EQ(query->limit, 5U);
    EXPECT_EQ(query->offset, 0U) << "a negative one is none";
    EXPECT_TRUE(query->wants(JobStatus::failed));
    EXPECT_FALSE(query->wants(JobStatus::completed));
    EXPECT_TRUE(JobsQuery{}.wants(JobStatus::completed));
}

TEST(JobsQuery, SaysWhatIsWrong) {
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"status", "done"},
             {"sort_by", "name"},
             {"sort_order", "up"},
             {"limit", "0"},
             {"limit", "1.5"},
             {"limit", ""},
             {"offset", "x"},
         }) {
        const auto query = parse_jobs_query({{name, value}});
        ASSERT_FALSE(query) << name << value;
        EXPECT_NE(query.error().find(name), std::string::npos);
    }
}

TEST(JobsQuery, NumbersHaveNoEnd) {
    EXPECT_EQ(python_integer("99999999999999999999"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(python_integer("-99999999999999999999"), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(python_integer("-7"), -7);
    for (const char* text : {"", "x", "1.5", "7x"}) {
        EXPECT_FALSE(python_integer(text)) << text;
    }
}

TEST(JobStatus, Names) {
    for (const char* name : {"pending", "in_progress", "completed", "failed", "cancelled"}) {
        EXPECT_EQ(to_string(*parse_job_status(name)), name);
    }
    EXPECT_FALSE(parse_job_status("queued"));
}

TEST(Pagination, SaysWhetherThereIsMore) {
    JobsQuery query;
    query.limit = 2;
    query.offset = 1;
    EXPECT_EQ(
        pagination(query, 4, true),
        *json::parse_object(R"({"offset": 1, "limit": 2, "total": 4, "has_more": true})")
    );
    EXPECT_EQ(pagination(query, 3, false).at("has_more"), false);
}

TEST(OutputsSummary, CountsAndPicksASavedPicture) {
    const auto outputs = *json::parse_object(R"({
        "1": {"images": [{"filename": "t.png", "subfolder": "", "type": "temp"}], "animated": [false]},
        "2": {"images": [{"filename": "a.png", "subfolder": "", "type": "output"}]},
        "3": {"text": ["hello", "you"]},
        "4": {"files": [{"filename": "x.bin", "type": "output"}], "gifs": [{"filename": "v.mp4", "format": "video/h264"}]},
        "5": null})");
    const OutputsSummary summary = summarise_outputs(outputs);
    EXPECT_EQ(summary.count, 4U);
    EXPECT_EQ(summary.previewable, 3U);
    ASSERT_TRUE(summary.preview);
    EXPECT_EQ(summary.preview->at("filename"), "a.png");
    EXPECT_EQ(summary.preview->at("nodeId"), "2");
    EXPECT_EQ(summary.preview->at("mediaType"), "images");
    json::object job;
    add_summary(job, {});
    EXPECT_EQ(job, *json::parse_object(R"({"outputs_count": 0, "previewable_outputs_count": 0})"));
}

TEST(OutputsSummary, ATextIsShownWhereThereIsNothingElse) {
    const auto preview_of = [](std::string_view outputs) {
        return summarise_outputs(*json::parse_object(outputs)).preview.value_or(json::object());
    };
    const auto text =
        summarise_outputs(*json::parse_object(R"({"7": {"text": ["hello", "you"]}})"));
    EXPECT_EQ(text.count, 0U);
    EXPECT_EQ(text.previewable, 0U);
    EXPECT_EQ(
        *text.preview,
        *json::parse_object(R"({"content": "hello", "nodeId": "7", "mediaType": "text"})")
    );
    const std::string file = R"("3": {"files": [{"filename": "a.MD", "type": "output"}]})";
    const std::string seen = R"("4": {"images": [{"filename": "t.png", "type": "temp"}]})";
    EXPECT_EQ(preview_of(R"({"1": {"text": ["x"]}, )" + file + "}").at("filename"), "a.MD");
    EXPECT_EQ(preview_of("{" + file + ", " + seen + "}").at("filename"), "t.png");
    EXPECT_EQ(preview_of(R"({"1": {"result": ["m.glb", null]}})").at("mediaType"), "3d");

    std::string umlauts;
    for (int i = 0; i < 2'000; ++i) {
        umlauts += "ä";
    }
    const json::object cut = preview_of(R"({"1": {"text": [")" + umlauts + R"("]}})");
    EXPECT_EQ(cut.at("truncated"), true);
    EXPECT_EQ(cut.at("content").as_string().size(), 2 * 1'024U);
}

TEST(WorkflowId, IsThatOfTheEditor) {
    EXPECT_EQ(
        workflow_id_of(*json::parse_object(R"({"extra_pnginfo": {"workflow": {"id": "w"}}})")), "w"
    );
    for (const char* without :
         {"{}", R"({"extra_pnginfo": null})", R"({"extra_pnginfo": {"workflow": null}})"}) {
        EXPECT_EQ(workflow_id_of(*json::parse_object(without)), "");
    }
}

}  // namespace
}  // namespace comfyd::comfy
