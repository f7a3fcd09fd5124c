// Files, what the server tells of itself, and what a user stores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "standalone/test_support.hpp"

namespace comfyd::standalone {
namespace {

using support::Reply;
using test::parse;
using test::small_picture;
using test::TestServer;

class Files : public testing::Test {
protected:
    Reply upload(
        const std::string& name, const std::string& data, std::vector<net::FormPart> more = {}
    ) {
        more.push_back({"image", name, "application/octet-stream", data});
        return server_.http().upload("/upload/image", more);
    }

    TestServer server_;
};

TEST_F(Files, AreUploadedByComfyUisRules) {
    const auto name = [](const Reply& reply) { return reply.json_at("/name"); };
    const Reply first = upload("a.png", "one");
    EXPECT_EQ(first.json(), parse(R"({"name": "a.png", "subfolder": "", "type": "input"})"));
    EXPECT_EQ(name(upload("a.png", "one")), "a.png") << "the same content";
    EXPECT_EQ(name(upload("a.png", "two")), "a (1).png");
    EXPECT_EQ(name(upload("a.png", "three")), "a (2).png");
    EXPECT_EQ(name(upload("a.png", "two")), "a (1).png");
    EXPECT_EQ(name(upload("a.png", "four", {{"overwrite", {}, "", "true"}})), "a.png");
    EXPECT_EQ(server_.http().get("/view?filename=a.png&type=input").body, "four");
    const Reply deep =
        upload("b.png", "five", {{"subfolder", {}, "", "x/y"}, {"type", {}, "", "temp"}});
    EXPECT_EQ(deep.json(), parse(R"({"name": "b.png", "subfolder": "x/y", "type": "temp"})"));
    EXPECT_EQ(server_.http().get("/view?filename=b.png&type=temp&subfolder=x/y").body, "five");
}

TEST_F(Files, ThatLeadOutsideAreRefused) {
    EXPECT_EQ(upload("../a.png", "x").status, 400);
    EXPECT_EQ(upload("/etc/a.png", "x").status, 400);
    EXPECT_EQ(upload("a.png", "x", {{"subfolder", {}, "", "../.."}}).status, 400);
    EXPECT_EQ(upload("a.png", "x", {{"type", {}, "", "elsewhere"}}).status, 500);
    EXPECT_EQ(upload("", "x").status, 400);
    EXPECT_EQ(server_.http().post("/upload/image", "no form").status, 400);
    EXPECT_EQ(server_.http().get("/view").status, 404);
    EXPECT_EQ(server_.http().get("/view?filename=").status, 400);
    EXPECT_EQ(server_.http().get("/view?filename=../x").status, 400);
    EXPECT_EQ(server_.http().get("/view?filename=/etc/passwd").status, 400);
    EXPECT_EQ(server_.http().get("/view?filename=a&type=odd").status, 400);
    EXPECT_EQ(server_.http().get("/view?filename=a&subfolder=../..").status, 403);
    EXPECT_EQ(server_.http().get("/view?filename=nothing.png").status, 404);
}

TEST_F(Files, AreShownWithTheHeadersOfComfyUi) {
    server_.folder().write("output/a.png", "0123456789");
    const Reply whole = server_.http().get("/api/view?filename=a.png");
    EXPECT_EQ(whole.status, 200);
    EXPECT_EQ(whole.body, "0123456789");
    EXPECT_EQ(whole.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(whole.headers.get("Content-Disposition"), "filename=\"a.png\"");
    EXPECT_EQ(whole.headers.get("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(whole.headers.get("Accept-Ranges"), "bytes");
    EXPECT_FALSE(whole.headers.get("Last-Modified").empty());
    const std::string etag(whole.headers.get("ETag"));
    net::Headers headers;
    headers.set("If-None-Match", etag);
    EXPECT_EQ(server_.http().get("/view?filename=a.png", headers).status, 304);
    headers = {};
    headers.set("Range", "bytes=2-4");
    const Reply part = server_.http().get("/view?filename=a.png", headers);
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.headers.get("Content-Range"), "bytes 2-4/10");
    headers.set("If-Range", "\"another\"");
    EXPECT_EQ(server_.http().get("/view?filename=a.png", headers).status, 200);
    headers = {};
    headers.set("Range", "bytes=99-");
    EXPECT_EQ(server_.http().get("/view?filename=a.png", headers).status, 416);
    EXPECT_EQ(server_.http().get("/view?filename=a.png%20%5Boutput%5D&type=temp").status, 200);
}

TEST_F(Files, ThatCouldActAsPagesAreDownloads) {
    for (const char* name : {"a.html", "a.svg", "a.js", "a.css", "a.xml"}) {
        server_.folder().write(std::string("output/") + name, "<script>");
        const Reply reply = server_.http().get(std::string("/view?filename=") + name);
        EXPECT_EQ(reply.headers.get("Content-Type"), "application/octet-stream") << name;
        EXPECT_TRUE(reply.headers.get("Content-Disposition").starts_with("attachment")) << name;
        EXPECT_EQ(reply.headers.get("Cache-Control"), "no-store") << name;
    }
}

TEST_F(Files, PicturesInOtherForms) {
    server_.run(small_picture(0x123456, "p"));
    const auto get = [&](const std::string& form) {
        return server_.http().get("/view?filename=p_00001_.png&" + form);
    };
    const Reply webp = get("preview=webp;50");
    EXPECT_EQ(webp.status, 200) << webp.body;
    EXPECT_EQ(webp.headers.get("Content-Type"), "image/webp");
    EXPECT_EQ(webp.body.substr(0, 4), "RIFF");
    const Reply jpeg = get("preview=jpeg");
    EXPECT_EQ(jpeg.headers.get("Content-Type"), "image/jpeg");
    EXPECT_EQ(jpeg.body.substr(0, 2), "\xFF\xD8");
    EXPECT_EQ(get("channel=rgb").body.substr(1, 3), "PNG");
    EXPECT_EQ(get("channel=a").headers.get("Content-Type"), "image/png");
    EXPECT_EQ(get("channel=rgba").body, get("").body) << "the file as it is";
    server_.folder().write("output/t.txt", "no picture");
    EXPECT_EQ(server_.http().get("/view?filename=t.txt&preview=webp").status, 500);
}

TEST_F(Files, AMaskBecomesTheAlphaOfAPicture) {
    server_.run(small_picture(0, "base"));
    // Transparent everywhere: inverted white is black, and its mask is what is joined.
    server_.run(parse(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 0}},
        "2": {"class_type": "SolidMask", "inputs": {"width": 16, "height": 16, "value": 1.0}},
        "3": {"class_type": "JoinImageWithAlpha", "inputs": {"image": ["1", 0], "alpha": ["2", 0]}},
        "4": {"class_type": "SaveImage", "inputs": {"images": ["3", 0], "filename_prefix": "mask"}}})"
    ));
    const std::string mask = server_.http().get("/view?filename=mask_00001_.png").body;
    ASSERT_FALSE(mask.empty());
    const auto send = [&](const std::string& original) {
        return server_.http().upload(
            "/upload/mask",
            {{"image", "masked.png", "image/png", mask}, {"original_ref", {}, "", original}}
        );
    };
    const Reply reply = send(R"({"filename": "base_00001_.png"})");
    EXPECT_EQ(reply.json_at("/name"), "masked.png") << reply.body;
    const Reply stored = server_.http().get("/view?filename=masked.png&type=input");
    EXPECT_EQ(stored.status, 200);
    EXPECT_EQ(stored.body[25], 6) << "the colour type: RGBA";
    EXPECT_NE(stored.body.find("tEXtprompt"), std::string::npos) << "texts are kept";
    EXPECT_EQ(send(R"({"filename": "unknown.png"})").status, 200) << "nothing is written";
    EXPECT_EQ(send("[]").status, 500);
    EXPECT_EQ(send(R"({"filename": "../../x"})").status, 400);
}

