// Workflows that are stored under a name: they survive a restart, run for real, and the command
// line knows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

json::object square(int colour) {
    return *json::parse_object(
        R"({"workflow": {
            "1": {"class_type": "EmptyImage",
                  "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": )" +
        std::to_string(colour) + R"(}},
            "2": {"class_type": "SaveImage",
                  "inputs": {"images": ["1", 0], "filename_prefix": "square"}}},
        "description": "A square",
        "parameters": {
            "size": {"target": ["1.width", "1.height"], "minimum": 8, "maximum": 64},
            "name": {"target": "2.filename_prefix", "default": "plain"}}})"
    );
}

Reply put(Comfyd& comfyd, const std::string& path, const json::object& body) {
    net::Headers headers;
    headers.set("Content-Type", "application/json");
    return comfyd.http().put("/v2/workflows/" + path, json::serialize(body), std::move(headers));
}

TEST(NamedWorkflows, SurviveARestartAndRun) {
    Comfyd comfyd;
    ASSERT_EQ(put(comfyd, "square", square(255)).status, 201);
    const Reply second = put(comfyd, "square", square(65280));
    ASSERT_EQ(second.status, 201) << second.body;
    ASSERT_EQ(put(comfyd, "square/labels/production", {{"version", 1}}).status, 200);
    comfyd.restart();
    const Reply shown = comfyd.http().get("/v2/workflows/square");
    ASSERT_EQ(shown.status, 200) << shown.body;
    EXPECT_EQ(shown.json_at("/latest_version"), 2);
    EXPECT_EQ(shown.json_at("/version"), 1);
    EXPECT_EQ(shown.json_at("/workflow/1/inputs/color"), 255);
    EXPECT_EQ(put(comfyd, "square", square(65280)).status, 200);

    const Reply schema = comfyd.http().get("/v2/workflows/square/schema");
    EXPECT_EQ(schema.json_at("/properties/size/type"), "integer");
    EXPECT_EQ(schema.json_at("/properties/size/maximum"), 64);
    EXPECT_EQ(schema.json_at("/properties/name/default"), "plain");
    const Reply document = comfyd.http().get("/openapi.json");
    EXPECT_TRUE(document.json_at("/paths").as_object().contains("/v2/workflows/square/run"));

    const Reply ran = comfyd.http().post_json(
        "/v2/workflows/square/run?wait=60", {{"params", json::object{{"size", 24}}}}
    );
    ASSERT_EQ(ran.status, 200) << ran.body;
    EXPECT_EQ(ran.json_at("/status"), "completed");
    EXPECT_EQ(ran.json_at("/workflow_version"), 1);
    EXPECT_THAT(
        std::string(ran.json_at("/result/outputs/0/name").as_string()), HasSubstr("plain_")
    );
    const Reply wrong = comfyd.http().post_json(
        "/v2/workflows/square/run", {{"params", json::object{{"size", 65}}}}
    );
    EXPECT_EQ(wrong.status, 400);
    EXPECT_EQ(wrong.json_at("/error/details/parameters/0/reason"), "out_of_range");
    EXPECT_EQ(comfyd.http().del("/v2/workflows/square").status, 204);
    comfyd.restart();
    EXPECT_EQ(comfyd.http().get("/v2/workflows/square").status, 404);
}

TEST(NamedWorkflows, TheRunCommandTakesAName) {
    Comfyd comfyd;
    TempDir folder;
    ASSERT_EQ(put(comfyd, "square", square(255)).status, 201);
    const auto run = [&](std::vector<std::string> more) {
        std::vector<std::string> command{
            COMFYD_BINARY, "run", "--url", comfyd.url(), "-o", folder / "out"
        };
        command.insert(command.end(), more.begin(), more.end());
        return command;
    };
    // A text that reads as a number stays a text.
    Process good(run({"square", "--param", "name=42", "--param", "size=8"}));
    ASSERT_EQ(good.wait(), 0) << good.errors();
    EXPECT_TRUE(std::filesystem::exists(folder / "out/42_00001_.png")) << good.output();
    Process pinned(run({"square@1"}));
    EXPECT_EQ(pinned.wait(), 0) << pinned.errors();
    Process wrong(run({"square", "--param", "sise=8"}));
    EXPECT_EQ(wrong.wait(), 2);
    EXPECT_THAT(wrong.errors(), HasSubstr("it has size, name"));
    Process unknown(run({"nothing"}));
    EXPECT_EQ(unknown.wait(), 2);
    EXPECT_THAT(unknown.errors(), HasSubstr("there is no file 'nothing'"));
}

}  // namespace
}  // namespace comfyd::support
