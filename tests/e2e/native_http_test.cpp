// The native routes over HTTP: files, names that collide, users, and who sees what.
#include <filesystem>

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
    // A picture that the engine made, with the texts that it writes.
    std::string picture(int color) {
        return http()
            .get(view_of(finished_output(post_prompt(http(), small_picture(color), ""), "3")))
            .body;
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

TEST_F(NativeHttp, APromptsOwnIdIsKnownToEveryApi) {
    const std::string own = "0d9fd1f4-5a3e-4f0e-9c58-6a8f3b1d2c47";
    const std::string other = "0d9fd1f4-5a3e-4f0e-9c58-6a8f3b1d2c48";
    const Reply posted =
        http().post_json("/prompt", json::object{{"prompt", small_picture(3)}, {"prompt_id", own}});
    ASSERT_EQ(posted.json_at("/prompt_id"), json::value(own)) << posted.body;
    finished_output(own, "3");
    for (int round = 0; round < 2; ++round) {
        for (const char* path :
             {"/v1/workflows/execution/",
              "/v2/workflows/execution/",
              "/comfyui/execution/",
              "/api/v1/tasks/",
              "/api/v2/jobs/",
              "/runpod/v2/any/status/"}) {
            EXPECT_EQ(http().get(path + own).status, 200) << path;
            EXPECT_EQ(http().get(path + other).status, 404) << path;
        }
        EXPECT_EQ(http().get("/v2/workflows/execution/" + own + "/metrics").status, 200);
        comfyd_.restart();
    }
}

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
    EXPECT_EQ(upload("../x.png", "1").status, 400);
    EXPECT_EQ(upload("/etc/x.png", "1").status, 400);
    EXPECT_EQ(upload("", "1").status, 400);
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

TEST_F(NativeHttp, APictureIsShownInOtherForms) {
    ASSERT_EQ(upload("a.png", picture(9)).status, 200);
    const std::string view = "/view?filename=a.png&type=input";
    const auto form = [&](const std::string& more) { return http().get(view + more); };
    EXPECT_EQ(form("&preview=webp;90").headers.get("Content-Type"), "image/webp");
    EXPECT_EQ(form("&preview=webp;90").body.substr(0, 4), "RIFF");
    EXPECT_EQ(form("&preview=jpeg").headers.get("Content-Type"), "image/jpeg");
    EXPECT_EQ(form("&preview=jpeg").body.substr(0, 2), "\xFF\xD8");
    EXPECT_EQ(form("&preview=nonsense;x").headers.get("Content-Type"), "image/webp");
    constexpr std::size_t kColourType = 25;  // in the header of a PNG
    constexpr char kRgb = 2;
    constexpr char kRgba = 6;
    EXPECT_EQ(form("&channel=rgb").body.at(kColourType), kRgb);
    EXPECT_EQ(form("&channel=a").body.at(kColourType), kRgba);
    EXPECT_EQ(form("&channel=rgba").body, form("").body);
    EXPECT_NE(form("").headers.get("ETag"), "");
    EXPECT_EQ(
        http().get(view, header("If-None-Match", std::string(form("").headers.get("ETag")))).status,
        304
    );
    EXPECT_EQ(http().get(view, header("Range", "bytes=0-3")).status, 206);
    ASSERT_EQ(upload("no.png", "no picture").status, 200);
    EXPECT_EQ(http().get("/view?filename=no.png&type=input&preview=webp").status, 500);
}

TEST_F(NativeHttp, FilesAreShownWithTheHeadersOfComfyUi) {
    ASSERT_EQ(upload("a.png", "0123456789").status, 200);
    const Reply shown = http().get("/view?filename=a.png&type=input");
    EXPECT_EQ(shown.headers.get("Content-Disposition"), "filename=\"a.png\"");
    EXPECT_EQ(shown.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(shown.headers.get("Accept-Ranges"), "bytes");
    const Reply part = http().get("/view?filename=a.png&type=input", header("Range", "bytes=2-4"));
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.headers.get("Content-Range"), "bytes 2-4/10");
    ASSERT_EQ(upload("sub/page.svg", "<svg>").json_at("/name"), "sub/page.svg");
    const Reply active = http().get("/view?filename=page.svg&subfolder=sub&type=input");
    EXPECT_EQ(active.body, "<svg>");
    EXPECT_EQ(active.headers.get("Content-Type"), "application/octet-stream");
    EXPECT_EQ(active.headers.get("Content-Disposition"), "attachment; filename=\"page.svg\"");
    EXPECT_EQ(active.headers.get("Cache-Control"), "no-store");
}

TEST_F(NativeHttp, AMaskReplacesTheAlphaAndKeepsTheTexts) {
    const std::string original = picture(3);
    ASSERT_NE(original.find("tEXtprompt"), std::string::npos);
    ASSERT_EQ(upload("below.png", original).status, 200);
    ASSERT_EQ(upload("above.png", picture(4)).status, 200);
    const std::string alpha = http().get("/view?filename=above.png&type=input&channel=a").body;
    const auto send_mask = [&](std::string reference) {
        return http().upload(
            "/upload/mask",
            {{"image", "masked.png", "image/png", alpha},
             {"original_ref", std::nullopt, "", std::move(reference)}}
        );
    };
    const Reply made = send_mask(R"({"filename":"below.png","type":"input"})");
    ASSERT_EQ(made.status, 200) << made.body;
    EXPECT_EQ(made.json_at("/name"), "masked.png");
    const std::string masked = http().get("/view?filename=masked.png&type=input").body;
    EXPECT_NE(masked.find("tEXtprompt"), std::string::npos);
    constexpr std::size_t kColourType = 25;
    EXPECT_EQ(masked.at(kColourType), 6);
    EXPECT_EQ(send_mask("").status, 500);
    // As the real one: it answers with the name, and there is no such file.
    EXPECT_EQ(send_mask(R"({"filename":"nobody.png"})").status, 200);
}

TEST_F(NativeHttp, APartOfAPromptIsAccepted) {
    json::object graph = small_picture(5);
    graph["4"] = {{"class_type", "EmptyImage"}, {"inputs", {{"width", -5}}}};
    graph["5"] = {
        {"class_type", "SaveImage"},
        {"inputs", {{"images", json::array{"4", 0}}, {"filename_prefix", "x"}}}
    };
    const Reply reply = http().post_json("/prompt", json::object{{"prompt", graph}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json_at("/node_errors/4/class_type"), "EmptyImage");
    EXPECT_EQ(reply.json_at("/node_errors/4/dependent_outputs/0"), "5");
    const std::string id(reply.json_at("/prompt_id").as_string());
    finished_output(id, "3");
    const json::value entry = http().get("/history/" + id).json().at(id);
    EXPECT_FALSE(entry.at("outputs").as_object().contains("5"));
    EXPECT_EQ(entry.at("prompt").at(4), json::value(json::array{"3"}));
    EXPECT_EQ(entry.at("status").at("status_str"), "success");
}

TEST_F(NativeHttp, AnIdThatIsUsedAgainNamesTheNewestPrompt) {
    const std::string own = "0bb31bc7-19bc-466a-b56b-47c1c0bbdabe";
    ASSERT_EQ(post_prompt(http(), small_picture(1), "", {{"prompt_id", own}}), own);
    const json::value first = finished_output(own, "3");
    ASSERT_EQ(post_prompt(http(), small_picture(2), "", {{"prompt_id", own}}), own);
    ASSERT_TRUE(wait_until([&] { return finished_output(own, "3") != first; }));
    EXPECT_EQ(http().get("/history").json().as_object().size(), 1U);
    const json::value color = http().get("/history/" + own).json().at(own).at("prompt").at(2);
    EXPECT_EQ(color.at("1").at("inputs").at("color"), 2);
    // The files of both are still there.
    EXPECT_EQ(http().get(view_of(first)).status, 200);
    const Reply refused = http().post_json(
        "/prompt", json::object{{"prompt", small_picture()}, {"prompt_id", "not an id"}}
    );
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json_at("/error/type"), "invalid_prompt_id");
}

TEST_F(NativeHttp, OutputsOfOneNameDoNotCollide) {
    const json::value first = finished_output(post_prompt(http(), small_picture(1), ""), "3");
    comfyd_.restart();  // the engine counts its files anew
    const json::value second = finished_output(post_prompt(http(), small_picture(2), ""), "3");
    EXPECT_NE(view_of(first), view_of(second));
    EXPECT_NE(http().get(view_of(first)).body, http().get(view_of(second)).body);
}

TEST_F(NativeHttp, OptionsAreAnswered) {
    for (const char* path : {"/prompt", "/api/prompt", "/history", "/api/userdata/a%2Fb"}) {
        const Reply reply = http().send({.method = "OPTIONS", .url = path});
        EXPECT_EQ(reply.status, 200) << path;
        EXPECT_TRUE(reply.body.empty());
    }
}

TEST_F(NativeHttp, UnknownPathsBelowTheApiAreRefusedInJson) {
    for (const char* path : {"/api/nope", "/api/assets", "/manager/version", "/api/jobs/nope"}) {
        const Reply reply = http().get(path);
        EXPECT_EQ(reply.status, 404) << path;
        EXPECT_TRUE(reply.json().is_object()) << path << reply.body;
    }
}

TEST_F(NativeHttp, DocumentsAreKeptUnderTheirNames) {
    EXPECT_EQ(http().get("/api/users").json_at("/storage"), "server");
    EXPECT_EQ(http().get("/userdata?dir=workflows").status, 404);
    const Reply kept = http().post(
        "/api/userdata/workflows%2Fsub%2Fa%20b.json?overwrite=true&full_info=true", "{}"
    );
    EXPECT_EQ(kept.json_at("/path"), "workflows/sub/a b.json");
    EXPECT_EQ(kept.json_at("/size"), 2);
    EXPECT_EQ(http().get("/api/userdata/workflows%2Fsub%2Fa%20b.json").body, "{}");
    const Reply listed =
        http().get("/api/userdata?dir=workflows&recurse=true&split=false&full_info=true");
    EXPECT_EQ(listed.json_at("/0/path"), "sub/a b.json");
    const std::string move = "/api/userdata/workflows%2Fsub%2Fa%20b.json/move/workflows%2Fc.json";
    EXPECT_EQ(http().post(move + "?overwrite=false", "").json(), json::value("workflows/c.json"));
    EXPECT_EQ(http().post(move, "").status, 404);
    EXPECT_EQ(http().get("/userdata/workflows%2Fc.json").body, "{}");
    const Reply below = http().get("/v2/userdata?path=workflows");
    EXPECT_EQ(below.json_at("/0/name"), "sub") << "folders come first";
    EXPECT_EQ(below.json_at("/1/path"), "workflows/c.json");
    EXPECT_EQ(http().post("/userdata/workflows%2F.hidden.json", "{}").status, 200);
    EXPECT_EQ(http().get("/userdata?dir=workflows").json(), json::value(json::array{"c.json"}));
    EXPECT_EQ(http().get("/v2/userdata?path=..").status, 400);
    EXPECT_EQ(http().post("/userdata/x.html", "<script>").status, 200);
    EXPECT_EQ(
        http().get("/userdata/x.html").headers.get("Content-Type"), "application/octet-stream"
    );
}

TEST_F(NativeHttp, SettingsAreMergedAndReadOneByOne) {
    EXPECT_EQ(http().get("/api/settings").json(), json::value(json::object()));
    EXPECT_EQ(http().get("/api/settings/Comfy.A").json(), json::value());
    EXPECT_EQ(http().post("/api/settings", R"({"Comfy.A": 1, "Comfy.B": [2]})").status, 200);
    EXPECT_EQ(http().post("/api/settings/Comfy.A", R"("x")").status, 200);
    EXPECT_EQ(http().get("/settings/Comfy.A").json(), json::value("x"));
    EXPECT_EQ(http().get("/settings/Comfy.B").json(), json::value(json::array{2}));
    EXPECT_EQ(http().post("/api/settings", "[1]").status, 400);
}

// Two customers of one server, and nobody.
class NativeTenants : public testing::Test {
protected:
    NativeTenants() {
        for (const char* key : {kAnna, kBert}) {
            auto& made = clients_.emplace_back(std::make_unique<Http>(comfyd_.url()));
            made->set_header("Authorization", std::string("Bearer ") + key);
        }
    }
    static ComfydOptions options() {
        ComfydOptions made;
        made.environment["COMFYD_AUTH_KEYS"] = std::string("anna=") + kAnna + ",bert=" + kBert;
        return made;
    }
    Http& anna() { return *clients_[0]; }
    Http& bert() { return *clients_[1]; }

    static constexpr const char* kAnna = "anna-0123456789abcdef";
    static constexpr const char* kBert = "bert-0123456789abcdef";
    Comfyd comfyd_{options()};
    std::vector<std::unique_ptr<Http>> clients_;
};

TEST_F(NativeTenants, SeeOnlyWhatIsTheirs) {
    const std::string id = post_prompt(anna(), small_picture(1), "");
    ASSERT_TRUE(wait_until([&] {
        return anna().get("/history/" + id).json().as_object().contains(id);
    }));
    const json::value file =
        anna().get("/history/" + id).json().at(id).at("outputs").at("3").at("images").at(0);
    const std::string view = "/view?filename=" + std::string(file.at("filename").as_string()) +
                             "&subfolder=" + std::string(file.at("subfolder").as_string());
    EXPECT_EQ(anna().get(view).status, 200);
    EXPECT_EQ(bert().get(view).status, 404);
    EXPECT_EQ(
        bert().get("/view?filename=" + std::string(file.at("filename").as_string())).status, 404
    );
    EXPECT_EQ(bert().get("/history").json(), json::value(json::object()));
    EXPECT_EQ(bert().get("/history/" + id).json(), json::value(json::object()));
    EXPECT_EQ(bert().get("/api/jobs").json_at("/pagination/total"), 0);
    EXPECT_EQ(bert().get("/api/jobs/" + id).status, 404);
    EXPECT_EQ(bert().post_json("/history", json::object{{"clear", true}}).status, 200);
    EXPECT_TRUE(anna().get("/history/" + id).json().as_object().contains(id));
    EXPECT_EQ(bert().get("/internal/files/output").json(), json::value(json::array()));
}

TEST_F(NativeTenants, HaveFilesOfTheSameName) {
    const auto upload = [](Http& client, std::string bytes) {
        return client.upload(
            "/upload/image", {{"image", "cat.png", "image/png", std::move(bytes)}}
        );
    };
    EXPECT_EQ(upload(anna(), "one").json_at("/name"), "cat.png");
    EXPECT_EQ(upload(bert(), "two").json_at("/name"), "cat.png");
    EXPECT_EQ(anna().get("/view?filename=cat.png&type=input").body, "one");
    EXPECT_EQ(bert().get("/view?filename=cat.png&type=input").body, "two");
    EXPECT_EQ(anna().post("/settings/Comfy.X", "1").status, 200);
    EXPECT_EQ(bert().get("/settings").json(), json::value(json::object()));
    EXPECT_EQ(anna().post("/userdata/a.json", "{}").status, 200);
    EXPECT_EQ(bert().get("/userdata/a.json").status, 404);
}

TEST_F(NativeTenants, AreKnownByATokenWhereAPageCannotSendAHeader) {
    Http nobody(comfyd_.url());
    EXPECT_EQ(nobody.get("/prompt").status, 401);
    EXPECT_EQ(nobody.get(std::string("/prompt?token=") + kAnna).status, 401);
    EXPECT_EQ(nobody.get("/view?filename=a.png").status, 401);
    EXPECT_EQ(nobody.get("/view?filename=a.png&token=wrong").status, 401);
    EXPECT_EQ(nobody.get(std::string("/view?filename=a.png&token=") + kAnna).status, 404);
    EXPECT_FALSE(nobody.ws("/ws?clientId=x")->connected());
    EXPECT_FALSE(nobody.ws("/ws?clientId=x&token=wrong")->connected());
    const auto mine = nobody.ws(std::string("/ws?clientId=x&token=") + kAnna);
    const auto others = nobody.ws(std::string("/api/ws?clientId=x&token=") + kBert);
    ASSERT_TRUE(mine->connected());
    ASSERT_TRUE(others->connected());
    ASSERT_TRUE(wait_until([&] { return !others->messages().empty() && !mine->messages().empty(); })
    );
    const std::string id = post_prompt(anna(), small_picture(1), "x");
    ASSERT_TRUE(wait_end_of(*mine, id));
    EXPECT_EQ(others->messages().size(), 1U);  // not even the length of the queue
    EXPECT_EQ(comfyd_.log().find(kAnna), std::string::npos);
}

// The editor's files.
class NativeFrontend : public testing::Test {
protected:
    NativeFrontend() {
        folder_.write("web/index.html", "<html>");
        folder_.write("web/assets/a.js", "export {}");
        folder_.write("web/assets/a.css", "a {}");
        folder_.write("web/fonts/a.woff2", "font");
        folder_.write("secret.txt", "secret");
        std::filesystem::create_symlink(folder_ / "secret.txt", folder_ / "web/link.txt");
        ComfydOptions options;
        options.arguments = {"--frontend", folder_ / "web"};
        comfyd_ = std::make_unique<Comfyd>(options);
    }

    TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(NativeFrontend, IsServedBesideTheApi) {
    Http& http = comfyd_->http();
    const Reply page = http.get("/");
    EXPECT_EQ(page.body, "<html>");
    EXPECT_EQ(page.headers.get("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(page.headers.get("Cache-Control"), "no-store, must-revalidate");
    const Reply script = http.get("/assets/a.js");
    EXPECT_TRUE(script.headers.get("Content-Type").starts_with("text/javascript"));
    EXPECT_TRUE(http.get("/assets/a.css").headers.get("Content-Type").starts_with("text/css"));
    EXPECT_EQ(http.get("/fonts/a.woff2").headers.get("Content-Type"), "font/woff2");
    const std::string tag(script.headers.get("ETag"));
    EXPECT_EQ(http.get("/assets/a.js", header("If-None-Match", tag)).status, 304);
    EXPECT_EQ(http.get("/user.css").status, 404);
    EXPECT_TRUE(http.get("/api/object_info").json().is_object());
    EXPECT_EQ(http.get("/api/nope").status, 404);
}

TEST_F(NativeFrontend, StaysInItsFolder) {
    for (const char* path :
         {"/link.txt",
          "/..%2Fsecret.txt",
          "/assets/..%2F..%2Fsecret.txt",
          "/%2Fetc%2Fpasswd",
          "/assets",
          "/assets/",
          "/a%00b"}) {
        const Reply reply = comfyd_->http().get(path);
        EXPECT_GE(reply.status, 400) << path;
        EXPECT_LT(reply.status, 500) << path;
        EXPECT_EQ(reply.body.find("secret"), std::string::npos) << path;
    }
}

}  // namespace
}  // namespace comfyd::support
