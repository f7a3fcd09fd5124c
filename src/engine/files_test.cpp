#include "engine/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class Files : public ::testing::Test {
protected:
    Result<std::string> save(const std::string& prefix, std::string_view content = "x") {
        const auto place = make_save_place(folders.folders().output, prefix, 640, 480);
        if (!place) {
            return fail(place.error());
        }
        return save_counted(
            *place,
            place->counter,
            0,
            "png",
            [&](const FileSink& sink) -> Result<> {
                sink(content.data(), content.size());
                return {};
            }
        );
    }
    void touch(const std::string& name) { std::ofstream(folders.folders().output / name) << "old"; }

    TestFolders folders;
};

TEST_F(Files, CountersGoOnAfterTheHighest) {
    touch("pic_00041_.png");
    touch("pic_x_.png");
    touch("pic_7");
    touch("pic_2_00077_.png");
    touch("picture_00099_.png");
    touch("pic_99999999999999999999_.png");
    EXPECT_EQ(save("pic").value(), "pic_00042_.png");
    EXPECT_EQ(save("pic_2").value(), "pic_2_00078_.png");
    EXPECT_EQ(save("other").value(), "other_00001_.png");
}

// The folder is read once: what others put there later is not counted, and not replaced either.
TEST_F(Files, FoldersAreReadOnce) {
    EXPECT_EQ(save("pic").value(), "pic_00001_.png");
    touch("pic_00002_.png");
    touch("pic_00041_.png");
    EXPECT_EQ(save("pic").value(), "pic_00003_.png");
    for (const char* name : {"pic_00001_.png", "pic_00003_.png"}) {
        fs::remove(folders.folders().output / name);
    }
    EXPECT_EQ(save("pic").value(), "pic_00004_.png");
    EXPECT_EQ(slurp(folders.folders().output / "pic_00002_.png"), "old");
}

TEST_F(Files, UnfinishedFilesOfTheDeadAreRemoved) {
    fs::create_directories(folders.folders().output / "sub");
    touch(".comfyd-0123");
    touch("sub/.comfyd-4567");
    touch("kept.png");
    const auto place = make_save_place(folders.folders().output, "sub/pic", 1, 1);
    ASSERT_TRUE(place);
    const auto saved = save_counted(*place, 1, 0, "png", [&](const FileSink& sink) -> Result<> {
        sink("x", 1);
        remove_leftovers(folders.folders().output);  // another process starts meanwhile
        return {};
    });
    EXPECT_TRUE(saved);
    EXPECT_THAT(folders.output_names(), ElementsAre("kept.png", "sub/pic_00001_.png"));
}

TEST_F(Files, LongPrefixesAreRefusedAtOnce) {
    std::string prefix;
    while (prefix.size() < 20'000'000) {
        prefix += "%year%%batch_num%";
    }
    const auto place = make_save_place(folders.folders().output, prefix, 1, 1);
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().code, Code::node_execution_error);
}

TEST_F(Files, ExtensionsCannotLeaveTheFolder) {
    ASSERT_TRUE(save("pic_00001./x"));  // makes the folder that a name could lead through
    const auto place = make_save_place(folders.folders().output, "pic", 1, 1);
    ASSERT_TRUE(place);
    const auto write = [](const FileSink& sink) -> Result<> {
        sink("x", 1);
        return {};
    };
    for (const std::string& extension :
         {std::string("/../../out"), std::string("/x"), std::string("a\0b", 3)}) {
        const SavePlace plain{place->folder, place->subfolder, place->base, 1, ""};
        EXPECT_FALSE(save_counted(plain, 1, 0, extension, write)) << extension;
    }
    EXPECT_THAT(folders.output_names(), ElementsAre("pic_00001./x_00001_.png"));
}

