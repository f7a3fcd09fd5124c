#include "agent/log_file.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace comfyd::agent {
namespace {

using support::read_file;

TEST(LogFile, KeepsTheLatestAndNoMoreThanItsFiles) {
    const support::TempDir folder;
    {
        LogFile log(folder / "x.log", 10, 3);
        for (int i = 0; i < 10; ++i) {
            log.append("line " + std::to_string(i) + "\n");  // 7 bytes
        }
    }
    const std::string all =
        read_file(folder / "x.log.2") + read_file(folder / "x.log.1") + read_file(folder / "x.log");
    EXPECT_TRUE(all.ends_with("line 8\nline 9\n")) << all;
    EXPECT_LE(all.size(), 30U);
    EXPECT_FALSE(std::filesystem::exists(folder / "x.log.3"));
    // What is there is gone on with.
    LogFile(folder / "x.log", 1000, 3).append("later\n");
    EXPECT_TRUE(read_file(folder / "x.log").ends_with("later\n"));
}

TEST(LogFile, ADiskThatTakesNothingStopsNobody) {
    LogFile log("/nowhere/at/all/x.log");
    log.append("lost");
    const support::TempDir folder;
    std::filesystem::create_symlink("/etc/passwd", folder / "x.log");
    LogFile(folder / "x.log").append("not there");  // a link that another made is not followed
}

}  // namespace
}  // namespace comfyd::agent