TEST_F(Files, UploadsAreInputsOfNodes) {
    server_.run(small_picture(9, "src"));
    upload("in.png", server_.http().get("/view?filename=src_00001_.png").body);
    const json::value info = server_.http().get("/object_info/LoadImage").json();
    EXPECT_NE(json::serialize(info).find("in.png"), std::string::npos);
    EXPECT_EQ(server_.http().get("/object_info/Nothing").json(), json::object());
    const json::value entry = server_.run(parse(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "in.png"}},
        "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}}})"));
    EXPECT_EQ(entry.at("status").at("completed"), true) << json::serialize(entry);
    const std::string preview(
        entry.at("outputs").at("2").at("images").at(0).at("filename").as_string()
    );
    EXPECT_EQ(server_.http().get("/view?type=temp&filename=" + preview).status, 200);
    const json::value inputs = server_.http().get("/internal/files/input").json();
    EXPECT_EQ(inputs, json::array{"in.png [input]"});
    EXPECT_EQ(server_.http().get("/internal/files/other").status, 400);
}

TEST_F(Files, WhatTheServerIs) {
    const json::value stats = server_.http().get("/system_stats").json();
    EXPECT_EQ(stats.at("system").at("comfyui_version"), "0.33.0");
    EXPECT_EQ(stats.at("devices").as_array().size(), 1U);
    EXPECT_EQ(stats.at("devices").at(0).at("type"), "cpu");
    EXPECT_GT(stats.at("devices").at(0).at("vram_total").to_number<double>(), 0);
    EXPECT_TRUE(server_.http().get("/object_info").json().as_object().contains("SaveImage"));
    const json::value models = server_.http().get("/models").json();
    EXPECT_GT(models.as_array().size(), 10U);
    EXPECT_EQ(server_.http().get("/models/checkpoints").json(), json::array());
    EXPECT_EQ(server_.http().get("/models/odd").status, 404);
    for (const char* path : {"/embeddings", "/extensions"}) {
        EXPECT_EQ(server_.http().get(path).json(), json::array()) << path;
    }
    for (const char* path :
         {"/i18n", "/global_subgraphs", "/node_replacements", "/workflow_templates", "/settings"}) {
        EXPECT_EQ(server_.http().get(std::string("/api") + path).json(), json::object()) << path;
    }
    EXPECT_EQ(
        server_.http().get("/users").json(), parse(R"({"storage": "server", "migrated": false})")
    ) << "nothing is stored yet";
    EXPECT_EQ(server_.http().get("/nothing").status, 404);
    EXPECT_EQ(server_.http().get("/").status, 404) << "no editor";
    const Reply wrong = server_.http().del("/prompt");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.body, "405: Method Not Allowed");
    EXPECT_EQ(server_.http().send({.method = "OPTIONS", .url = "/prompt"}).status, 200);
}

