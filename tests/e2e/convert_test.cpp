// Workflows as people have them: the editor's save format and pictures, on the command line and
// over the API.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/crypto.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

constexpr std::string_view kEditorWorkflow = R"({"version":0.4,"nodes":[
    {"id":1,"type":"EmptyImage","widgets_values":[24,16,1,255]},
    {"id":2,"type":"ImageInvert","mode":4,"inputs":[{"name":"image","type":"IMAGE","link":1}]},
    {"id":3,"type":"SaveImage","inputs":[{"name":"images","type":"IMAGE","link":2}],
     "widgets_values":["wide-%EmptyImage.width%"]}],
    "links":[[1,1,0,2,0,"IMAGE"],[2,2,0,3,0,"IMAGE"]]})";

TEST(Convert, TheRunCommandTakesTheEditorsFormatAndPictures) {
    Comfyd comfyd;
    TempDir folder;
    const std::string file = folder.write("editor.json", kEditorWorkflow);
    Process run({COMFYD_BINARY, "run", file, "--url", comfyd.url(), "-o", folder / "out"});
    ASSERT_EQ(run.wait(), 0) << run.errors();
    const std::string picture = folder / "out/wide-24_00001_.png";
    ASSERT_TRUE(std::filesystem::exists(picture)) << run.output();
    // The picture holds the prompt that made it.
    Process again({COMFYD_BINARY, "run", picture, "--url", comfyd.url(), "-o", folder / "again"});
    EXPECT_EQ(again.wait(), 0) << again.errors();
    Process convert({COMFYD_BINARY, "convert", picture});
    EXPECT_EQ(convert.wait(), 0) << convert.errors();
    const auto prompt = json::parse_object(convert.output());
    ASSERT_TRUE(prompt) << convert.output();
    EXPECT_EQ(json::serialize(prompt->at("3").at("inputs").at("images")), R"(["1",0])");
    EXPECT_FALSE(prompt->contains("2"));
    Process checked({COMFYD_BINARY, "validate", picture});
    EXPECT_EQ(checked.wait(), 0) << checked.output() << checked.errors();
}

// Saved by one run, sent to every door.
TEST(Convert, TheApiTakesPictures) {
    Comfyd comfyd;
    TempDir folder;
    const std::string file = folder.write("editor.json", kEditorWorkflow);
    Process run({COMFYD_BINARY, "run", file, "--url", comfyd.url(), "-o", folder / "out"});
    ASSERT_EQ(run.wait(), 0) << run.errors();
    const std::string picture = read_file(folder / "out/wide-24_00001_.png");
    net::Headers headers;
    headers.set("Content-Type", "image/png");
    const Reply executed =
        comfyd.http().post("/v2/workflows/execute?wait=60&priority=7", picture, headers);
    EXPECT_EQ(executed.status, 200) << executed.body;
    EXPECT_EQ(executed.json_at("/status"), json::value("completed"));
    const Reply form = comfyd.http().upload(
        "/v2/workflows/execute?wait=60",
        {{"workflow", "saved.png", "image/png", picture},
         {"input_params", std::nullopt, "", R"({"1.width": 32})"}}
    );
    EXPECT_EQ(form.status, 200) << form.body;
    const std::string data = "data:image/png;base64," + to_base64(picture);
    const Reply named = comfyd.http().post_json("/prompt_sync", {{"prompt", data}});
    EXPECT_EQ(named.status, 200) << named.body;
    for (const Reply& prompted :
         {comfyd.http().post("/prompt", picture, headers),
          comfyd.http().post_json("/prompt", {{"prompt", data}})}) {
        ASSERT_EQ(prompted.status, 200) << prompted.body;
        const std::string id(prompted.json_at("/prompt_id").as_string());
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded");
    }
    const Reply refused = comfyd.http().post("/prompt", "\xff\xd8\xff\xe0", headers);
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("JPEG picture"), std::string::npos) << refused.body;
}

TEST(Convert, TheClassesComeFromAServerOrAFile) {
    Comfyd comfyd;
    TempDir folder;
    const std::string file = folder.write("editor.json", kEditorWorkflow);
    const std::string classes =
        folder.write("object_info.json", comfyd.http().get("/object_info").body);
    Process asked({COMFYD_BINARY, "convert", file, "--url", comfyd.url()});
    EXPECT_EQ(asked.wait(), 0) << asked.errors();
    Process read(
        {COMFYD_BINARY, "convert", file, "--object-info", classes, "-o", folder / "prompt.json"}
    );
    EXPECT_EQ(read.wait(), 0) << read.errors();
    EXPECT_EQ(read.output(), "");
    Process printed({COMFYD_BINARY, "convert", folder / "prompt.json"});
    EXPECT_EQ(printed.wait(), 0) << printed.errors();
    EXPECT_EQ(printed.output(), asked.output());
    const std::string unknown =
        folder.write("unknown.json", R"({"nodes":[{"id":7,"type":"Nope"}],"links":[]})");
    Process refused({COMFYD_BINARY, "convert", unknown, "--object-info", classes});
    EXPECT_EQ(refused.wait(), 2);
    EXPECT_NE(refused.errors().find("'Nope' (node 7)"), std::string::npos) << refused.errors();
    Process nobody({COMFYD_BINARY, "convert", file, "--url", "http://127.0.0.1:1"});
    EXPECT_EQ(nobody.wait(), 4);
    Process no_file({COMFYD_BINARY, "convert", folder / "nothing"});
    EXPECT_EQ(no_file.wait(), 2);
}

TEST(Convert, TheApiTakesTheEditorsFormat) {
    Comfyd comfyd;
    const json::object body{{"workflow", *json::parse(kEditorWorkflow)}};
    const Reply accepted = comfyd.http().post_json("/v2/workflows/execute", body);
    ASSERT_LT(accepted.status, 300) << accepted.body;
    const std::string id(accepted.json_at("/execution_id").as_string());
    EXPECT_TRUE(wait_until([&] {
        return comfyd.http().get("/api/v2/jobs/" + id).json_at("/status") ==
               json::value("succeeded");
    }));
    const Reply contract = comfyd.http().post_json("/api/v2/jobs", body);
    EXPECT_EQ(contract.status, 422);
    EXPECT_NE(contract.body.find("workflow_format_ui"), std::string::npos) << contract.body;
}

}  // namespace
}  // namespace comfyd::support
