#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/inputs.hpp"
#include "fleet/outputs.hpp"

namespace comfyd::fleet {
namespace {

TEST(Results, EveryFileOfEveryListIsFound) {
    const auto outputs = *json::parse_object(R"({
        "9": {"images": [{"filename": "a.png", "subfolder": "s", "type": "output"},
                         {"filename": "b.png", "subfolder": "", "type": "temp"}], "animated": [false]},
        "4": {"gifs": [{"filename": "c.mp4"}], "3d": [{"filename": "d.glb", "type": "output"}]},
        "5": {"text": ["one", "two", 3]},
        "6": null, "7": {"images": "x"}, "8": {"images": [{"filename": ""}, {"name": "y"}, null, 5]}})"
    );
    const auto items = list_results(outputs);
    ASSERT_EQ(items.size(), 6U);
    EXPECT_EQ(items[0].node_id, "9");
    EXPECT_EQ(items[0].file.path(), "s/a.png");
    EXPECT_EQ(items[1].file.type, "temp");
    EXPECT_EQ(items[2].file.filename, "c.mp4");
    EXPECT_EQ(items[2].file.type, "output");
    EXPECT_EQ(items[3].file.filename, "d.glb");
    EXPECT_EQ(items[4].file.filename, "5_0.txt");
    EXPECT_EQ(items[4].content, "one");
    EXPECT_EQ(items[5].content, "two");
    EXPECT_TRUE(list_results({}).empty());
}

TEST(Results, TypesByContentTypeAndName) {
    EXPECT_EQ(output_type("image/png", "a.png"), "image");
    EXPECT_EQ(output_type("video/mp4", "a.mp4"), "video");
    EXPECT_EQ(output_type("audio/flac", "a.flac"), "audio");
    EXPECT_EQ(output_type("text/plain", "a.txt"), "text");
    EXPECT_EQ(output_type("application/octet-stream", "a.latent"), "latent");
    EXPECT_EQ(output_type("model/gltf-binary", "a.glb"), "file");
    EXPECT_EQ(output_type("images/png", "a"), "file");
    EXPECT_EQ(content_type_for("image/webp", "a.png"), "image/webp");
    EXPECT_EQ(content_type_for("application/octet-stream", "a.png"), "image/png");
    EXPECT_EQ(content_type_for("", "a.png"), "image/png");
}

TEST(Inputs, AssetReferencesAreFoundWhereverTheyStand) {
    auto prompt = *json::parse_object(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image":
              {"__type": "core/ASSET", "info": {"id": "i", "hash": "blake3:ab", "file_path": "x.png"}}}},
        "2": {"inputs": {"list": {"__value__": [1, {"__type": "core/ASSET", "info": {"hash": "blake3:cd"}}]},
                         "other": {"__type": "core/OTHER", "info": {}}, "link": ["1", 0]}},
        "3": {"inputs": 5}, "4": null})");
    const auto uses = find_asset_uses(prompt);
    ASSERT_EQ(uses.size(), 2U);
    EXPECT_EQ(uses[0].node_id, "1");
    EXPECT_EQ(uses[0].id, "i");
    EXPECT_EQ(uses[0].file_path, "x.png");
    EXPECT_EQ(uses[1].hash, "blake3:cd");
    *uses[0].place = "name.png";
    EXPECT_EQ(prompt.at("1").at("inputs").at("image"), "name.png");
    EXPECT_TRUE(may_use_assets(R"({"__type":"core\/ASSET"})"));
    EXPECT_FALSE(may_use_assets(R"({"1":{"class_type":"SaveImage"}})"));
}

TEST(Inputs, NamesComeFromTheContentAndAreSafe) {
    assets::Asset asset;
    asset.hash = "blake3:0123456789abcdef0123456789abcdef";
    asset.file_path = "My Cat.PNG";
    EXPECT_EQ(input_name(asset), "0123456789abcdef0123456789abcdef.PNG");
    asset.file_path = "../../etc/passwd./x";
    asset.content_type = "image/jpeg";
    EXPECT_EQ(input_name(asset), "0123456789abcdef0123456789abcdef.jpg");
    asset.content_type = "application/x-odd";
    EXPECT_EQ(input_name(asset), "0123456789abcdef0123456789abcdef");
}

}  // namespace
}  // namespace comfyd::fleet
