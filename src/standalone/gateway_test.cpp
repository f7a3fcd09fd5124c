// What is different where the only client is a gateway.
#include <gtest/gtest.h>

#include <filesystem>

#include "comfy/owner.hpp"
#include "standalone/kept_files.hpp"
#include "standalone/test_support.hpp"

namespace comfyd::standalone {
namespace {

using test::parse;
using test::small_picture;
using test::TestServer;

Options behind_gateway() {
    Options options;
    options.behind_gateway = true;
    return options;
}

json::object owned_by(const std::string& owner) {
    return {{"extra_data", {{std::string(comfy::kOwnerKey), owner}}}};
}

json::value cached_in(const json::value& entry) {
    return entry.at("status").at("messages").at(1).at(1).at("nodes");
}

TEST(BehindAGateway, OwnersShareNeitherResultsNorFiles) {
    TestServer server(behind_gateway());
    const json::value first = server.run(small_picture(), owned_by("anna"));
    const json::value again = server.run(small_picture(), owned_by("anna"));
    const json::value other = server.run(small_picture(), owned_by("bert"));
    EXPECT_TRUE(cached_in(first).as_array().empty());
    EXPECT_TRUE(cached_in(other).as_array().empty());
    EXPECT_EQ(cached_in(again).as_array().size(), 3U);
    EXPECT_EQ(first.at("outputs"), other.at("outputs"));
    for (const char* owner : {"anna", "bert"}) {
        EXPECT_TRUE(
            std::filesystem::exists(server.folder().path() / "output" / owner / "small_00001_.png")
        );
    }
}

TEST(BehindAGateway, PromptsAreNotSentBackToIt) {
    TestServer server(behind_gateway());
    const json::value entry = server.run(small_picture());
    EXPECT_EQ(entry.at("prompt").at(2), json::object());
    EXPECT_EQ(entry.at("prompt").at(4), json::array{"3"});
}

TEST(BehindAGateway, AnOwnerIsNoPath) {
    TestServer server(behind_gateway());
    server.run(small_picture(), owned_by("../escaped"));
    EXPECT_TRUE(std::filesystem::exists(server.folder().path() / "output" / "small_00001_.png"));
}

TEST(WithoutAGateway, NobodySaysWhoseAPromptIs) {
    TestServer server;
    server.run(small_picture(), owned_by("anna"));
    EXPECT_TRUE(std::filesystem::exists(server.folder().path() / "output" / "small_00001_.png"));
}

TEST(KeptFiles, TheOldestGoFirstAndOnce) {
    KeptFiles kept;
    for (int i = 0; i < 4'098; ++i) {
        kept.add(std::to_string(i));
    }
    kept.add("0");
    EXPECT_EQ(kept.take_excess(), (std::vector<std::string>{"0", "1"}));
    EXPECT_TRUE(kept.take_excess().empty());
}

TEST(KeptFiles, AreThoseOfOutputAndTemp) {
    const json::object outputs = parse(R"({
        "1": {"images": [{"filename": "a.png", "subfolder": "x", "type": "output"},
                         {"filename": "b.png", "subfolder": "", "type": "temp"},
                         {"filename": "c.png", "subfolder": "", "type": "input"}], "text": ["d"]}})"
    );
    EXPECT_EQ(
        files_in(outputs, {"/in", "/out", "/temp"}),
        (std::vector<std::string>{"/out/x/a.png", "/temp/b.png"})
    );
}

}  // namespace
}  // namespace comfyd::standalone
