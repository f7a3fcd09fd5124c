// Files named by address, content, asset or hash, from the request to the picture of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assets/test_support.hpp"
#include "base/crypto.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using assets::test::FileServer;
using testing::HasSubstr;

ComfydOptions on_loopback() {
    return {.arguments = {"--set", "inputs.allow_private=true"}};
}

json::object inverted(const std::string& source) {
    return {
        {"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", source}}}}},
        {"2", {{"class_type", "ImageInvert"}, {"inputs", {{"image", {"1", 0}}}}}},
        {"3",
         {{"class_type", "SaveImage"},
          {"inputs", {{"images", {"2", 0}}, {"filename_prefix", "inverted"}}}}},
    };
}

// The bytes of the first output of a job.
std::string output_of(Comfyd& comfyd, const std::string& id) {
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    const json::array& outputs = job.at("outputs").as_array();
    if (outputs.empty()) {
        ADD_FAILURE() << "no output";
        return {};
    }
    const std::string asset(outputs.at(0).at("id").as_string());
    return comfyd.http().get("/api/v2/assets/" + asset + "/content").body;
}

std::string picture_of(Comfyd& comfyd) {
    return output_of(comfyd, comfyd.submit(small_picture()));
}

TEST(Inputs, APictureFromAnAddressIsInverted) {
    Comfyd comfyd(on_loopback());
    FileServer server;
    const std::string bytes = picture_of(comfyd);
    server.put("/file", "application/octet-stream", bytes);
    server.redirect("/cat.png", "/file");
    const std::string from_address =
        output_of(comfyd, comfyd.submit(inverted(server.url("/cat.png"))));
    EXPECT_THAT(from_address, HasSubstr("PNG"));
    EXPECT_NE(from_address, bytes);
    // The address is gone, and nobody minds.
    const std::string from_data =
        output_of(comfyd, comfyd.submit(inverted("data:image/png;base64," + to_base64(bytes))));
    EXPECT_EQ(from_data, from_address);
    EXPECT_EQ(server.asked("/file"), 1);
}

TEST(Inputs, TheJobNeedsTheAddressNoMore) {
    Comfyd comfyd(on_loopback());
    const std::string bytes = picture_of(comfyd);
    std::string id;
    {
        FileServer server;
        server.put("/cat.png", "image/png", bytes);
        id = comfyd.submit(inverted(server.url("/cat.png")));
    }
    comfyd.restart();
    EXPECT_FALSE(output_of(comfyd, id).empty());
}

TEST(Inputs, UploadsByKeySurviveARestart) {
    Comfyd comfyd;
    const auto upload = [&comfyd](const std::string& bytes) {
        net::Headers headers;
        headers.set("Idempotency-Key", "k");
        return comfyd.http().upload(
            "/api/v2/assets", {{"file", "a.png", "image/png", bytes}}, std::move(headers)
        );
    };
    const Reply first = upload("one");
    ASSERT_EQ(first.status, 201) << first.body;
    comfyd.restart();
    EXPECT_EQ(upload("one").json_at("/id"), first.json_at("/id"));
    EXPECT_EQ(upload("two").status, 422);
}

TEST(Inputs, PrivateAddressesAreRefusedByDefault) {
    Comfyd comfyd;
    FileServer server;
    const Reply reply =
        comfyd.http().post_json("/api/v2/jobs", {{"workflow", inverted(server.url("/cat.png"))}});
    EXPECT_EQ(reply.status, 422);
    EXPECT_THAT(reply.body, HasSubstr("UNAUTHORIZED_DOMAIN"));
    EXPECT_EQ(server.asked("/cat.png"), 0);
}

TEST(Inputs, TheNativeRoutesFetchToo) {
    Comfyd comfyd(on_loopback());
    FileServer server;
    server.put("/cat.png", "image/png", picture_of(comfyd));
    const std::string url = server.url("/cat.png");
    const Reply queued = comfyd.http().post_json("/prompt", {{"prompt", inverted(url)}});
    ASSERT_EQ(queued.status, 200) << queued.body;
    const std::string id(queued.json_at("/prompt_id").as_string());
    ASSERT_TRUE(wait_until([&] {
        return comfyd.http().get("/history/" + id).json().as_object().contains(id);
    }));
    const json::value history = comfyd.http().get("/history/" + id).json().at(id);
    EXPECT_EQ(history.at("status").at("status_str"), "success");
    // The client sees what it sent.
    EXPECT_EQ(history.at("prompt").at(2).at("1").at("inputs").at("image"), json::value(url));

    const Reply done = comfyd.http().post_json("/prompt_sync", {{"prompt", inverted(url)}});
    EXPECT_EQ(done.status, 200) << done.body;

    const Reply refused =
        comfyd.http().post_json("/prompt", {{"prompt", inverted(server.url("/missing.png"))}});
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(refused.json_at("/node_errors/1/errors/0/type"), json::value("URL_NOT_ACCESSIBLE"));
    EXPECT_EQ(
        refused.json_at("/node_errors/1/errors/0/extra_info/input_name"), json::value("image")
    );
    const Reply sync =
        comfyd.http().post_json("/prompt_sync", {{"prompt", inverted(server.url("/missing.png"))}});
    EXPECT_EQ(sync.status, 422) << sync.body;
}

// The editor's save format of EmptyImage -> SaveImage.
json::object editor_workflow() {
    return json::parse_object(R"({
        "last_node_id": 2, "last_link_id": 1, "version": 0.4,
        "nodes": [
            {"id": 1, "type": "EmptyImage", "mode": 0, "order": 0, "inputs": [],
             "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": [1]}],
             "widgets_values": [8, 8, 1, 255]},
            {"id": 2, "type": "SaveImage", "mode": 0, "order": 1,
             "inputs": [{"name": "images", "type": "IMAGE", "link": 1}], "outputs": [],
             "widgets_values": ["made"]}],
        "links": [[1, 1, 0, 2, 0, "IMAGE"]]})")
        .value();
}

TEST(Inputs, TheNativeRoutesTakeTheEditorsFormat) {
    Comfyd comfyd;
    json::object bare = editor_workflow();
    for (const json::object& body : {json::object{{"prompt", bare}}, bare}) {
        const Reply done = comfyd.http().post_json("/prompt_sync", body);
        EXPECT_EQ(done.status, 200) << done.body;
        const Reply queued = comfyd.http().post_json("/prompt", body);
        EXPECT_EQ(queued.status, 200) << queued.body;
        EXPECT_TRUE(queued.json_at("/prompt_id").is_string());
    }
    json::object unknown = bare;
    unknown.at("nodes").at(0).as_object()["type"] = "NoSuchNode";
    const Reply refused = comfyd.http().post_json("/prompt", {{"prompt", unknown}});
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(refused.json_at("/error/type"), json::value("invalid_prompt"));
    EXPECT_THAT(refused.body, HasSubstr("NoSuchNode"));
    const Reply sync = comfyd.http().post_json("/prompt_sync", {{"prompt", unknown}});
    EXPECT_EQ(sync.status, 422) << sync.body;
}

}  // namespace
}  // namespace comfyd::support
