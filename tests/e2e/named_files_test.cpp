// Files that workflows name by a name, in every API: the client's uploads, what the operator puts
// on a worker at any time, and what does not exist.
#include "native_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::Not;

json::object shown(json::value image) {
    return {
        {"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", std::move(image)}}}}},
        {"2", {{"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{"1", 0}}}}}},
    };
}

class NamedFiles : public NativeTest {
protected:
    Reply submit(const std::string& route, const json::object& graph) {
        const char* member = route.ends_with("tasks")    ? "payload"
                             : route.ends_with("prompt") ? "prompt"
                                                         : "workflow";
        return http().post_json(route, json::object{{member, graph}});
    }
    static constexpr std::array<const char*, 6> kRoutes{
        "/prompt",
        "/api/v2/jobs",
        "/v1/workflows/execute",
        "/v2/workflows/execute",
        "/comfyui/execute",
        "/api/v1/tasks",
    };
};

TEST_F(NamedFiles, WhatDoesNotExistIsRefusedEverywhere) {
    start();
    for (const json::value& image :
         {json::value("nothing.png"),
          json::value("set/nothing.png"),
          json::value("nothing.png [input]"),
          json::value("nothing_00001_.png [output]"),
          json::value("../input/nothing.png"),
          json::value(5),
          json::value(nullptr)}) {
        for (const char* route : kRoutes) {
            const Reply refused = submit(route, shown(image));
            EXPECT_TRUE(refused.status == 400 || refused.status == 422)
                << route << " " << json::serialize(image) << ": " << refused.body;
        }
        const Reply looked = submit("/v2/workflows/validate", shown(image));
        EXPECT_EQ(looked.json_at("/valid"), false) << json::serialize(image);
    }
    EXPECT_THAT(
        submit("/api/v2/jobs", shown("nothing.png")).body,
        HasSubstr("Invalid image file: nothing.png")
    );
    EXPECT_EQ(worker_->accepted_prompts().size(), 0U);
}

TEST_F(NamedFiles, WhatAWorkerGotAMomentAgoIsThere) {
    start();
    int number = 0;
    for (const char* route : kRoutes) {
        const std::string name = "noise-" + std::to_string(number++) + ".png";
        EXPECT_FALSE(submit(route, shown(json::value(name))).ok()) << route;
        worker_->add_input(name, "bytes");
        worker_->add_input("set/" + name, "bytes");
        for (const std::string& named : {name, name + " [input]", "set/" + name}) {
            const Reply taken = submit(route, shown(json::value(named)));
            EXPECT_TRUE(taken.ok()) << route << " " << named << ": " << taken.body;
            const Reply looked = submit("/v2/workflows/validate", shown(json::value(named)));
            EXPECT_EQ(looked.json_at("/valid"), true) << looked.body;
        }
    }
    // Then it is in the lists too, once.
    EXPECT_TRUE(wait_until([this] {
        return http().get("/object_info/LoadImage").body.find("noise-0.png") != std::string::npos;
    }));
}

TEST_F(NamedFiles, UploadsAreKnownToAllAPIs) {
    start();
    http().upload("/upload/image", {{"image", "cat.png", "image/png", "a cat"}});
    for (const char* route : kRoutes) {
        const Reply taken = submit(route, shown("cat.png"));
        EXPECT_TRUE(taken.ok()) << route << ": " << taken.body;
    }
    ASSERT_TRUE(wait_until([this] { return worker_->executions().total == kRoutes.size(); }))
        << comfyd_->log();
    // It lies there once, under a name that tells nothing, and in nobody's list.
    std::set<std::string> names;
    for (const json::object& prompt : worker_->accepted_prompts()) {
        names.emplace(prompt.at("prompt").at("1").at("inputs").at("image").as_string());
    }
    EXPECT_EQ(names.size(), 1U);
    EXPECT_THAT(*names.begin(), testing::StartsWith("comfyd_"));
    EXPECT_THAT(*names.begin(), Not(HasSubstr("cat")));
    Http worker(worker_->url());
    EXPECT_THAT(worker.get("/object_info").body, Not(HasSubstr("comfyd_")));
    // A picture tells the name; a workflow that comes out of one runs.
    const Reply again = submit("/prompt", shown(json::value(*names.begin())));
    EXPECT_EQ(again.status, 200) << again.body;
    std::string other = *names.begin();
    other.replace(other.find('/') + 1, 4, "0000");
    EXPECT_EQ(submit("/prompt", shown(json::value(other))).status, 400);
}

TEST_F(NamedFiles, WithoutKeysOutputsLieWhereComfyUIPutsThem) {
    start();
    const std::string id = comfyd_->submit(text_to_image("a"));
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded");
    const auto prompts = worker_->accepted_prompts();
    ASSERT_EQ(prompts.size(), 1U);
    EXPECT_EQ(prompts[0].at("prompt").at("9").at("inputs").at("filename_prefix"), "ComfyUI");
    Http worker(worker_->url());
    EXPECT_EQ(worker.get("/view?filename=ComfyUI_00001_.png").status, 200);
}

}  // namespace
}  // namespace comfyd::support