TEST_F(Files, OtherSitesAreKeptOut) {
    const auto get = [&](const char* name, const char* value) {
        net::Headers headers;
        headers.set(name, value);
        return server_.http().get("/prompt", headers).status;
    };
    EXPECT_EQ(get("Sec-Fetch-Site", "cross-site"), 403);
    EXPECT_EQ(get("Sec-Fetch-Site", "same-origin"), 200);
    EXPECT_EQ(get("Origin", "http://evil.example"), 403);
    EXPECT_EQ(get("Origin", "null"), 403);
    EXPECT_EQ(get("Origin", server_.url().c_str()), 200);
    net::Headers headers;
    headers.set("Origin", "http://evil.example");
    EXPECT_FALSE(server_.http().ws("/ws", headers)->connected());
}

TEST_F(Files, SettingsAreKept) {
    EXPECT_EQ(server_.http().post("/api/settings/Comfy.A", "true").status, 200);
    EXPECT_EQ(server_.http().post("/settings", R"({"Comfy.B": {"c": 1}})").status, 200);
    EXPECT_EQ(server_.http().post("/settings/Comfy.InstalledVersion", "").status, 400);
    EXPECT_EQ(server_.http().get("/users").json_at("/migrated"), true);
    EXPECT_EQ(server_.http().get("/settings/Comfy.A").json(), true);
    server_.stop();
    server_.start();
    EXPECT_EQ(server_.http().get("/settings").json_at("/Comfy.B/c"), 1);
    EXPECT_EQ(server_.http().post("/settings", "[]").status, 400);
    EXPECT_EQ(server_.http().post("/settings", "{").status, 400);
}

