// What the recordings do not show: pictures of one pixel, values that are no numbers or far too
// large, and refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "engine/node_test_support.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

using Inputs = NamedValues;

class ImageNodes : public testing::NodeTest {
protected:
    ImageNodes() : NodeTest(1ULL << 28) {}

    Image image(ImageShape shape, const std::function<float(std::size_t)>& value) {
        auto pixels = FloatBuffer::try_make(
            memory_, shape.batch * shape.height * shape.width * shape.channels
        );
        for (std::size_t i = 0; i < pixels->size(); ++i) {
            pixels->data()[i] = value(i);
        }
        return {shape, std::move(pixels)};
    }
    Image plain(ImageShape shape, float value) {
        return image(shape, [value](std::size_t) { return value; });
    }

    Result<NodeResult> run(const NodeClass& node, Inputs inputs) {
        Call call(surroundings_, node_id_, std::move(inputs));
        return node.execute(call);
    }
    Image picture(const NodeClass& node, Inputs inputs) {
        auto result = run(node, std::move(inputs));
        EXPECT_TRUE(result) << node.name << ": " << result.error().message;
        const auto whole =
            result ? Call(surroundings_, node_id_, {}).whole(to_image_view(result->outputs[0]))
                   : Result<Image>(plain({1, 1, 1, 3}, -1.0F));
        return *whole;
    }
    std::string refusal(const NodeClass& node, Inputs inputs) {
        const auto result = run(node, std::move(inputs));
        return result ? "accepted" : result.error().message;
    }
};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Every class that takes one picture, with the rest of its inputs.
std::vector<std::pair<NodeClass, Inputs>> one_picture_classes() {
    const auto text = [](const char* value) { return std::string(value); };
    return {
        {image_scale_by(), {{"upscale_method", text("lanczos")}, {"scale_by", 2.0}}},
        {image_scale_to_total_pixels(),
         {{"upscale_method", text("area")},
          {"megapixels", 0.01},
          {"resolution_steps", std::int64_t{8}}}},
        {image_scale_to_max_dimension(),
         {{"upscale_method", text("bicubic")}, {"largest_size", std::int64_t{9}}}},
        {resize_and_pad_image(),
         {{"target_width", std::int64_t{7}},
          {"target_height", std::int64_t{5}},
          {"padding_color", text("white")},
          {"interpolation", text("bilinear")}}},
        {resize_images_by_longer_edge(), {{"longer_edge", std::int64_t{6}}}},
        {resize_images_by_shorter_edge(), {{"shorter_edge", std::int64_t{6}}}},
        {center_crop_images(), {{"width", std::int64_t{3}}, {"height", std::int64_t{1}}}},
        {random_crop_images(),
         {{"width", std::int64_t{1}}, {"height", std::int64_t{1}}, {"seed", std::int64_t{5}}}},
        {image_flip(), {{"flip_method", text("y-axis: horizontally")}}},
        {image_rotate(), {{"rotation", text("270 degrees")}}},
        {image_from_batch(), {{"batch_index", std::int64_t{-9}}, {"length", std::int64_t{9}}}},
        {repeat_image_batch(), {{"amount", std::int64_t{3}}}},
        {image_quantize(), {{"colors", std::int64_t{2}}, {"dither", text("floyd-steinberg")}}},
        {image_add_noise(), {{"seed", std::int64_t{1}}, {"strength", 0.5}}},
        {adjust_brightness(), {{"factor", 2.0}}},
        {adjust_contrast(), {{"factor", 2.0}}},
        {normalize_images(), {{"mean", 0.5}, {"std", 0.5}}},
        {image_rgb_to_yuv(), {}},
        {morphology(), {{"operation", text("gradient")}, {"kernel_size", std::int64_t{999}}}},
        {image_histogram(), {}},
        {get_image_size(), {}},
    };
}

void give(Inputs& inputs, const Image& image) {
    inputs.emplace_back("image", image);
    inputs.emplace_back("images", image);
}

TEST_F(ImageNodes, OnePixelIsAPicture) {
    for (auto& [node, inputs] : one_picture_classes()) {
        give(inputs, plain({1, 1, 1, 3}, 0.5F));
        EXPECT_TRUE(run(node, inputs)) << node.name;
    }
}

TEST_F(ImageNodes, NoValueIsTooStrange) {
    constexpr float kStrange[] = {kNaN, INFINITY, -INFINITY, 3e38F, -3e38F, 1e-45F, 0.5F};
    for (auto& [node, inputs] : one_picture_classes()) {
        give(inputs, image({1, 9, 7, 3}, [&](std::size_t i) { return kStrange[i % 7]; }));
        EXPECT_TRUE(run(node, inputs)) << node.name;
    }
}

