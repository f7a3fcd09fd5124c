#include "comfy/server/files.hpp"

#include <gtest/gtest.h>

namespace comfyd::comfy::server {
namespace {

TEST(ShownFiles, AreNamedAsInComfyUi) {
    const auto file = check_shown({"sub/a.png [temp]", "x/./y/", "output"});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->name, "a.png") << "only the last part of the name counts";
    EXPECT_EQ(file->subfolder, "x/y");
    EXPECT_EQ(file->type, "temp");
}

TEST(ShownFiles, ThatLeadOutAreRefused) {
    for (const char* name : {"", "/etc/passwd", "../x", "a/../../x", " [output]"}) {
        const auto file = check_shown({name});
        ASSERT_FALSE(file) << name;
        EXPECT_EQ(file.error(), 400) << name;
    }
    EXPECT_EQ(check_shown({"a", "", "elsewhere"}).error(), 400);
    EXPECT_EQ(check_shown({"a", "../.."}).error(), 403);
    EXPECT_EQ(check_shown({"a", "/etc"}).error(), 403);
}

TEST(Uploads, KeepTheFoldersOfTheirNames) {
    const auto file = check_upload({"sub/a.png", "x/", "input"});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->name, "sub/a.png");
    EXPECT_EQ(file->subfolder, "x");
}

TEST(Uploads, ThatLeadOutAreRefused) {
    for (const char* name : {"", ".", "..", "../a.png", "/etc/a.png", "a/", "a/."}) {
        const auto file = check_upload({name, "", "input"});
        ASSERT_FALSE(file) << name;
        EXPECT_EQ(file.error(), 400) << name;
    }
    EXPECT_EQ(check_upload({"a.png", "../..", "input"}).error(), 400);
    EXPECT_EQ(check_upload({"a.png", "", "elsewhere"}).error(), 500);
}

}  // namespace
}  // namespace comfyd::comfy::server
