#include "engine/file_hashes.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/crypto.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

namespace fs = std::filesystem;

class FileHashesTest : public ::testing::Test {
protected:
    void write(std::string_view content) {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
    }
    static std::string hash_of(std::string_view content) { return to_hex(sha256(content)); }

    testing::TestFolders folders_;
    fs::path path_ = folders_.folders().input / "file.bin";
    // Far ahead of the files' times, so that all of them count as settled.
    ManualClock clock_{SystemClock().now() + std::chrono::hours(24)};
    FileHashes hashes_{clock_};
};

TEST_F(FileHashesTest, RemembersWhatStaysAsItIs) {
    write("one");
    EXPECT_EQ(hashes_.hash(path_).value(), hash_of("one"));
    EXPECT_EQ(hashes_.remembered(), 1U);
    EXPECT_EQ(hashes_.hash(path_).value(), hash_of("one"));
}

TEST_F(FileHashesTest, SeesEveryChange) {
    write("one");
    ASSERT_TRUE(hashes_.hash(path_));
    write("three");
    EXPECT_EQ(hashes_.hash(path_).value(), hash_of("three"));
    fs::remove(path_);
    EXPECT_FALSE(hashes_.hash(path_));
    write("eleven");
    EXPECT_EQ(hashes_.hash(path_).value(), hash_of("eleven"));
}

TEST_F(FileHashesTest, DoesNotTrustWhatIsNew) {
    const ManualClock now(SystemClock().now());
    FileHashes hashes(now);
    write("one");
    EXPECT_EQ(hashes.hash(path_).value(), hash_of("one"));
    EXPECT_EQ(hashes.remembered(), 0U);
}

}  // namespace
}  // namespace comfyd::engine
