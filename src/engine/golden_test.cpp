// Pictures recorded from ComfyUI itself, compared pixel by pixel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "engine/call.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

// The recordings of LoadImage look at its mask through this class.
Result<NodeResult> mask_to_image(Call& call) {
    const Mask& mask = call.mask("mask");
    ImageShape shape = mask.shape();
    shape.channels = 3;
    auto image = call.new_image(shape);
    if (!image) {
        return fail(image.error());
    }
    for (std::size_t i = 0; i < shape.rows() * shape.width; ++i) {
        std::fill_n(image->data() + i * 3, 3, mask.data()[i]);
    }
    return NodeResult{.outputs = {std::move(*image).finish()}};
}

Registry registry_with_masks() {
    Registry registry = make_registry();
    registry.add({
        .name = "MaskToImage",
        .display_name = "MaskToImage",
        .category = "mask",
        .inputs = {link_input("mask", "MASK")},
        .outputs = {{"IMAGE"}},
        .execute = &mask_to_image,
    });
    return registry;
}

// ComfyUI takes 16-bit colour through another colour space and back, which costs the last bit of
// some pixels.
const std::set<std::string> kOneOff = {"LoadImage/rgb16_png", "LoadImage/rgba16_png"};

std::vector<std::string> golden_cases() {
    std::vector<std::string> cases;
    for (const auto& entry : fs::recursive_directory_iterator(kGolden)) {
        const std::string group = entry.path().parent_path().filename().string();
        if (entry.path().extension() == ".json" && (group[0] != '_' || group == "_pipelines") &&
            group != "golden" && entry.path().stem() != "anim_apng_png") {
            cases.push_back(group + "/" + entry.path().stem().string());
        }
    }
    std::ranges::sort(cases);
    return cases;
}

class Golden : public ::testing::TestWithParam<std::string> {};

void expect_same_picture(
    const fs::path& expected_path, const fs::path& actual_path, int tolerance
) {
    const Rgba expected = read_rgba(expected_path);
    const Rgba actual = read_rgba(actual_path);
    ASSERT_GT(expected.width, 0U);
    ASSERT_EQ(actual.width, expected.width);
    ASSERT_EQ(actual.height, expected.height);
    std::size_t different = 0;
    int largest = 0;
    for (std::size_t i = 0; i < expected.bytes.size(); ++i) {
        const int difference = std::abs(int{expected.bytes[i]} - int{actual.bytes[i]});
        different += difference != 0 ? 1 : 0;
        largest = std::max(largest, difference);
    }
    EXPECT_LE(largest, tolerance) << different << " of " << expected.bytes.size()
                                  << " bytes differ in " << expected_path.filename();
}

TEST_P(Golden, GivesTheRecordedPixels) {
    const fs::path file = kGolden / (GetParam() + ".json");
    const json::object recorded = parse_object(slurp(file));
    TestFolders folders;
    folders.use_inputs(kGolden / "inputs");
    Core core(registry_with_masks(), folders.options());
    Recorder recorder;
    const auto result = core.run(recorded.at("prompt").as_object(), {}, recorder, {});
    ASSERT_TRUE(result) << result.error().message;

    const int tolerance = kOneOff.contains(GetParam()) ? 1 : 0;
    const json::object& outputs = recorded.at("outputs").as_object();
    EXPECT_EQ(result->outputs.size(), outputs.size());
    for (const auto& [node, files] : outputs) {
        const json::array& images = result->outputs.at(node).at("images").as_array();
        ASSERT_EQ(images.size(), files.as_array().size());
        for (std::size_t i = 0; i < images.size(); ++i) {
            const json::object& image = images[i].as_object();
            const fs::path root =
                image.at("type") == "temp" ? folders.folders().temp : folders.folders().output;
            expect_same_picture(
                file.parent_path() / std::string(files.as_array()[i].as_string()),
                root / std::string(image.at("subfolder").as_string()) /
                    std::string(image.at("filename").as_string()),
                tolerance
            );
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    Golden,
    ::testing::ValuesIn(golden_cases()),
    [](const auto& param) {
        std::string name = param.param;
        std::ranges::replace_if(
            name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_'
        );
        return name;
    }
);

TEST(GoldenText, PicturesCarryTheSameTextsAsComfyUi) {
    TestFolders folders;
    folders.use_inputs(kGolden / "inputs");
    Core core(make_registry(), folders.options());
    const json::object recorded = parse_object(slurp(kGolden / "SaveImage/rgb.json"));
    Recorder recorder;
    const auto result = core.run(recorded.at("prompt").as_object(), {}, recorder, {});
    ASSERT_TRUE(result);
    const Rgba expected = read_rgba(kGolden / "SaveImage/rgb.2.0.png");
    const Rgba actual = read_rgba(folders.folders().output / "out_00001_.png");
    EXPECT_FALSE(expected.texts.empty());
    EXPECT_EQ(actual.texts, expected.texts);
}

}  // namespace
}  // namespace comfyd::engine
