#include <gtest/gtest.h>

#include <cstring>

#include "engine/nodes/text/shown_test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

json::object empty_latent(const std::string& class_type, int width, int height, int batch = 1) {
    return node_of(class_type, {{"width", width}, {"height", height}, {"batch_size", batch}});
}

// A latent whose noise mask is a small picture, so that its numbers can be seen and followed.
json::object marked(json::object more) {
    json::object prompt{
        {"e", empty_latent("EmptyLatentImage", 16, 16, 2)},
        {"m", node_of("SolidMask", {{"value", 0.5}, {"width", 1}, {"height", 1}})},
        {"l", node_of("SetLatentNoiseMask", {{"samples", link_to("e")}, {"mask", link_to("m")}})},
    };
    for (auto& [key, value] : more) {
        prompt[key] = value;
    }
    return prompt;
}

TEST(EmptyLatents, HaveTheShapesOfTheirModels) {
    EXPECT_EQ(
        shown({{"1", empty_latent("EmptyLatentImage", 16, 16)}}, "1"),
        "{'samples': tensor([[[[0., 0.],\n          [0., 0.]],\n\n         [[0., 0.],\n          "
        "[0., "
        "0.]],\n\n         [[0., 0.],\n          [0., 0.]],\n\n         [[0., 0.],\n          [0., "
        "0.]]]])}"
    );
    TestFolders folders;
    Core core(make_registry(), folders.options());
    Recorder recorder;
    const auto result = core.run(
        {{"1",
          node_of(
              "EmptyMochiLatentVideo",
              {{"width", 64}, {"height", 32}, {"length", 13}, {"batch_size", 2}}
          )},
         {"2", node_of("SaveLatent", {{"samples", link_to("1")}, {"filename_prefix", "latents/x"}})}
        },
        {},
        recorder,
        {}
    );
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(folders.output_names(), std::vector<std::string>{"latents/x_00001_.latent"});
    const std::string file = slurp(folders.folders().output / "latents/x_00001_.latent");
    std::uint64_t size = 0;
    std::memcpy(&size, file.data(), sizeof size);
    EXPECT_EQ(size % 8, 0U);
    const json::object header = parse_object(file.substr(8, size));
    const json::object& tensor = header.at("latent_tensor").as_object();
    EXPECT_EQ(tensor.at("shape"), (json::array{2, 12, 3, 4, 8}));
    EXPECT_EQ(file.size(), 8 + size + 2 * 12 * 3 * 4 * 8 * 4);
}

TEST(LatentNodes, BatchesKeepMaskAndIndexes) {
    EXPECT_TRUE(shown(
                    marked(
                        {{"1",
                          node_of(
                              "LatentFromBatch",
                              {{"samples", link_to("l")}, {"batch_index", 1}, {"length", 5}}
                          )}}
                    ),
                    "1"
    )
                    .ends_with(", 'noise_mask': tensor([[[[0.5000]]]]), 'batch_index': [1]}"));
    EXPECT_TRUE(
        shown(
            marked(
                {{"1",
                  node_of(
                      "LatentFromBatch",
                      {{"samples", link_to("l")}, {"batch_index", 1}, {"length", 1}}
                  )},
                 {"2", node_of("RepeatLatentBatch", {{"samples", link_to("1")}, {"amount", 3}})}}
            ),
            "2"
        )
            .ends_with("'batch_index': [1, 2, 3]}")
    );
    EXPECT_TRUE(
        shown(
            marked(
                {{"1",
                  node_of("LatentBatch", {{"samples1", link_to("l")}, {"samples2", link_to("e")}})}}
            ),
            "1"
        )
            .ends_with("'batch_index': [0, 1, 0, 1]}")
    );
}

TEST(LatentNodes, BislerpIsRefused) {
    EXPECT_TRUE(
        shown(
            marked(
                {{"1",
                  node_of(
                      "LatentUpscaleBy",
                      {{"samples", link_to("e")}, {"upscale_method", "bislerp"}, {"scale_by", 2.0}}
                  )}}
            ),
            "1"
        )
            .starts_with("NotImplementedError")
    );
}

TEST(LoadLatent, RefusesDamagedFiles) {
    for (const std::string& content :
         {std::string("short"),
          std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{}"),
          std::string("\x02\0\0\0\0\0\0\0{}", 10),
          std::string("\x60\0\0\0\0\0\0\0", 8) +
              R"({"latent_tensor":{"dtype":"F32","shape":[1,4,9999999999,9],"data_offsets":[0,4]}}            )"
         }) {
        TestFolders folders;
        folders.add_input("x.latent", content);
        Core core(make_registry(), folders.options());
        Recorder recorder;
        const auto result = core.run(
            {{"1", node_of("LoadLatent", {{"latent", "x.latent"}})},
             {"2", node_of("PreviewAny", {{"source", link_to("1")}})}},
            {},
            recorder,
            {}
        );
        EXPECT_FALSE(result);
    }
}

TEST(Sigmas, SchedulesAndTheirParts) {
    const json::object manual = node_of("ManualSigmas", {{"sigmas", "3, 2.5 -1 x .5"}});
    EXPECT_EQ(shown({{"1", manual}}, "1"), "tensor([ 3.0000,  2.5000, -1.0000,  0.5000])");
    const json::object split = node_of("SplitSigmas", {{"sigmas", link_to("1")}, {"step", 1}});
    EXPECT_EQ(shown({{"1", manual}, {"2", split}}, "2", 0), "tensor([3.0000, 2.5000])");
    EXPECT_EQ(shown({{"1", manual}, {"2", split}}, "2", 1), "tensor([ 2.5000, -1.0000,  0.5000])");
    EXPECT_EQ(
        shown_node(
            "KarrasScheduler", {{"steps", 3}, {"sigma_max", 10.0}, {"sigma_min", 0.1}, {"rho", 7.0}}
        ),
        "tensor([10.0000,  1.4507,  0.1000,  0.0000])"
    );
}

std::string edge(const std::string& row, int count, const std::string& between) {
    std::string text = row;
    for (int i = 1; i < count; ++i) {
        text += between + row;
    }
    return text;
}

TEST(PreviewAny, ShowsTensorsAsPyTorch) {
    const std::string kRow = "[1., 1., 1., 1., 1., 1.,  ..., 1., 1., 1., 1., 1., 1.]";
    EXPECT_EQ(
        shown_node("SolidMask", {{"value", 0.25}, {"width", 2}, {"height", 1}}),
        "tensor([[[0.2500, 0.2500]]])"
    );
    EXPECT_EQ(
        shown_node("SolidMask", {{"value", 1.0}, {"width", 100}, {"height", 100}}),
        "tensor([[" + edge(kRow, 6, ",\n         ") + ",\n         ...,\n         " +
            edge(kRow, 6, ",\n         ") + "]])"
    );
}

}  // namespace
}  // namespace comfyd::engine
