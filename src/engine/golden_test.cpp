// What ComfyUI itself made of hundreds of prompts, compared pixel by pixel and text by text. Only
// prompts whose every class the engine has are listed.
#include <gtest/gtest.h>
#include <webp/demux.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/crypto.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

// Cases, or classes with all of theirs, in which single bytes may be one off, and why.
const std::map<std::string, std::string_view>& one_off() {
    static const std::map<std::string, std::string_view> cases = {
        {"LoadImage/odd420_jpg", "FFmpeg before 8 has no exact way for 4:2:0 with odd sides"},
        {"SeedVR2PostProcessing/lab", "last bits of pow() in 32-bit floats, cut off to bytes"},
        {"AddLayer", "last bits of pow() in 32-bit floats, cut off to bytes"},
        {"ImageCompositor", "last bits of pow() in 32-bit floats, cut off to bytes"},
        {"LayersFromBoundingBoxes", "last bits of pow() in 32-bit floats, cut off to bytes"},
    };
    return cases;
}

// Cases whose pictures cannot be the same, and why; that there are some is still checked.
const std::map<std::string, std::string_view>& other_pictures() {
    static const std::map<std::string, std::string_view> cases = {
        {"SaveImageAdvanced/exr_srgb", "last bits of pow() in 32-bit floats"},
        {"TextOverlay/c0", "letters come from the system's font"},
        {"TextOverlay/c1", "letters come from the system's font"},
    };
    return cases;
}

// Cases in which some pixels lie on a threshold: how many may fall to the other side.
//   Canny/circle: equal slopes side by side, which the rounding of PyTorch's sums decides. No one
//   order of the five products of the bell and the six of the slopes, fused or not, gives all of
//   them (forwards, backwards, by pairs, by two or four sums): its matrix product takes another
//   order in some places than in others.
//   ImageCompositor/mode_hard-mix: the bits of pow().
const std::map<std::string, std::size_t>& pixels_on_a_threshold() {
    static const std::map<std::string, std::size_t> cases = {
        {"Canny/circle", 17}, {"ImageCompositor/mode_hard-mix", 1}
    };
    return cases;
}

// Cases in which ComfyUI takes files in the order in which the file system happens to list them.
const std::set<std::string>& any_order() {
    static const std::set<std::string> cases = {
        "LoadImageDataSetFromFolder/set", "LoadImageTextDataSetFromFolder/set"
    };
    return cases;
}

// More than one step of 255 apart.
std::size_t different_pixels(const fs::path& expected_path, const fs::path& actual_path) {
    const Rgba expected = read_rgba(expected_path);
    const Rgba actual = read_rgba(actual_path);
    if (expected.bytes.size() != actual.bytes.size()) {
        return expected.bytes.size();
    }
    std::size_t different = 0;
    for (std::size_t at = 0; at < expected.bytes.size(); at += 4) {
        int largest = 0;
        for (std::size_t i = at; i < at + 4; ++i) {
            largest = std::max(largest, std::abs(int{expected.bytes[i]} - int{actual.bytes[i]}));
        }
        different += largest > 1 ? 1 : 0;
    }
    return different;
}

std::vector<std::string> golden_cases() {
    const Registry registry = make_registry();
    const json::value index = json::parse(slurp(kGolden / "index.json")).value();
    std::vector<std::string> cases;
    for (const json::value& entry : index.as_array()) {
        const json::array& classes = entry.at("classes").as_array();
        const bool known = std::ranges::all_of(classes, [&](const json::value& name) {
            return registry.find(std::string(name.as_string())) != nullptr;
        });
        if (known) {
            const auto& file = entry.at("file").as_string();
            cases.emplace_back(file.subview(0, file.size() - std::strlen(".json")));
        }
    }
    std::ranges::sort(cases);
    return cases;
}

