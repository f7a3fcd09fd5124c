// Views show what a copy would hold, nodes that read them compute the same from both, and they keep
// no more memory than they are worth.
#include "engine/values/view.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "engine/nodes/image/clip.hpp"
#include "engine/nodes/node_test_support.hpp"
#include "engine/run/invoke.hpp"

namespace comfyd::engine {
namespace {

constexpr std::uint64_t kMemory = 64ULL << 20;

class Views : public testing::NodeTest {
protected:
    Views() : NodeTest(kMemory) {}

    using ValueAt = std::function<
        float(std::size_t picture, std::size_t y, std::size_t x, std::size_t channel)>;

    Image image(ImageShape shape, const ValueAt& value) {
        auto pixels = FloatBuffer::try_make(memory_, shape.floats());
        float* into = pixels->data();
        for (std::size_t picture = 0; picture < shape.batch; ++picture) {
            for (std::size_t y = 0; y < shape.height; ++y) {
                for (std::size_t x = 0; x < shape.width; ++x) {
                    for (std::size_t c = 0; c < shape.channels; ++c) {
                        *into++ = value(picture, y, x, c);
                    }
                }
            }
        }
        return {shape, std::move(pixels)};
    }
    Image numbered(ImageShape shape) {
        return image(shape, [](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
            return static_cast<float>(n * 1000 + y * 100 + x * 10 + c);
        });
    }
    // Values between 0 and 1 without order.
    Image noise(ImageShape shape, std::size_t seed = 0) {
        return image(shape, [=](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
            return static_cast<float>((n * 31 + y * 17 + x * 7 + c * 3 + seed) % 23) / 22.0F;
        });
    }

    Call call() const { return {surroundings_, node_id_, {}}; }
    static std::vector<float> floats(const View& view) {
        std::vector<float> all(view.shape().floats());
        for (std::size_t row = 0; row < view.shape().rows(); ++row) {
            view.copy_row(row, all.data() + row * view.shape().row_floats());
        }
        return all;
    }
    void expect_shows(const View& view, ImageShape shape, const ValueAt& value) {
        ASSERT_EQ(view.shape(), shape);
        const Image expected = image(shape, value);
        EXPECT_EQ(floats(view), floats(expected));
        const auto whole = call().whole(ImageView(view));
        ASSERT_TRUE(whole);
        EXPECT_EQ(floats(*whole), floats(expected));
        std::vector<float> scratch;
        for (std::size_t row = 0; row < shape.rows(); ++row) {
            const float* const at = view.row(row, scratch);
            EXPECT_TRUE(std::equal(at, at + shape.row_floats(), expected.row(row)));
        }
    }

    // The same pixels, each time arranged in another way.
    std::vector<View> arrangements(const Image& of) {
        const ImageShape shape = of.shape();
        const auto value = [&](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
            return of.row(n * shape.height + y)[x * shape.channels + c];
        };
        const Image turned =
            image(shape, [&](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
                return value(n, shape.height - 1 - y, shape.width - 1 - x, c);
            });
        const Image wider = image(
            {shape.batch + 1, shape.height + 3, shape.width + 2, shape.channels + 1},
            [&](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
                const bool inside = n >= 1 && y >= 2 && y < shape.height + 2 && x >= 1 &&
                                    x <= shape.width && c < shape.channels;
                return inside ? value(n - 1, y - 2, x - 1, c) : -1.0F;
            }
        );
        std::vector<View> singles;
        for (std::size_t n = 0; n < shape.batch; ++n) {
            singles.push_back(View(turned).mirrored(true, true).pictures(n, 1));
        }
        return {
            of,
            View(turned).mirrored(true, true),
            View(wider)
                .pictures(1, shape.batch)
                .cut({1, 2, shape.width, shape.height})
                .channels(shape.channels),
            View::joined(singles)
        };
    }

    struct Given {
        const char* name;
        Value value;
    };
    Result<NodeOutputs> invoke_class(const char* class_type, const std::vector<Given>& inputs) {
        std::deque<workflow::InputDefinition> definitions;
        std::vector<BoundInput> bound;
        for (const Given& given : inputs) {
            definitions.emplace_back().name = given.name;
            bound.push_back({&definitions.back(), {given.value}});
        }
        PlannedNode node;
        node.id = node_id_;
        node.type = registry_.find(class_type);
        return invoke(node, bound, surroundings_).map([](Outcome&& outcome) {
            return std::move(outcome.outputs);
        });
    }
    std::vector<std::vector<float>> pixels_of(const NodeOutputs& outputs) {
        std::vector<std::vector<float>> all;
        for (const auto& slot : outputs.slots) {
            for (const Value& value : slot) {
                if (const nodes::Clip* clip = nodes::as_clip(value)) {
                    all.push_back(floats(clip->frames));
                } else if (matches(value, "IMAGE")) {
                    all.push_back(floats(to_image_view(value)));
                } else if (matches(value, "MASK")) {
                    all.push_back(floats(to_mask_view(value)));
                }
            }
        }
        return all;
    }

