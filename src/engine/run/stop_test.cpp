// A run that was cancelled does not wait for what its nodes are in the middle of: they look at it
// while they compute.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/nodes/layers/font.hpp"
#include "engine/nodes/node_test_support.hpp"
#include "engine/pictures/png.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

// The run is cancelled when it has been looked at so often: counted, so that no clock matters.
constexpr int kLooks = 20;

class Stopping : public NodeTest {
protected:
    Stopping() : NodeTest(std::uint64_t{1} << 30) {
        surroundings_.stopped = [this] { return looks_.fetch_add(1) >= kLooks; };
    }

    void expect_cancelled(const std::string& class_type, NamedValues inputs) {
        SCOPED_TRACE(class_type);
        looks_ = 0;
        Call call(surroundings_, node_id_, std::move(inputs));
        const auto result = registry_.find(class_type)->node.execute(call);
        ASSERT_FALSE(result) << "it ended before it was looked at " << kLooks << " times";
        EXPECT_EQ(result.error().code, Code::cancelled) << result.error().message;
    }
    Image picture(std::size_t width, std::size_t height) {
        const Call call(surroundings_, node_id_, {});
        NewImage image = call.new_image({1, height, width, 3}).value();
        for (std::size_t i = 0; i < image.shape().floats(); ++i) {
            image.data()[i] = static_cast<float>(i * 7919 % 256) / 255.0F;
        }
        return std::move(image).finish();
    }

    Registry registry_ = make_registry();
    std::atomic<int> looks_ = 0;
};

// Each of them would go on for hours.
TEST_F(Stopping, RegularExpressions) {
    const std::string many(1'000'000, 'a');
    for (const char* pattern :
         {"(?:a(?=a*+$))*[bc]",  // one start, and a walk to the end at each step
          "a++[bc]",             // each start walks to the end
          "(?:a|aa)+[bc]"}) {
        SCOPED_TRACE(pattern);
        expect_cancelled(
            "RegexMatch",
            {{"string", many},
             {"regex_pattern", std::string(pattern)},
             {"case_insensitive", false},
             {"multiline", false},
             {"dotall", false}}
        );
    }
    expect_cancelled(
        "RegexReplace",
        {{"string", many}, {"regex_pattern", std::string("a")}, {"replace", std::string("b")}}
    );
}

TEST_F(Stopping, TextsAndNumbers) {
    std::string fields;
    std::string sum = "1";
    std::string list = "{\"a\": [1";
    for (int i = 0; i < 1000; ++i) {
        fields += "{a}";
        sum += "+1";
        list += ",1";
    }
    expect_cancelled("StringFormat", {{"f_string", fields}, {"values.a", std::string(1000, 'x')}});
    expect_cancelled("ComfyMathExpression", {{"expression", sum}});
    expect_cancelled(
        "JsonExtractString", {{"json_string", list + "]}"}, {"key", std::string("a")}}
    );
}

TEST_F(Stopping, Pictures) {
    const Image large = picture(2000, 1500);
    expect_cancelled(
        "ImageBlur", {{"image", large}, {"blur_radius", std::int64_t{500}}, {"sigma", 1.0}}
    );
    // Stopped with most of a row left.
    expect_cancelled(
        "ImageBlur",
        {{"image", picture(100'000, 8)}, {"blur_radius", std::int64_t{2}}, {"sigma", 1.0}}
    );
    expect_cancelled(
        "ImageScale",
        {{"image", large},
         {"upscale_method", std::string("lanczos")},
         {"width", std::int64_t{3000}},
         {"height", std::int64_t{2500}},
         {"crop", std::string("disabled")}}
    );
    expect_cancelled("Canny", {{"image", large}, {"low_threshold", 0.1}, {"high_threshold", 0.4}});
    expect_cancelled(
        "ImageAddNoise",
        {{"image", picture(4000, 3000)}, {"seed", std::int64_t{1}}, {"strength", 0.5}}
    );
    if (!nodes::Font::open(10)) {
        return;  // this system has no font to write with
    }
    expect_cancelled(
        "TextOverlay",
        {{"images", picture(20, 400)},
         {"text", std::string(90'000, 'w')},
         {"font_size", 2.0},
         {"color", std::string("#ffffff")},
         {"position", std::string("top")},
         {"align", std::string("left")},
         {"outline", false}}
    );
}

TEST_F(Stopping, DecodersAndEncoders) {
    const Image large = picture(600, 2000);
    std::string file;
    const FileSink sink = [&file](const void* data, std::size_t size) {
        file.append(static_cast<const char*>(data), size);
        return true;
    };
    for (const int bit_depth : {8, 16}) {
        SCOPED_TRACE(bit_depth);
        file.clear();
        ASSERT_TRUE(encode_png({large.data(), 600, 2000, 3, bit_depth}, 1, {}, sink, [] {
            return false;
        }));
        files_.add_input("large.png", file);
        expect_cancelled("LoadImage", {{"image", std::string("large.png")}});
    }
    expect_cancelled("SaveImage", {{"images", large}, {"filename_prefix", std::string("large")}});
}

}  // namespace
}  // namespace comfyd::engine