// Names of files count on from what is there, and those of previews are random.
std::string comparable_name(const json::object& file) {
    const std::string name(file.at("filename").as_string());
    if (file.at("type") == "temp") {
        return fs::path(name).extension().string();
    }
    std::string plain;
    for (const char c : name) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!digit || !plain.ends_with('#')) {
            plain += digit ? '#' : c;
        }
    }
    return plain;
}

json::value comparable_ui(json::value ui, bool sorted = false) {
    if (json::array* items = ui.if_array()) {
        for (json::value& item : *items) {
            item = comparable_ui(item, sorted);
        }
        if (sorted) {
            std::ranges::sort(*items, {}, json::serialize_canonical);
        }
    } else if (json::object* object = ui.if_object()) {
        if (object->contains("filename")) {
            (*object)["filename"] = comparable_name(*object);
        }
        for (auto& [key, value] : *object) {
            value = comparable_ui(value, sorted);
        }
    }
    return ui;
}

// The files that a node's ui names, key after key.
std::vector<json::object> files_of(const json::object& ui) {
    std::vector<json::object> files;
    for (const auto& [key, value] : ui) {
        if (const json::array* items = value.if_array()) {
            for (const json::value& item : *items) {
                if (item.is_object() && item.get_object().contains("filename")) {
                    files.push_back(item.get_object());
                }
            }
        }
    }
    return files;
}

void expect_same_bytes(
    const std::vector<std::uint8_t>& expected,
    const std::vector<std::uint8_t>& actual,
    int tolerance
) {
    ASSERT_EQ(actual.size(), expected.size());
    std::size_t different = 0;
    int largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const int difference = std::abs(int{expected[i]} - int{actual[i]});
        different += difference != 0 ? 1 : 0;
        largest = std::max(largest, difference);
    }
    EXPECT_LE(largest, tolerance) << different << " of " << expected.size() << " bytes differ";
}

void expect_same_png(const fs::path& expected_path, const fs::path& actual_path, int tolerance) {
    const Rgba expected = read_rgba(expected_path);
    const Rgba actual = read_rgba(actual_path);
    ASSERT_GT(expected.width, 0U);
    ASSERT_EQ(actual.width, expected.width);
    ASSERT_EQ(actual.height, expected.height);
    EXPECT_EQ(actual.bit_depth, expected.bit_depth);
    expect_same_bytes(expected.bytes, actual.bytes, tolerance);
    if (expected.bit_depth == 16 && tolerance == 0) {
        expect_same_bytes(
            read_rgba(expected_path, SPNG_FMT_RGBA16).bytes,
            read_rgba(actual_path, SPNG_FMT_RGBA16).bytes,
            0
        );
    }
}

// SHA-256 over width, height and the first frame's RGBA.
std::string webp_digest(const std::string& file) {
    const WebPData data{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
    const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)> decoder(
        WebPAnimDecoderNew(&data, nullptr), &WebPAnimDecoderDelete
    );
    WebPAnimInfo info{};
    std::uint8_t* frame = nullptr;
    int timestamp = 0;
    if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
        WebPAnimDecoderGetNext(decoder.get(), &frame, &timestamp) == 0) {
        return "not a WebP file";
    }
    std::string text;
    for (const std::uint32_t side : {info.canvas_width, info.canvas_height}) {
        for (int shift = 0; shift < 32; shift += 8) {
            text += static_cast<char>(side >> shift & 0xFF);
        }
    }
    text.append(
        reinterpret_cast<const char*>(frame),
        std::size_t{4} * info.canvas_width * info.canvas_height
    );
    return to_hex(sha256(text));
}

class Golden : public ::testing::TestWithParam<std::string> {
protected:
    Golden() { folders.use_inputs(kGolden / "inputs"); }

