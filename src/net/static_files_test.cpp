#include "net/static_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace comfyd::net {
namespace {

namespace fs = std::filesystem;

TEST(HttpDate, IsThatOfTheStandard) {
    EXPECT_EQ(http_date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

class StaticFiles : public testing::Test {
protected:
    StaticFiles() {
        std::string name = (fs::temp_directory_path() / "comfyd-static-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        fs::create_directories(folder_ / "root/assets");
        for (const char* file : {"secret", "root/index.html", "root/assets/a b.js"}) {
            std::ofstream(folder_ / file) << "x";
        }
    }
    ~StaticFiles() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }

    fs::path folder_;
};

TEST_F(StaticFiles, AreFoundBelowTheRootOnly) {
    const fs::path root = folder_ / "root";
    EXPECT_EQ(find_static(root, "/"), root / "index.html");
    EXPECT_EQ(find_static(root, "/assets/a%20b.js"), root / "assets/a b.js");
    for (const char* path :
         {"/assets",
          "/none",
          "/../secret",
          "/%2e%2e/secret",
          "/..%2fsecret",
          "/assets/../../secret",
          "/%",
          "/%00",
          "",
          "assets"}) {
        EXPECT_FALSE(find_static(root, path)) << path;
    }
    EXPECT_FALSE(find_static(root, "//etc/passwd"));
}

}  // namespace
}  // namespace comfyd::net
