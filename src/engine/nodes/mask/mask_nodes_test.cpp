#include <gtest/gtest.h>

#include "engine/nodes/text/shown_test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

json::object solid(double value, int width, int height) {
    return node_of("SolidMask", {{"value", value}, {"width", width}, {"height", height}});
}

// A 3x3 mask that is 1 in one corner.
json::object with_corner(json::object more) {
    json::object prompt{
        {"z", solid(0.0, 3, 3)},
        {"o", solid(1.0, 1, 1)},
        {"c",
         node_of(
             "MaskComposite",
             {{"destination", link_to("z")},
              {"source", link_to("o")},
              {"x", 2},
              {"y", 0},
              {"operation", "add"}}
         )},
    };
    for (auto& [key, value] : more) {
        prompt[key] = value;
    }
    return prompt;
}

json::object grow(int by, bool tapered) {
    return node_of(
        "GrowMask", {{"mask", link_to("c")}, {"expand", by}, {"tapered_corners", tapered}}
    );
}

TEST(GrowMask, GrowsFromTheCornerAndStopsWhenFull) {
    EXPECT_EQ(
        shown(with_corner({{"1", grow(1, true)}}), "1"),
        "tensor([[[0., 1., 1.],\n         [0., 0., 1.],\n         [0., 0., 0.]]])"
    );
    EXPECT_EQ(
        shown(with_corner({{"1", grow(1, false)}}), "1"),
        "tensor([[[0., 1., 1.],\n         [0., 1., 1.],\n         [0., 0., 0.]]])"
    );
    EXPECT_EQ(
        shown(with_corner({{"1", grow(16384, true)}}), "1"),
        "tensor([[[1., 1., 1.],\n         [1., 1., 1.],\n         [1., 1., 1.]]])"
    );
    EXPECT_EQ(
        shown(with_corner({{"1", grow(-1, true)}}), "1"),
        "tensor([[[0., 0., 0.],\n         [0., 0., 0.],\n         [0., 0., 0.]]])"
    );
}

TEST(CropMask, MayLeaveNothing) {
    EXPECT_EQ(
        shown(
            with_corner(
                {{"1",
                  node_of(
                      "CropMask",
                      {{"mask", link_to("c")}, {"x", 5}, {"y", 1}, {"width", 2}, {"height", 9}}
                  )}}
            ),
            "1"
        ),
        "tensor([], size=(1, 2, 0))"
    );
}

TEST(MaskComposite, RefusesWhatDoesNotFitAsPyTorchDoes) {
    EXPECT_EQ(
        shown(
            with_corner(
                {{"s", solid(1.0, 9, 9)},
                 {"1",
                  node_of(
                      "MaskComposite",
                      {{"destination", link_to("c")},
                       {"source", link_to("s")},
                       {"x", 5},
                       {"y", 0},
                       {"operation", "add"}}
                  )}}
            ),
            "1"
        ),
        "RuntimeError: The size of tensor a (0) must match the size of tensor b (7) at "
        "non-singleton "
        "dimension 2"
    );
}

TEST(ImageToMask, RefusesChannelsThatAreNotThere) {
    EXPECT_EQ(
        shown(
            {{"1", empty_image(2)},
             {"2", node_of("ImageToMask", {{"image", link_to("1")}, {"channel", "alpha"}})}},
            "2"
        ),
        "IndexError: index 3 is out of bounds for dimension 3 with size 3"
    );
}

// The shorter of the two starts again at its end.
TEST(JoinImageWithAlpha, TakesBatchesOfAnyTwoLengths) {
    const auto joined = [](int pictures, int masks) {
        return shown(
            {{"1", empty_image(1, 0xFFFFFF, pictures)},
             {"m", empty_image(1, 0, masks)},
             {"a", node_of("ImageToMask", {{"image", link_to("m")}, {"channel", "red"}})},
             {"2", node_of("JoinImageWithAlpha", {{"image", link_to("1")}, {"alpha", link_to("a")}})
             },
             {"3", node_of("GetImageSize", {{"image", link_to("2")}})}},
            "3",
            2
        );
    };
    EXPECT_EQ(joined(1, 1), "1");
    EXPECT_EQ(joined(1, 3), "3");
    EXPECT_EQ(joined(3, 2), "3");
    EXPECT_EQ(joined(2, 5), "5");
}

TEST(PorterDuff, RefusesDifferentChannels) {
    EXPECT_EQ(
        shown(
            {{"1", empty_image(2)},
             {"m", solid(0.0, 2, 2)},
             {"2", node_of("JoinImageWithAlpha", {{"image", link_to("1")}, {"alpha", link_to("m")}})
             },
             {"3",
              node_of(
                  "PorterDuffImageComposite",
                  {{"source", link_to("1")},
                   {"source_alpha", link_to("m")},
                   {"destination", link_to("2")},
                   {"destination_alpha", link_to("m")},
                   {"mode", "SRC"}}
              )}},
            "3"
        ),
        "AssertionError: "
    );
}

}  // namespace
}  // namespace comfyd::engine
