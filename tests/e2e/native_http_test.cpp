// The native routes over HTTP: files, names that collide, users, and who sees what.
#include "native_support.hpp"

namespace comfyd::support {
namespace {

class NativeHttp : public testing::Test {
protected:
    Http& http() { return comfyd_.http(); }
    Reply upload(std::string name, std::string bytes, net::Headers headers = {}) {
        return http().upload(
            "/upload/image", {{"image", std::move(name), "image/png", std::move(bytes)}}, headers
        );
    }
    // The ui of the only output node, once the prompt is in the history.
    json::value finished_output(const std::string& id, const std::string& node) {
        json::value entry;
        EXPECT_TRUE(wait_until([&] {
            const json::value history = http().get("/history/" + id).json();
            const bool there = history.is_object() && history.get_object().contains(id);
            entry = there ? history.at(id) : json::value();
            return there;
        }));
        return entry.at("outputs").at(node).at("images").at(0);
    }
    std::string view_of(const json::value& file) {
        return "/view?filename=" + std::string(file.at("filename").get_string()) +
               "&subfolder=" + std::string(file.at("subfolder").get_string()) +
               "&type=" + std::string(file.at("type").get_string());
    }

    Comfyd comfyd_;
};

TEST_F(NativeHttp, AnUploadedPictureIsLoadedByItsName) {
    const std::string made = post_prompt(http(), small_picture(7), "");
    const Reply picture = http().get(view_of(finished_output(made, "3")));
    ASSERT_EQ(picture.status, 200);
    ASSERT_EQ(upload("cat.png", picture.body).json_at("/name"), "cat.png");
    EXPECT_EQ(upload("cat.png", picture.body).json_at("/name"), "cat.png");
    EXPECT_EQ(upload("cat.png", picture.body + "x").json_at("/name"), "cat (1).png");
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "cat.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "b"}}})"
    );
    const std::string loaded = post_prompt(http(), graph, "");
    EXPECT_EQ(http().get(view_of(finished_output(loaded, "2"))).status, 200);
    const json::value entry = http().get("/history/" + loaded).json().at(loaded);
    EXPECT_EQ(entry.at("prompt").at(2).at("1").at("inputs").at("image"), "cat.png");
    graph["1"].as_object()["inputs"].as_object()["image"] = "dog.png";
    const Reply refused = http().post_json("/prompt", json::object{{"prompt", graph}});
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json_at("/node_errors/1/errors/0/type"), "custom_validation_failed");
}

TEST_F(NativeHttp, FilesStayInside) {
    EXPECT_EQ(http().get("/view").status, 404);
    EXPECT_EQ(http().get("/view?filename=../x.png").status, 400);
    EXPECT_EQ(http().get("/view?filename=x.png&subfolder=../..").status, 403);
    EXPECT_EQ(http().get("/view?filename=x.png&type=etc").status, 400);
    EXPECT_EQ(http().post("/userdata/..%2F..%2Fx", "1").status, 403);
    EXPECT_EQ(http().post("/userdata/%2Fetc%2Fx", "1").status, 403);
}

TEST_F(NativeHttp, SettingsAndDocumentsSurviveARestart) {
    EXPECT_EQ(http().post("/api/settings/Comfy.X", "true").status, 200);
    EXPECT_EQ(http().post("/api/settings/Comfy.Y", "").status, 400);
    EXPECT_EQ(http().post("/userdata/workflows%2Fa.json", "{}").status, 200);
    EXPECT_EQ(http().post("/userdata/workflows%2Fa.json?overwrite=false", "{}").status, 409);
    comfyd_.restart();
    EXPECT_EQ(http().get("/settings").json_at("/Comfy.X"), true);
    EXPECT_EQ(http().get("/userdata?dir=workflows").json(), json::value(json::array{"a.json"}));
    EXPECT_EQ(http().del("/userdata/workflows%2Fa.json").status, 204);
}

TEST_F(NativeHttp, OwnIdsAreKnownAfterARestartAndHiddenOnesStayHidden) {
    const std::string own = "0bb31bc7-19bc-466a-b56b-47c1c0bbdabe";
    ASSERT_EQ(post_prompt(http(), small_picture(1), "", {{"prompt_id", own}}), own);
    finished_output(own, "3");
    comfyd_.restart();
    EXPECT_TRUE(http().get("/history/" + own).json().as_object().contains(own));
    const json::object forget{{"delete", json::array{json::value(own)}}};
    EXPECT_EQ(http().post_json("/history", forget).status, 200);
    comfyd_.restart();
    EXPECT_TRUE(http().get("/history/" + own).json().as_object().empty());
}

}  // namespace
}  // namespace comfyd::support
