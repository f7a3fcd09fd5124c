#include <gtest/gtest.h>

#include "engine/nodes/text/shown_test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

json::object save_set(
    const std::string& folder, const std::string& prefix, const std::string& mode
) {
    return {
        {"1", empty_image(2, 0xFF8000, 2)},
        {"2", node_of("PrimitiveString", {{"value", "a cube"}})},
        {"3",
         node_of(
             "SaveImageTextDataSetToFolder",
             {{"images", link_to("1")},
              {"texts", link_to("2")},
              {"folder_name", folder},
              {"filename_prefix", prefix},
              {"mode", mode}}
         )},
    };
}

TEST(Dataset, SavedFoldersAreReplacedOrContinued) {
    TestFolders folders;
    Core core(make_registry(), folders.options());
    for (const char* mode : {"overwrite", "overwrite", "increment"}) {
        Recorder recorder;
        core.free_memory();
        const auto result = core.run(save_set("set", "pic", mode), {}, recorder, {});
        ASSERT_TRUE(result) << result.error().message;
    }
    const auto names = folders.output_names();
    EXPECT_TRUE(std::ranges::find(names, "set/pic_00000.png") != names.end());
    EXPECT_TRUE(std::ranges::find(names, "set/pic_00001.png") != names.end());
    EXPECT_EQ(slurp(folders.folders().output / "set/pic_00000.txt"), "a cube");
    EXPECT_EQ(names.size(), 6U);
    EXPECT_EQ(read_rgba(folders.folders().output / "set/pic_00001.png").width, 2U);
}

TEST(Dataset, NamesCannotLeaveTheOutputFolder) {
    for (const auto& [folder, prefix] :
         {std::pair{"../out", "x"}, std::pair{"/tmp", "x"}, std::pair{"set", "../../x"}}) {
        TestFolders folders;
        Core core(make_registry(), folders.options());
        Recorder recorder;
        const auto result = core.run(save_set(folder, prefix, "overwrite"), {}, recorder, {});
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().details.at("exception_type"), "ValueError");
        EXPECT_TRUE(folders.output_names().empty());
    }
}

TEST(Dataset, AFolderWithoutPicturesIsRefused) {
    TestFolders folders;
    fs::create_directories(folders.folders().input / "empty");
    Core core(make_registry(), folders.options());
    Recorder recorder;
    const auto result = core.run(
        {{"1", node_of("LoadImageDataSetFromFolder", {{"folder", "empty"}})},
         {"2", save_image("1", "x")}},
        {},
        recorder,
        {}
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().details.at("exception_message"), "No valid images found in input\n");
}

}  // namespace
}  // namespace comfyd::engine