    Registry registry_ = make_registry();
};

TEST_F(Views, ShowPartsInAnyArrangement) {
    const Image given = numbered({3, 4, 5, 4});
    const auto at = [](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
        return static_cast<float>(n * 1000 + y * 100 + x * 10 + c);
    };
    const View view(given);
    expect_shows(view, {3, 4, 5, 4}, at);
    expect_shows(view.channel(2), {3, 4, 5, 1}, [&](auto n, auto y, auto x, auto) {
        return at(n, y, x, 2);
    });
    expect_shows(view.channels(3), {3, 4, 5, 3}, at);
    expect_shows(view.cut({1, 2, 3, 2}), {3, 2, 3, 4}, [&](auto n, auto y, auto x, auto c) {
        return at(n, y + 2, x + 1, c);
    });
    expect_shows(view.pictures(1, 2), {2, 4, 5, 4}, [&](auto n, auto y, auto x, auto c) {
        return at(n + 1, y, x, c);
    });
    expect_shows(view.mirrored(true, false), {3, 4, 5, 4}, [&](auto n, auto y, auto x, auto c) {
        return at(n, 3 - y, x, c);
    });
    expect_shows(view.mirrored(false, true), {3, 4, 5, 4}, [&](auto n, auto y, auto x, auto c) {
        return at(n, y, 4 - x, c);
    });
    expect_shows(view.channel(1).repeated(3), {3, 4, 5, 3}, [&](auto n, auto y, auto x, auto) {
        return at(n, y, x, 1);
    });
}

TEST_F(Views, InvertAsOftenAsTheyAreToldTo) {
    Image given = numbered({2, 3, 4, 3});
    const auto at = [](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
        return 1.0F - static_cast<float>(n * 1000 + y * 100 + x * 10 + c);
    };
    const View inverted = View(given).inverted();
    EXPECT_FALSE(inverted.whole());
    expect_shows(inverted, {2, 3, 4, 3}, at);
    expect_shows(
        inverted.mirrored(true, false).channel(2),
        {2, 3, 4, 1},
        [&](auto n, auto y, auto x, auto) { return at(n, 2 - y, x, 2); }
    );
    expect_shows(inverted.inverted(), {2, 3, 4, 3}, [&](auto n, auto y, auto x, auto c) {
        return 1.0F - at(n, y, x, c);
    });
}

TEST_F(Views, JoinAndTakeApartBatches) {
    const Image given = numbered({3, 2, 3, 3});
    const std::vector<View> parts = {given, View(given).mirrored(true, true), given};
    const View joined = View::joined(parts);
    const auto at = [](std::size_t n, std::size_t y, std::size_t x, std::size_t c) {
        const bool turned = n / 3 == 1;
        return static_cast<float>(
            n % 3 * 1000 + (turned ? 1 - y : y) * 100 + (turned ? 2 - x : x) * 10 + c
        );
    };
    expect_shows(joined, {9, 2, 3, 3}, at);
    expect_shows(joined.pictures(2, 5), {5, 2, 3, 3}, [&](auto n, auto y, auto x, auto c) {
        return at(n + 2, y, x, c);
    });
    EXPECT_EQ(joined.pictures(3, 3).pieces(), 1U);
    EXPECT_EQ(joined.kept_bytes(), given.buffer()->bytes());
}

TEST_F(Views, AreWholeWhereNothingLiesBetween) {
    const Image given = numbered({3, 4, 5, 3});
    const View view(given);
    ASSERT_TRUE(view.pictures(1, 2).whole());
    EXPECT_EQ(view.pictures(1, 2).whole()->data(), given.picture(1));
    ASSERT_TRUE(view.pictures(2, 1).cut({0, 1, 5, 2}).whole());
    EXPECT_FALSE(view.cut({0, 1, 5, 2}).whole());
    EXPECT_FALSE(view.channel(0).whole());
    ASSERT_TRUE(view.mirrored(true, true).mirrored(true, true).whole());
}

TEST_F(Views, AreCopiedOnceForAllReaders) {
    const ImageView view(View(numbered({1, 4, 5, 3})).mirrored(true, false));
    const ImageView same = view;
    const auto first = call().whole(view);
    const auto second = call().whole(same);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->data(), second->data());
}

TEST_F(Views, MayBeEmpty) {
    const View view(numbered({1, 4, 5, 1}));
    const View nothing = view.cut({5, 4, 0, 0});
    EXPECT_TRUE(floats(nothing).empty());
    EXPECT_TRUE(call().whole(MaskView(nothing)));
    EXPECT_TRUE(call().whole(MaskView(view.pictures(0, 0))));
}

TEST_F(Views, NodesComputeTheSameFromThem) {
    const Image first = noise({2, 9, 8, 3});
    const Image second = noise({2, 9, 8, 3}, 5);
    const Image mask = noise({2, 9, 8, 1}, 9);
    const auto number = [](int value) { return Value(std::int64_t{value}); };
    const auto text = [](const char* value) { return Value(std::string(value)); };
    using Inputs = std::vector<Given>;
    const auto cases = [&](const View& a, const View& b, const View& m) {
        const ImageView image(a);
        const ImageView other(b);
        const MaskView cover(m);
        return std::vector<std::pair<const char*, Inputs>>{
            {"ImageInvert", {{"image", image}}},
            {"ImageFlip", {{"image", image}, {"flip_method", text("x-axis: vertically")}}},
            {"ImageRotate", {{"image", image}, {"rotation", text("90 degrees")}}},
            {"ImageRotate", {{"image", image}, {"rotation", text("180 degrees")}}},
            {"ImageBatch", {{"image1", image}, {"image2", other}}},
            {"RepeatImageBatch", {{"image", image}, {"amount", number(3)}}},
            {"ImageFromBatch", {{"image", image}, {"batch_index", number(1)}, {"length", number(1)}}
            },
            {"ImageCrop",
             {{"image", image},
              {"width", number(4)},
              {"height", number(5)},
              {"x", number(1)},
              {"y", number(2)}}},
            {"SeedVR2Preprocess", {{"resized_images", image}}},
            {"ImageToMask", {{"image", image}, {"channel", text("green")}}},
            {"SplitImageWithAlpha", {{"image", image}}},
            {"JoinImageWithAlpha", {{"image", image}, {"alpha", cover}}},
            {"ImageCompositeMasked",
             {{"destination", image},
              {"source", other},
              {"x", number(2)},
              {"y", number(1)},
              {"resize_source", false},
              {"mask", cover}}},
            {"MaskToImage", {{"mask", cover}}},
            {"InvertMask", {{"mask", cover}}},
            {"ThresholdMask", {{"mask", cover}, {"value", 0.5}}},
            {"CropMask",
             {{"mask", cover},
              {"x", number(1)},
              {"y", number(1)},
              {"width", number(4)},
              {"height", number(4)}}},
            {"FeatherMask",
             {{"mask", cover},
              {"left", number(2)},
              {"top", number(2)},
              {"right", number(3)},
              {"bottom", number(1)}}},
            {"MaskComposite",
             {{"destination", cover},
              {"source", cover},
              {"x", number(1)},
              {"y", number(2)},
              {"operation", text("multiply")}}},
            {"BatchMasksNode", {{"masks.mask0", cover}, {"masks.mask1", cover}}},
            // One that reads no views.
            {"GrowMask", {{"mask", cover}, {"expand", number(1)}, {"tapered_corners", true}}},
        };
    };
    const auto expected = cases(first, second, mask);
    const auto firsts = arrangements(first);
    const auto seconds = arrangements(second);
    const auto masks = arrangements(mask);
    for (std::size_t i = 0; i < firsts.size(); ++i) {
        const auto given = cases(firsts[i], seconds[i], masks[i]);
        for (std::size_t k = 0; k < given.size(); ++k) {
            const auto whole = invoke_class(expected[k].first, expected[k].second);
            const auto seen = invoke_class(given[k].first, given[k].second);
            ASSERT_TRUE(whole && seen)
                << given[k].first << ": " << (whole ? seen : whole).error().message;
            EXPECT_EQ(pixels_of(*whole), pixels_of(*seen)) << given[k].first << i;
        }
    }
}

TEST_F(Views, KeepOnlyWhatTheyAreWorth) {
    const Image large = numbered({1, 64, 64, 3});
    const auto crop = [&](int side) {
        return invoke_class(
            "ImageCrop",
            {{"image", large},
             {"width", std::int64_t{side}},
             {"height", std::int64_t{side}},
             {"x", std::int64_t{3}},
             {"y", std::int64_t{5}}}
        );
    };
    const auto half = crop(32);
    const auto little = crop(8);
    ASSERT_TRUE(half && little);
    EXPECT_TRUE(std::holds_alternative<ImageView>(half->slots[0][0]));
    ASSERT_TRUE(std::holds_alternative<Image>(little->slots[0][0]));
    EXPECT_FALSE(std::get<Image>(little->slots[0][0]).is_part());

    // More than half of the memory is in use: no part keeps a whole any more.
    const auto ballast = FloatBuffer::try_make(memory_, kMemory / 2 / sizeof(float));
    const auto short_of_memory = crop(32);
    ASSERT_TRUE(short_of_memory);
    EXPECT_TRUE(std::holds_alternative<Image>(short_of_memory->slots[0][0]));
}

TEST_F(Views, TakeNoMemoryButForTheirPlaces) {
    const Image given = numbered({1, 64, 64, 3});
    const std::uint64_t before = memory_->used();
    const auto batch =
        invoke_class("RepeatImageBatch", {{"image", given}, {"amount", std::int64_t{100}}});
    ASSERT_TRUE(batch);
    EXPECT_LT(memory_->used(), before + 100 * 128);
    EXPECT_EQ(to_image_view(batch->slots[0][0]).shape().batch, 100U);
}

TEST_F(Views, OfMoreThanTheMemoryAreRefused) {
    const auto batch = invoke_class(
        "RepeatImageBatch", {{"image", numbered({1, 64, 64, 3})}, {"amount", std::int64_t{4096}}}
    );
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace comfyd::engine
