// What the recordings do not show: pictures of one pixel, values that are no numbers or far too
// large, and refusals.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/node_test_support.hpp"

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
            {{"images", plain({1, 4, 6, 1}, 0.5F)},
             {"width", std::int64_t{1}},
             {"height", std::int64_t{1}}}
        ),
        "Cannot handle this data type: (1, 1, 1), |u1"
    );
    EXPECT_EQ(
        refusal(
            center_crop_images(),
            {{"images", batch}, {"width", std::int64_t{-1}}, {"height", std::int64_t{1}}}
        ),
        "Coordinate 'right' is less than 'left'"
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

std::shared_ptr<const List> list(std::vector<Value> items) {
    return std::make_shared<List>(List{std::move(items)});
}

TEST_F(ImageNodes, WhatIsLaidAroundAStitchedPictureHasItsAlpha) {
    const auto stitched = [&](std::size_t channels, std::size_t other) {
        return picture(
            image_stitch(),
            {{"image1", plain({1, 5, 2, channels}, 0.5F)},
             {"image2", plain({1, 1, 2, other}, 0.5F)},
             {"direction", std::string("right")},
             {"match_image_size", false},
             {"spacing_width", std::int64_t{-3}},
             {"spacing_color", std::string("blue")}}
        );
    };
    const Image opaque = stitched(4, 3);
    ASSERT_EQ(opaque.shape(), (ImageShape{1, 5, 4, 4}));
    EXPECT_EQ(opaque.row(0)[2 * 4], 0.0F);
    EXPECT_EQ(opaque.row(0)[2 * 4 + 3], 1.0F);
    EXPECT_EQ(opaque.row(2)[2 * 4], 0.5F);
    EXPECT_EQ(stitched(3, 4).row(0)[2 * 4 + 3], 0.0F);
}

// Each picture of the batch has one value, 0 and 1 and 2 and … parts of 255.
TEST_F(ImageNodes, BatchesAreCroppedAndScaledPictureByPicture) {
    for (const std::size_t pictures : {1U, 2U, 5U}) {
        const Image batch = image({pictures, 4, 6, 3}, [](std::size_t i) {
            return static_cast<float>(i / (4 * 6 * 3)) / 255.0F;
        });
        const Inputs size{{"width", std::int64_t{2}}, {"height", std::int64_t{3}}};
        const std::vector<std::pair<NodeClass, Inputs>> classes = {
            {center_crop_images(), {size[0], size[1]}},
            {random_crop_images(), {size[0], size[1], {"seed", std::int64_t{-1}}}},
            {resize_images_by_shorter_edge(), {{"shorter_edge", std::int64_t{2}}}},
            {resize_images_by_longer_edge(), {{"longer_edge", std::int64_t{3}}}},
        };
        for (auto [node, inputs] : classes) {
            inputs.emplace_back("images", batch);
            const Image made = picture(node, inputs);
            ASSERT_EQ(made.shape().batch, pictures) << node.name;
            for (std::size_t i = 0; i < pictures; ++i) {
                EXPECT_EQ(made.picture(i)[0], static_cast<float>(i) / 255.0F) << node.name;
            }
        }
    }
}

TEST_F(ImageNodes, ListsOfBatchesAreTakenApart) {
    const Image grays =
        image({3, 8, 8, 3}, [](std::size_t i) { return i / (8 * 8 * 3) == 1 ? 1.0F : 0.0F; });
    const auto number = [](std::int64_t value) { return list({value}); };
    const Inputs cells{
        {"images", list({grays, plain({1, 4, 4, 4}, 1.0F)})},
        {"columns", number(2)},
        {"cell_width", number(8)},
        {"cell_height", number(8)},
        {"padding", number(1)}
    };
    const Image grid = picture(image_grid(), cells);
    ASSERT_EQ(grid.shape(), (ImageShape{1, 17, 17, 3}));
    EXPECT_EQ(grid.row(0)[0], 0.0F);
    EXPECT_EQ(grid.row(0)[9 * 3], 1.0F);
    EXPECT_EQ(grid.row(9)[0], 0.0F);
    EXPECT_EQ(grid.row(9)[9 * 3], 1.0F);

    const auto kept =
        run(image_deduplication(),
            {{"images", list({grays, grays})}, {"similarity_threshold", list({0.5})}});
    ASSERT_TRUE(kept);
    // All plain pictures have one fingerprint.
    EXPECT_EQ(std::get<std::shared_ptr<const List>>(kept->outputs[0])->items.size(), 1U);
}

TEST_F(ImageNodes, LinkedNumbersOfAGridMayBeAnything) {
    const auto made = [&](std::int64_t columns, std::int64_t width, std::int64_t padding) {
        return refusal(
            image_grid(),
            {{"images", list({plain({2, 4, 4, 3}, 0.5F)})},
             {"columns", list({columns})},
             {"cell_width", list({width})},
             {"cell_height", list({std::int64_t{4}})},
             {"padding", list({padding})}}
        );
    };
    EXPECT_EQ(made(2, 4, -9), "Width and height must be >= 0");
    EXPECT_EQ(made(2, 4, -3), "accepted");
    EXPECT_EQ(made(1, 4, -3), "accepted");
    EXPECT_EQ(made(0, 4, 0), "integer division or modulo by zero");
    EXPECT_EQ(made(-1, 4, 0), "Width and height must be >= 0");
    EXPECT_EQ(made(2, 0, 0), "height and width must be > 0");
    EXPECT_EQ(made(2, INT64_MIN, INT64_MIN), "Width and height must be >= 0");
}

TEST_F(ImageNodes, LanczosMakesBlackOfACutWithoutRows) {
    const auto scaled = [&](const char* method, std::int64_t width, std::int64_t height) {
        return Inputs{
            {"image", plain({2, 16, 16, 3}, 0.5F)},
            {"upscale_method", std::string(method)},
            {"width", width},
            {"height", height},
            {"crop", std::string("center")}
        };
    };
    // The middle of the picture that has the shape of the result: 16 / 19 rows, or columns.
    for (const auto& [width, height] : {std::pair<std::int64_t, std::int64_t>{57, 3}, {3, 57}}) {
        const Image black = picture(image_scale(), scaled("lanczos", width, height));
        EXPECT_EQ(black.shape().width, static_cast<std::size_t>(width));
        EXPECT_EQ(black.shape().height, static_cast<std::size_t>(height));
        for (std::size_t i = 0; i < black.shape().floats(); ++i) {
            ASSERT_EQ(black.data()[i], 0.0F);
        }
    }
    EXPECT_THAT(
        refusal(image_scale(), scaled("bilinear", 57, 3)),
        ::testing::HasSubstr("greater than 0, but got input (H: 0, W: 16)")
    );
}

TEST_F(ImageNodes, OnlyAreaScalesToNothing) {
    const auto made = [&](const char* method, std::int64_t height) {
        return refusal(
            resize_and_pad_image(),
            {{"image", plain({2, 4, 6, 3}, 0.5F)},
             {"target_width", std::int64_t{5}},
             {"target_height", height},
             {"padding_color", std::string("white")},
             {"interpolation", std::string(method)}}
        );
    };
    EXPECT_EQ(made("area", 0), "accepted");
    EXPECT_EQ(
        made("area", -1),
        "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
        "received {-1, -1}"
    );
    EXPECT_EQ(made("lanczos", 0), "height and width must be > 0");
    EXPECT_EQ(
        made("bilinear", 0),
        "Input and output sizes should be greater than 0, but got input (H: 4, W: 6) output (H: 0, "
        "W: 0)"
    );
}

TEST_F(ImageNodes, OnlyAFullBatchOfEqualSizesIsJoined) {
    const Image a = plain({1, 4, 6, 3}, 0.5F);
    const Image b = plain({1, 5, 6, 3}, 0.5F);
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
