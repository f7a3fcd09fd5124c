#include "workflow/files/asset_ref.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace comfyd::workflow {
namespace {

json::object parse(const char* text) {
    return *json::parse_object(text);
}

TEST(AssetRef, SaysWhatItWasMadeOf) {
    const AssetRef made{.id = "x", .hash = "blake3:y", .file_path = "a.png", .name = "set/a.png"};
    const auto read = AssetRef::read(made.to_json());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->id, "x");
    EXPECT_EQ(read->hash, "blake3:y");
    EXPECT_EQ(read->file_path, "a.png");
    EXPECT_EQ(read->name, "set/a.png");
    EXPECT_EQ(
        json::serialize(AssetRef{.hash = "blake3:y"}.to_json()),
        R"({"__type":"core/ASSET","info":{"hash":"blake3:y"}})"
    );
}

TEST(AssetRef, OneThatSaysNothingIsStillOne) {
    const json::value silent = parse(R"({"__type": "core/ASSET", "info": 7})");
    EXPECT_TRUE(is_asset_ref(silent));
    EXPECT_FALSE(AssetRef::read(silent));
    EXPECT_FALSE(is_asset_ref(parse(R"({"__type": 5, "info": {}})")));
    EXPECT_FALSE(is_asset_ref(parse(R"({"info": {"id": "x"}})")));
    EXPECT_FALSE(is_asset_ref("core/ASSET"));
}

TEST(AssetRef, AreFoundAtAnyDepthOfAnInput) {
    const json::object workflow = parse(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": {"id": "a"}}}},
        "2": {"class_type": "Many", "inputs": {
            "images": {"__value__": [{"__type": "core/ASSET", "info": {"id": "b"}}, "c.png"]},
            "options": {"mask": {"file": {"__type": "core/ASSET", "info": {"id": "d"}}}},
            "link": ["1", 0]}},
        "3": 5,
        "4": {"class_type": "None", "inputs": []}})");
    std::vector<std::string> found;
    each_asset_ref(
        workflow,
        [&found](std::string_view node, std::string_view input, const json::value& value) {
            found.push_back(
                std::string(node) + "." + std::string(input) + "=" + AssetRef::read(value)->id
            );
        }
    );
    EXPECT_EQ(found, (std::vector<std::string>{"1.image=a", "2.images=b", "2.options=d"}));
}

}  // namespace
}  // namespace comfyd::workflow
