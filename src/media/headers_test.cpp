#include "media/headers.hpp"

#include <gtest/gtest.h>

#include "media/metadata.hpp"
#include "media/test_support.hpp"

namespace comfyd::media {
namespace {

using test::gradient;

const test::Texts kWorkflow{{"prompt", R"({"1": {}})"}, {"workflow", R"({"nodes": []})"}};

Facts read(std::string_view file) {
    return read_headers(file, "", "");
}

TEST(Headers, SayWhatAPictureIs) {
    struct Case {
        std::string file;
        const char* format;
        bool has_alpha;
        bool has_workflow;
    };
    const Case cases[] = {
        {test::png(gradient(31, 17)), "png", false, false},
        {test::png(gradient(31, 17, true)), "png", true, false},
        {test::png(gradient(31, 17), kWorkflow), "png", false, true},
        {test::png(gradient(31, 17), {{"Software", "x"}}), "png", false, false},
        {test::jpeg(gradient(31, 17)), "jpeg", false, false},
        {test::webp(gradient(31, 17)), "webp", false, false},
        {test::webp(gradient(31, 17, true)), "webp", true, false},
        {test::webp(gradient(31, 17), kWorkflow), "webp", false, true},
        {test::gif(31, 17, 1), "gif", false, false},
    };
    for (const Case& one : cases) {
        const Facts facts = read(one.file);
        EXPECT_EQ(facts.kind, Kind::image) << one.format;
        EXPECT_EQ(facts.format, one.format);
        EXPECT_EQ(facts.width, 31U) << one.format;
        EXPECT_EQ(facts.height, 17U) << one.format;
        EXPECT_EQ(facts.frames, 1U) << one.format;
        EXPECT_EQ(facts.has_alpha, one.has_alpha) << one.format;
        EXPECT_EQ(facts.has_workflow.value_or(false), one.has_workflow) << one.format;
    }
}

TEST(Headers, CountTheFramesOfAnimations) {
    for (const auto& [file, frames, seconds] :
         {std::tuple(test::animated_webp(20, 10, 3), 3U, 0.7),
          std::tuple(test::animated_png(20, 10, 4), 4U, 0.8),
          std::tuple(test::gif(20, 10, 7), 7U, 0.7),
          std::tuple(test::gif(20, 10, 10'000), 10'000U, 1000.0)}) {
        const Facts facts = read(file);
        EXPECT_EQ(facts.kind, Kind::animated_image);
        EXPECT_EQ(facts.width, 20U);
        EXPECT_EQ(facts.frames, frames);
        EXPECT_NEAR(facts.duration_s.value_or(0), seconds, 1e-6);
        EXPECT_NEAR(facts.fps.value_or(0), frames / seconds, 1e-6);
    }
}

TEST(Headers, AGifThatAsksForNoTimeIsGivenSome) {
    std::string file = test::gif(20, 10, 4);
    for (std::size_t at = file.find("\x21\xF9"); at != std::string::npos;
         at = file.find("\x21\xF9", at + 1)) {
        file[at + 4] = 0;
    }
    EXPECT_NEAR(read(file).duration_s.value_or(0), 0.4, 1e-6);
}

TEST(Headers, ATiffSaysHowLargeItIs) {
    const std::string little(
        "II*\0\x08\0\0\0\x02\0\0\1\3\0\1\0\0\0\x2c\1\0\0\1\1\4\0\1\0\0\0\xc8\0\0\0", 34
    );
    const Facts facts = read(little);
    EXPECT_EQ(facts.format, "tiff");
    EXPECT_EQ(facts.width, 300U);
    EXPECT_EQ(facts.height, 200U);
    for (std::size_t size = 4; size < little.size(); ++size) {
        EXPECT_EQ(read(little.substr(0, size)).format, "tiff");
    }
}

TEST(Headers, KnowOtherKindsByTheirBytesOrTheirName) {
    EXPECT_EQ(read(test::video({})).kind, Kind::video);
    EXPECT_EQ(read(test::video({})).format, "mp4");
    EXPECT_EQ(read(test::wav(8000, 0.1)).kind, Kind::audio);
    EXPECT_EQ(read("glTF\2").kind, Kind::model_3d);
    EXPECT_EQ(read_headers("v 1 0 0", "a.OBJ", "text/plain").kind, Kind::model_3d);
    EXPECT_EQ(read_headers("hello", "a.txt", "text/plain").kind, Kind::text);
    EXPECT_EQ(read_headers("{}", "a.json", "application/json").kind, Kind::text);
    EXPECT_EQ(read_headers("\1\2\3", "a.latent", "application/octet-stream").kind, Kind::other);
    EXPECT_EQ(read("").kind, Kind::other);
}

TEST(Headers, ComeBackFromJson) {
    Facts facts = read(test::animated_webp(20, 10, 3));
    facts.blurhash = "abc";
    EXPECT_EQ(Facts::from_json(facts.to_json()).to_json(), facts.to_json());
    EXPECT_EQ(
        Facts::from_json({{"kind", 7}, {"width", "x"}, {"fps", -1}}).to_json(),
        json::object({{"kind", "other"}})
    );
}

// Whatever a file says, reading it ends, and stays within it.
TEST(Headers, OfDamagedFilesEnd) {
    const std::string files[] = {
        test::png(gradient(40, 30, true), kWorkflow),
        test::jpeg(gradient(40, 30)),
        test::webp(gradient(40, 30), kWorkflow),
        test::animated_webp(16, 16, 4),
        test::gif(4, 4, 20),
        test::video({}),
    };
    for (const std::string& file : files) {
        for (std::size_t part = 0; part <= 16; ++part) {
            read(std::string_view(file).substr(0, file.size() * part / 16));
        }
        for (std::size_t at = 0; at < std::min<std::size_t>(file.size(), 300); ++at) {
            for (const char value : {'\0', '\xff', '\x7f'}) {
                std::string damaged = file;
                damaged[at] = value;
                read(damaged);
                strip_metadata(damaged);
                webp_exif(damaged);
            }
        }
    }
}

TEST(Metadata, IsTakenOutAndThePictureStays) {
    for (const std::string& file :
         {test::png(gradient(33, 21, true), kWorkflow), test::webp(gradient(33, 21), kWorkflow)}) {
        const auto stripped = strip_metadata(file);
        ASSERT_TRUE(stripped);
        EXPECT_LT(stripped->size(), file.size());
        EXPECT_TRUE(read(file).has_workflow.value_or(false));
        EXPECT_FALSE(read(*stripped).has_workflow.value_or(true));
        EXPECT_EQ(stripped->find("nodes"), std::string::npos);
        EXPECT_EQ(test::decoded(*stripped).rgba, test::decoded(file).rgba);
    }
    std::string jpeg = test::jpeg(gradient(33, 21));
    const std::string pixels = jpeg;
    jpeg.insert(2, std::string("\xff\xe1\0\x15workflow:{secret}\0\0", 23));
    EXPECT_TRUE(read(jpeg).has_workflow.value_or(false));
    EXPECT_EQ(strip_metadata(jpeg), strip_metadata(pixels));
    EXPECT_FALSE(strip_metadata(test::gif(4, 4, 1)));
    EXPECT_FALSE(strip_metadata("anything"));
}

}  // namespace
}  // namespace comfyd::media
