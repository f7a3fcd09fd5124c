// Jobs in ComfyUI's words, against answers that a real server gave.
#include "api/dialects/native/story.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "api/dialects/native/names.hpp"

namespace comfyd::api::native {
namespace {

json::object recorded(const std::string& name) {
    std::ifstream in(std::string(COMFYD_TEST_DATA) + "/comfyui/http/" + name);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    auto parsed = json::parse_object(text);
    EXPECT_TRUE(parsed) << name;
    return parsed ? *parsed : json::object();
}

constexpr const char* kPrompt = "9f4af943-4281-4d74-803a-c9a0fe29c358";

// The job behind history.json and jobs.json.
jobs::Job finished_job() {
    jobs::Job job;
    job.id = JobId::make(from_unix_ms(1794715336003));
    job.dialect = kDialect;
    job.state = jobs::State::completed;
    job.attempt = 1;
    job.created_at = from_unix_ms(1794715336003);
    job.started_at = from_unix_ms(1794715336004);
    job.finished_at = from_unix_ms(1794715336011);
    job.dialect_data = {
        {"prompt_id", kPrompt},
        {"client_id", "corpus"},
        {"number", 0},
        {"outputs", json::array{"2"}},
    };
    job.ui_outputs = recorded("history.json").at("response").at(kPrompt).at("outputs").as_object();
    return job;
}

jobs::Spec spec_of_history() {
    jobs::Spec spec;
    spec.workflow =
        json::serialize(recorded("history.json").at("response").at(kPrompt).at("prompt").at(2));
    return spec;
}

TEST(NativeStory, AHistoryEntryIsThatOfARealServer) {
    const jobs::Job job = finished_job();
    json::value ours = to_json(view_history(job, spec_of_history(), RunNotes{}));
    json::value theirs = recorded("history.json").at("response").at(kPrompt);
    // The two that differ: where the file lies, and when the cache was looked at.
    json::object& file = ours.at("outputs").at("2").at("images").at(0).as_object();
    EXPECT_EQ(file.at("subfolder").as_string(), job.id.to_string());
    file["subfolder"] = "";
    for (json::value* entry : {&ours, &theirs}) {
        entry->at("status").at("messages").at(1).at(1).as_object()["timestamp"] = 0;
    }
    EXPECT_EQ(json::serialize_canonical(ours), json::serialize_canonical(theirs));
}

TEST(NativeStory, AJobIsSummedUpAsByARealServer) {
    json::object ours = to_json(view_job(finished_job()));
    ours.at("preview_output").as_object()["subfolder"] = "";
    const json::value theirs = recorded("jobs.json").at("response").at("jobs").at(0);
    EXPECT_EQ(json::serialize_canonical(ours), json::serialize_canonical(theirs));
}

TEST(NativeStory, WhatWasTakenOutOfTheQueueLeavesNoTrace) {
    jobs::Job job = finished_job();
    EXPECT_TRUE(is_in_history(job));
    job.state = jobs::State::cancelled;
    EXPECT_TRUE(is_in_history(job));
    job.attempt = 0;
    EXPECT_FALSE(is_in_history(job));
}

TEST(NativeStory, ATracebackHasOneElementForEachFrame) {
    const json::array frames{
        "  File \"/comfyui/execution.py\", line 1, in run\n    result = call()\n",
        "  File \"/comfyui/nodes.py\", line 22, in call\n    raise Boom(\n          ^^^^^\n",
        "  File \"<string>\", line 3, in made_up\n",
    };
    jobs::Job job = finished_job();
    job.state = jobs::State::failed;
    job.failure = jobs::Failure::from(
        Error(Code::node_execution_error, "boom", {{"node_id", "3"}, {"traceback", frames}})
    );
    EXPECT_EQ(ending(job, kPrompt, {}, job.created_at).second.at("traceback"), frames);
    job.failure->traceback = "no frames at all\nin two lines";
    EXPECT_EQ(
        ending(job, kPrompt, {}, job.created_at).second.at("traceback"),
        json::array{"no frames at all\nin two lines"}
    );
    job.failure->traceback.clear();
    EXPECT_EQ(ending(job, kPrompt, {}, job.created_at).second.at("traceback"), json::array());
}

TEST(NativeStory, StoredFilesAreShownByTheNamesThatClientsGave) {
    jobs::Spec spec;
    spec.workflow = R"({"1":{"class_type":"LoadImage","inputs":{"image":
        {"__type":"core/ASSET","info":{"id":"x","name":"cat.png"}}}}})";
    const comfy::server::PromptView item = view_prompt(finished_job(), spec);
    EXPECT_EQ(item.graph.at("1").at("inputs").at("image"), "cat.png");
}

TEST(NativeNames, AFilesFolderSaysWhoseItIs) {
    const JobId job = JobId::make(from_unix_ms(1794715336003));
    EXPECT_EQ(outer_subfolder(job, ""), job.to_string());
    const auto inner = inner_folder(outer_subfolder(job, "a/b"));
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->job, job);
    EXPECT_EQ(inner->subfolder, "a/b");
    EXPECT_FALSE(inner_folder(""));
    EXPECT_FALSE(inner_folder("a/b"));
}

}  // namespace
}  // namespace comfyd::api::native