TEST_F(ImageNodes, ThereIsNoNumberWhereThereWasNone) {
    const Image none = plain({1, 4, 4, 3}, kNaN);
    const Image brighter = picture(adjust_brightness(), {{"images", none}, {"factor", 2.0}});
    const Image wider = picture(
        morphology(),
        {{"image", none}, {"operation", std::string("dilate")}, {"kernel_size", std::int64_t{3}}}
    );
    EXPECT_TRUE(std::isnan(brighter.data()[0]));
    EXPECT_TRUE(std::isnan(wider.data()[0]));
}

TEST_F(ImageNodes, EdgesOfStrangePicturesDoNotHang) {
    const Image strange =
        image({2, 8, 8, 3}, [](std::size_t i) { return i % 5 == 0 ? kNaN : 3e38F; });
    const auto edges =
        run(canny(), {{"image", strange}, {"low_threshold", 0.1}, {"high_threshold", 0.2}});
    EXPECT_TRUE(edges);
}

TEST_F(ImageNodes, WhatKeepsEverythingIsTheInput) {
    const Image given = plain({1, 5, 4, 3}, 0.25F);
    const Image whole = picture(
        image_crop(),
        {{"image", given},
         {"x", std::int64_t{0}},
         {"y", std::int64_t{0}},
         {"width", std::int64_t{99}},
         {"height", std::int64_t{99}}}
    );
    EXPECT_EQ(whole.data(), given.data());
    const Image same =
        picture(image_rotate(), {{"image", given}, {"rotation", std::string("none")}});
    EXPECT_EQ(same.data(), given.data());
}

TEST_F(ImageNodes, FourQuarterTurnsAreNone) {
    const Image given = image({2, 3, 5, 4}, [](std::size_t i) { return static_cast<float>(i); });
    Image turned = given;
    for (int i = 0; i < 4; ++i) {
        turned =
            picture(image_rotate(), {{"image", turned}, {"rotation", std::string("90 degrees")}});
    }
    ASSERT_EQ(turned.shape(), given.shape());
    EXPECT_TRUE(std::equal(given.data(), given.data() + 120, turned.data()));
}

TEST_F(ImageNodes, ReflectionNeedsMoreThanTheRadius) {
    const Image small = plain({1, 2, 9, 3}, 0.5F);
    EXPECT_EQ(
        refusal(image_blur(), {{"image", small}, {"blur_radius", std::int64_t{3}}, {"sigma", 1.0}}),
        "Argument #6: Padding size should be less than the corresponding input dimension, but "
        "got: padding (3, 3) at dimension 2 of input [1, 3, 2, 9]"
    );
}

TEST_F(ImageNodes, RefusesAsComfyUiDoes) {
    const Image batch = plain({2, 4, 6, 3}, 0.5F);
    const Image alpha = plain({1, 4, 6, 4}, 0.5F);
    EXPECT_EQ(
        refusal(
            center_crop_images(),
            {{"images", batch}, {"width", std::int64_t{1}}, {"height", std::int64_t{1}}}
        ),
        "Cannot handle this data type: (1, 1, 6, 3), |u1"
    );
    EXPECT_EQ(
        refusal(image_rgb_to_yuv(), {{"image", alpha}}),
        "Input size must have a shape of (*, 3, H, W). Got torch.Size([1, 4, 4, 6])"
    );
    EXPECT_EQ(
        refusal(
            image_scale_to_max_dimension(),
            {{"image", alpha},
             {"upscale_method", std::string("lanczos")},
             {"largest_size", std::int64_t{0}}}
        ),
        "height and width must be > 0"
    );
    EXPECT_EQ(
        refusal(canny(), {{"image", batch}, {"low_threshold", 0.8}, {"high_threshold", 0.4}}),
        "Invalid input thresholds. low_threshold should be smaller than the high_threshold. Got: "
        "0.8>0.4"
    );
}

TEST_F(ImageNodes, OnlyAFullBatchOfEqualSizesIsJoined) {
    const Image a = plain({1, 4, 6, 3}, 0.5F);
    const Image b = plain({1, 5, 6, 3}, 0.5F);
    const auto list = [](std::vector<Value> items) {
        return std::shared_ptr<const List>(std::make_shared<List>(List{std::move(items)}));
    };
    EXPECT_EQ(
        refusal(
            rebatch_images(), {{"images", list({a, b})}, {"batch_size", list({std::int64_t{2}})}}
        ),
        "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 5 for "
        "tensor number 1 in the list."
    );
    const auto apart =
        run(rebatch_images(), {{"images", list({a, b})}, {"batch_size", list({std::int64_t{1}})}});
    ASSERT_TRUE(apart);
    EXPECT_EQ(std::get<std::shared_ptr<const List>>(apart->outputs[0])->items.size(), 2U);
}

}  // namespace
}  // namespace comfyd::engine::nodes
