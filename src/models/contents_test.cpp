// Room in the cache: what is on its way counts before it has come, and only as long as it comes.
#include "models/contents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/temp_dir.hpp"

namespace comfyd::models {
namespace {

using testing::HasSubstr;

class RoomInTheCache : public testing::Test {
protected:
    static constexpr std::uint64_t kLimit = 300'000;

    RoomInTheCache() { EXPECT_TRUE(contents_.open()); }

    ContentsOptions options() const {
        return {folder_.path() / "cache", folder_.path() / "models", kLimit, folder_.path(), {}};
    }
    PartFile part(const std::string& key) const {
        return *PartFile::open(folder_.path() / "cache", key);
    }
    // A content that is there, and that nobody has open.
    void have(char digit, std::size_t bytes) const {
        folder_.write("cache/" + std::string(64, digit), std::string(bytes, 'x'));
    }
    bool has(char digit) const {
        return std::filesystem::exists(contents_.path_of(std::string(64, digit)));
    }
    // Asked by this process or, with a cache of its own, by another.
    static std::string room_for(Contents contents, PartFile& part, std::uint64_t total) {
        const auto made = contents.make_room(part, total);
        return !made ? std::string(to_string(made.error().code)) : *made ? "yes" : "later";
    }
    std::string room_for(PartFile& part, std::uint64_t total) {
        return room_for(contents_, part, total);
    }

    support::TempDir folder_;
    Contents contents_{options()};
};

TEST_F(RoomInTheCache, IsPromisedOnceToOneOfTwoThatAreOnTheirWay) {
    PartFile second = part("second");
    {
        PartFile first = part("first");
        EXPECT_EQ(room_for(first, 200'000), "yes");
        EXPECT_EQ(room_for(first, 200'000), "yes") << "it counts once";
        EXPECT_EQ(room_for(second, 100'001), "later") << "it may be there later";
        EXPECT_EQ(room_for(Contents(options()), second, 100'001), "later") << "of another process";
        EXPECT_EQ(room_for(second, kLimit + 1), "storage_full") << "it will never be there";
        EXPECT_EQ(room_for(second, 100'000), "yes");
    }
    EXPECT_EQ(room_for(second, kLimit), "yes") << "the first one has ended";
}

TEST_F(RoomInTheCache, OfAProcessThatIsKilledIsFreeAgain) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        PartFile first = part("first");
        const bool is_promised = room_for(Contents(options()), first, 200'000) == "yes";
        const bool is_told = ::write(told[1], is_promised ? "y" : "n", 1) == 1;
        while (is_told) {
            ::pause();
        }
        ::_exit(1);
    }
    char answer = 0;
    ASSERT_EQ(::read(told[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    PartFile second = part("second");
    EXPECT_EQ(room_for(second, 200'000), "later");
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_EQ(room_for(second, 200'000), "yes");
    ::close(told[0]);
    ::close(told[1]);
}

TEST_F(RoomInTheCache, WhoHasSomeAndNeedsMoreWaitsForNobody) {
    PartFile first = part("first");
    PartFile second = part("second");
    EXPECT_EQ(room_for(first, 100'000), "yes");
    EXPECT_EQ(room_for(second, 150'000), "yes");
    EXPECT_EQ(room_for(first, 150'001), "storage_full") << "else both might wait for ever";
    EXPECT_EQ(room_for(first, 150'000), "yes");
}

TEST_F(RoomInTheCache, IsMadeOfWhatNobodyNeedsAndNotOfWhatIsOnItsWay) {
    have('a', 100'000);
    PartFile first = part("first");
    ASSERT_TRUE(first.begin({}, false));
    ASSERT_TRUE(first.append(std::string(50'000, 'x')));
    EXPECT_EQ(room_for(first, 150'000), "yes");
    EXPECT_TRUE(has('a'));
    PartFile second = part("second");
    EXPECT_EQ(room_for(second, 200'000), "later");
    EXPECT_TRUE(has('a')) << "it would not be enough";
    EXPECT_EQ(room_for(second, 150'000), "yes");
    EXPECT_FALSE(has('a'));
    EXPECT_EQ(first.size(), 50'000U);
    EXPECT_THAT(
        Contents(options()).make_room(first, kLimit + 1).error().message, HasSubstr("300000")
    );
}

// It is somebody's who has not linked it yet.
TEST_F(RoomInTheCache, IsNotMadeOfWhatHasJustCome) {
    PartFile first = part("first");
    ASSERT_TRUE(first.begin({}, false));
    ASSERT_TRUE(first.append("content"));
    EXPECT_EQ(room_for(first, kLimit), "yes");
    const auto content = first.judge();
    ASSERT_TRUE(content);
    ASSERT_TRUE(first.publish(contents_.path_of(content->sha256)));
    PartFile second = part("second");
    EXPECT_EQ(room_for(second, kLimit), "later");
    EXPECT_TRUE(contents_.find(content->sha256));
    first.discard();  // nobody holds it any more
    EXPECT_EQ(room_for(second, kLimit), "yes");
    EXPECT_FALSE(contents_.find(content->sha256));
    EXPECT_EQ(
        contents_.link("vae", "a.safetensors", content->sha256).error().code, Code::storage_full
    );
}

}  // namespace
}  // namespace comfyd::models