TEST_F(Files, PrefixesMayNameSubfoldersAndSizes) {
    ASSERT_TRUE(save("a/b/size_%width%x%height%"));
    EXPECT_THAT(folders.output_names(), ElementsAre("a/b/size_640x480_00001_.png"));
    const auto place = make_save_place(folders.folders().output, "a/./c/../b/", 1, 1);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->subfolder, "a");
    EXPECT_EQ(place->base, "b");
}

TEST_F(Files, TimeIsFilledIn) {
    EXPECT_THAT(
        save("%year%-%month%-%day%_%hour%%minute%%second%").value(),
        MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]_[0-9]+_00001_.png")
    );
}

TEST_F(Files, PrefixesCannotLeaveTheFolder) {
    for (const std::string prefix : {"../x", "a/../../x", "/tmp/x", "/x", "..", "a/../..", "../"}) {
        const auto place = make_save_place(folders.folders().output, prefix, 1, 1);
        ASSERT_FALSE(place) << prefix;
        EXPECT_EQ(place.error().code, Code::node_execution_error);
    }
    EXPECT_FALSE(make_save_place(folders.folders().output, std::string_view("a\0b", 3), 1, 1));
    EXPECT_TRUE(make_save_place(folders.folders().output, "", 1, 1));
    EXPECT_THAT(folders.output_names(), IsEmpty());
}

TEST_F(Files, ATakenNameIsNeverReplaced) {
    const auto place = make_save_place(folders.folders().output, "n", 1, 1);
    touch("n_00001_.png");  // another process was faster
    const auto name =
        save_counted(*place, place->counter, 0, "png", [](const FileSink& sink) -> Result<> {
            sink("new", 3);
            return {};
        });
    EXPECT_EQ(name.value(), "n_00002_.png");
    EXPECT_EQ(slurp(folders.folders().output / "n_00001_.png"), "old");
    EXPECT_EQ(slurp(folders.folders().output / "n_00002_.png"), "new");
}

TEST_F(Files, AFailedWriteLeavesNothing) {
    const auto place = make_save_place(folders.folders().output, "n", 1, 1);
    const auto result = save_counted(*place, 1, 0, "png", [](const FileSink& sink) -> Result<> {
        sink("half", 4);
        return fail(Code::cancelled, "stopped");
    });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_THAT(folders.output_names(), IsEmpty());
}

TEST_F(Files, ALargeWriteIsComplete) {
    const std::string content(3'000'001, 'z');
    const auto name = save("big", content);
    EXPECT_EQ(slurp(folders.folders().output / name.value()), content);
}

TEST_F(Files, NamesThatAreTooLongAreAClearError) {
    const auto result = save(std::string(300, 'n'));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    EXPECT_THAT(folders.output_names(), IsEmpty());
}

TEST_F(Files, AFolderThatCannotBeMadeIsAStorageError) {
    touch("file");
    const auto result = save("file/below/x");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::storage_unavailable);
}

TEST_F(Files, ManyWritersOfOnePrefixGetDifferentNames) {
    constexpr int kEach = 20;
    const auto writer = [this] {
        for (int i = 0; i < kEach; ++i) {
            EXPECT_TRUE(save("race"));
        }
    };
    std::thread first(writer);
    std::thread second(writer);
    first.join();
    second.join();
    EXPECT_EQ(folders.output_names().size(), std::size_t{2 * kEach});
}

TEST_F(Files, OnlyRegularFilesOfBoundedSizeAreRead) {
    EXPECT_EQ(read_file(folders.folders().input / "none").error().code, Code::not_found);
    EXPECT_EQ(read_file(folders.folders().input).error().code, Code::not_found);
    const fs::path pipe = folders.folders().input / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(read_file(pipe).error().code, Code::not_found);
    folders.add_input("huge", "x");
    fs::resize_file(folders.folders().input / "huge", kFileBytesMax + 1);  // sparse
    EXPECT_EQ(read_file(folders.folders().input / "huge").error().code, Code::payload_too_large);
    folders.add_input("small", "abc");
    EXPECT_EQ(read_file(folders.folders().input / "small").value(), "abc");
}

}  // namespace
}  // namespace comfyd::engine