TEST_F(Files, DocumentsAreKept) {
    auto& http = server_.http();
    EXPECT_EQ(http.get("/userdata?dir=workflows").status, 404);
    EXPECT_EQ(http.post("/userdata/workflows%2Fa.json", "{}").json(), "workflows/a.json");
    EXPECT_EQ(http.get("/userdata/workflows%2Fa.json").body, "{}");
    EXPECT_EQ(http.post("/userdata/workflows%2Fa.json?overwrite=false", "[]").status, 409);
    const Reply told = http.post("/userdata/workflows%2Fx%2Fb.json?full_info=true", "[1]");
    EXPECT_EQ(told.json_at("/path"), "workflows/x/b.json");
    EXPECT_EQ(told.json_at("/size"), 3);
    EXPECT_EQ(http.get("/userdata?dir=workflows").json(), json::array{"a.json"});
    EXPECT_EQ(
        http.get("/userdata?dir=workflows&recurse=true").json(), (json::array{"a.json", "x/b.json"})
    );
    EXPECT_EQ(
        http.get("/userdata?dir=workflows&recurse=true&split=true").json().at(1),
        (json::array{"x/b.json", "x", "b.json"})
    );
    EXPECT_EQ(http.get("/userdata?dir=workflows&full_info=true").json().at(0).at("path"), "a.json");
    const json::value below = http.get("/v2/userdata?path=workflows").json();
    ASSERT_EQ(below.as_array().size(), 3U) << "all that is below, folders first";
    EXPECT_EQ(below.at(0).at("path"), "workflows/x");
    EXPECT_EQ(below.at(2).at("path"), "workflows/x/b.json");
    EXPECT_EQ(http.get("/v2/userdata?path=..").status, 400);
    EXPECT_EQ(http.get("/v2/userdata?path=workflows%2Fa.json").status, 400);
    EXPECT_EQ(http.get("/v2/userdata?path=none").status, 404);
    EXPECT_EQ(http.post("/userdata/x.html", "<script>").status, 200);
    EXPECT_EQ(http.get("/userdata/x.html").headers.get("Content-Type"), "application/octet-stream");
    EXPECT_EQ(
        http.post("/userdata/workflows%2Fa.json/move/workflows%2Fc.json", "").json(),
        "workflows/c.json"
    );
    EXPECT_EQ(http.post("/userdata/none.json/move/c.json", "").status, 404);
    EXPECT_EQ(
        http.post("/userdata/workflows%2Fc.json/move/workflows%2Fx%2Fb.json?overwrite=false", "")
            .status,
        409
    );
    EXPECT_EQ(http.del("/userdata/workflows%2Fc.json").status, 204);
    EXPECT_EQ(http.del("/userdata/workflows%2Fc.json").status, 404);
    EXPECT_EQ(http.get("/userdata/workflows%2Fc.json").status, 404);
    for (const char* outside : {"..%2F..%2Fx", "%2Fetc%2Fpasswd", "a%2F..%2F..%2Fx"}) {
        EXPECT_EQ(http.get(std::string("/userdata/") + outside).status, 403) << outside;
        EXPECT_EQ(http.post(std::string("/userdata/") + outside, "x").status, 403) << outside;
    }
    EXPECT_EQ(http.get("/userdata?dir=..").status, 403);
    EXPECT_EQ(http.get("/userdata").status, 400);
}

TEST(Editor, ItsFilesAreServed) {
    support::TempDir editor;
    editor.write("index.html", "<html>");
    editor.write("assets/a.js", "x");
    editor.write("extensions/core/b.js", "y");
    Options options;
    options.frontend = editor.path();
    TestServer server(options);
    const Reply page = server.http().get("/");
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(page.headers.get("Cache-Control"), "no-store, must-revalidate");
    EXPECT_TRUE(
        server.http().get("/assets/a.js").headers.get("Content-Type").starts_with("text/javascript")
    );
    EXPECT_EQ(server.http().get("/api/extensions").json(), json::array{"/extensions/core/b.js"});
    EXPECT_EQ(server.http().get("/extensions/core/b.js").body, "y");
    EXPECT_EQ(server.http().get("/assets/%2e%2e/%2e%2e/etc/passwd").status, 404);
    EXPECT_EQ(server.http().post("/", "").status, 404);
}

}  // namespace
}  // namespace comfyd::standalone
