#include "fleet/providers/docker_pull.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crypto.hpp"
#include "base/json.hpp"

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

TEST(ImageName, NameTagAndDigest) {
    const auto parts = [](std::string_view text) {
        const auto image = parse_image(text);
        return image ? image->repository + " " + image->tag + " " + image->registry() : "refused";
    };
    EXPECT_EQ(parts("comfyui"), "comfyui latest docker.io");
    EXPECT_EQ(parts("me/comfyui:v1"), "me/comfyui v1 docker.io");
    EXPECT_EQ(parts("registry:5000/comfyui"), "registry:5000/comfyui latest registry:5000");
    EXPECT_EQ(parts("registry:5000/a/b:2"), "registry:5000/a/b 2 registry:5000");
    EXPECT_EQ(parts("localhost/a:2"), "localhost/a 2 localhost");
    EXPECT_EQ(parts("ghcr.io/a:2@sha256:00ff"), "ghcr.io/a sha256:00ff ghcr.io");
    for (const char* text : {"", ":1", "a:", "a b", "a?x=1", "a@", "@x", "a&fromSrc=-", "ä"}) {
        EXPECT_EQ(parts(text), "refused") << text;
    }
    EXPECT_EQ(parts(std::string(501, 'a')), "refused");
}

TEST(ImageName, ALoginIsBase64ForUrls) {
    const auto image = *parse_image("ghcr.io/a:2");
    std::string text = registry_login(image, "me", "pass\"word>>>???");
    EXPECT_EQ(text.find_first_of("+/"), std::string::npos);
    std::ranges::replace(text, '-', '+');
    std::ranges::replace(text, '_', '/');
    const auto login = json::parse_object(*from_base64(text));
    ASSERT_TRUE(login);
    EXPECT_EQ(login->at("password").as_string(), "pass\"word>>>???");
    EXPECT_EQ(login->at("serveraddress").as_string(), "ghcr.io");
}

// As dockerd 20.10 tells it, in pieces of every size.
constexpr std::string_view kTold =
    R"({"status":"Pulling from agent","id":"1"})"
    "\r\n"
    R"({"status":"Pulling fs layer","progressDetail":{},"id":"aa"})"
    "\r\n"
    R"({"status":"Pulling fs layer","progressDetail":{},"id":"bb"})"
    "\r\n"
    R"({"status":"Downloading","progressDetail":{"current":50,"total":100},"progress":"[=>]","id":"aa"})"
    "\r\n"
    R"({"status":"Download complete","progressDetail":{},"id":"aa"})"
    "\r\n"
    R"({"status":"Downloading","progressDetail":{"current":300,"total":300},"id":"bb"})"
    "\r\n"
    R"({"status":"Extracting","progressDetail":{"current":50,"total":100},"id":"aa"})"
    "\r\n"
    R"({"status":"Pull complete","progressDetail":{},"id":"aa"})"
    "\r\n"
    R"({"status":"Pull complete","progressDetail":{},"id":"bb"})"
    "\r\n"
    R"({"status":"Digest: sha256:00"})"
    "\r\n";

TEST(PullProgress, CountsLayersByTheirSizes) {
    for (std::size_t size = 1; size < kTold.size(); size += 7) {
        PullProgress progress;
        int before = 0;
        for (std::size_t at = 0; at < kTold.size(); at += size) {
            ASSERT_TRUE(progress.take(kTold.substr(at, size)));
            EXPECT_GE(progress.percent(), before);
            before = progress.percent();
        }
        EXPECT_EQ(progress.percent(), 100);
    }
    PullProgress half;
    ASSERT_TRUE(half.take(
        R"({"id":"aa","status":"Downloading","progressDetail":{"current":100,"total":100}})"
        "\n"
    ));
    EXPECT_EQ(half.percent(), 50);
    // A larger layer comes to light: it does not go back.
    ASSERT_TRUE(half.take(
        R"({"id":"bb","status":"Downloading","progressDetail":{"current":0,"total":9900}})"
        "\n"
    ));
    EXPECT_EQ(half.percent(), 50);
}

TEST(PullProgress, AFailureIsToldInALine) {
    PullProgress progress;
    const auto failed = progress.take(
        R"({"errorDetail":{"message":"m"},"error":"manifest for x:1 not found: manifest unknown"})"
        "\r\n"
    );
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::invalid_argument);
    EXPECT_THAT(failed.error().message, HasSubstr("manifest unknown"));
    // Without an end of the line, as podman tells it.
    const auto other = PullProgress().take(R"({"error":"connection refused"})");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::upstream_error);
}

TEST(PullProgress, NonsenseIsSurvived) {
    PullProgress progress;
    EXPECT_TRUE(progress.take("\n\r\n[1]\nnull\n<html>\n{\"id\":7,\"status\":[]}\n"));
    EXPECT_TRUE(progress.take(
        R"({"id":"x","status":"Downloading","progressDetail":{"current":-5,"total":1e300}})"
        "\n"
    ));
    EXPECT_GE(progress.percent(), 0);
    Result<> endless;
    for (int i = 0; i < 3000 && endless; ++i) {
        endless = progress.take(std::string(1000, '['));
    }
    EXPECT_EQ(endless.error().code, Code::protocol_error);
}

}  // namespace
}  // namespace comfyd::fleet