    fs::path path_of(const json::object& file) const {
        const fs::path root =
            file.at("type") == "temp" ? folders.folders().temp : folders.folders().output;
        return root / std::string(file.at("subfolder").as_string()) /
               std::string(file.at("filename").as_string());
    }
    void expect_file(
        const json::object& recorded, const std::string& name, const fs::path& actual
    ) {
        SCOPED_TRACE(name);
        if (other_pictures().contains(GetParam())) {
            EXPECT_TRUE(fs::exists(actual));
            return;
        }
        const fs::path beside = kGolden / fs::path(GetParam()).parent_path() / name;
        if (const json::value* digest = recorded.at("sha256_file").as_object().if_contains(name)) {
            EXPECT_EQ(to_hex(sha256(slurp(actual))), std::string(digest->as_string()));
        } else if (const auto few = pixels_on_a_threshold().find(GetParam());
                   few != pixels_on_a_threshold().end()) {
            EXPECT_LE(different_pixels(beside, actual), few->second);
        } else if (beside.extension() == ".png") {
            const std::string group = fs::path(GetParam()).parent_path().string();
            const bool loose = one_off().contains(GetParam()) || one_off().contains(group);
            expect_same_png(beside, actual, loose ? 1 : 0);
        } else {
            ASSERT_EQ(beside.extension(), ".webp");
            const json::value& hashed = recorded.at("sha256_rgba").at(name);
            EXPECT_EQ(webp_digest(slurp(actual)), std::string(hashed.as_string()));
        }
    }
    void expect_outputs(const json::object& recorded, const json::object& outputs);
    void expect_pictures_in_any_order(
        const json::array& names, const std::vector<json::object>& files
    ) const {
        std::multiset<std::vector<std::uint8_t>> expected;
        std::multiset<std::vector<std::uint8_t>> actual;
        for (const json::value& name : names) {
            const fs::path folder = kGolden / fs::path(GetParam()).parent_path();
            expected.insert(read_rgba(folder / std::string(name.as_string())).bytes);
        }
        for (const json::object& file : files) {
            actual.insert(read_rgba(path_of(file)).bytes);
        }
        EXPECT_TRUE(actual == expected);
    }

    TestFolders folders;
};

void Golden::expect_outputs(const json::object& recorded, const json::object& outputs) {
    const json::object& uis = recorded.at("ui").as_object();
    const bool sorted = any_order().contains(GetParam());
    EXPECT_EQ(outputs.size(), uis.size());
    for (const auto& [node, ui] : uis) {
        const json::value* actual = outputs.if_contains(node);
        ASSERT_NE(actual, nullptr) << "node " << node;
        EXPECT_EQ(
            json::serialize_canonical(comparable_ui(*actual, sorted)),
            json::serialize_canonical(comparable_ui(ui, sorted))
        );
        if (const json::value* names = recorded.at("outputs").as_object().if_contains(node)) {
            const std::vector<json::object> files = files_of(actual->as_object());
            ASSERT_EQ(files.size(), names->as_array().size());
            if (sorted) {
                expect_pictures_in_any_order(names->as_array(), files);
                continue;
            }
            for (std::size_t i = 0; i < files.size(); ++i) {
                const std::string name(names->as_array()[i].as_string());
                expect_file(recorded, name, path_of(files[i]));
            }
        }
    }
}

TEST_P(Golden, GivesWhatComfyUiGave) {
    const json::object recorded = parse_object(slurp(kGolden / (GetParam() + ".json")));
    Core core(make_registry(), folders.options());
    Recorder recorder;
    const auto result = core.run(recorded.at("prompt").as_object(), {}, recorder, {});
    if (recorded.at("status") == "success") {
        ASSERT_TRUE(result) << result.error().message;
        expect_outputs(recorded, result->outputs);
        return;
    }
    ASSERT_FALSE(result);
    const json::object& details = result.error().details;
    for (const char* key : {"node_id", "node_type", "exception_type", "exception_message"}) {
        const json::value* actual = details.if_contains(key);
        ASSERT_NE(actual, nullptr) << key << ": " << result.error().message;
        EXPECT_EQ(*actual, recorded.at("error").at(key));
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
