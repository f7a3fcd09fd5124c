// What the engine's tests share: folders of their own, recorded data, a listener that remembers,
// and extra node classes that wait, fail or hand values on.
#pragma once

#include <spng.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "engine/nodes/all.hpp"
#include "engine/run/core.hpp"

namespace comfyd::engine::testing {

namespace fs = std::filesystem;

#if defined(COMFYD_TEST_DATA)  // benchmarks, which share this file, have no recorded data
inline const fs::path kGolden = fs::path(COMFYD_TEST_DATA) / "golden";
#endif

inline std::string slurp(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline json::object parse_object(std::string_view text) {
    return json::parse_object(text).value();
}

// An input, output and temp folder that go with the test.
class TestFolders {
public:
    TestFolders() {
        std::string pattern = (fs::temp_directory_path() / "comfyd-engine-XXXXXX").string();
        root_ = mkdtemp(pattern.data());
        input_ = root_ / "input";
        for (const fs::path& folder : {folders().input, folders().output, folders().temp}) {
            fs::create_directories(folder);
        }
    }
    ~TestFolders() { fs::remove_all(root_); }
    TestFolders(const TestFolders&) = delete;
    TestFolders& operator=(const TestFolders&) = delete;

    Folders folders() const { return {input_, root_ / "output", root_ / "temp"}; }
    EngineOptions options() const { return {.folders = folders(), .threads = 2}; }
    // Nothing writes there.
    void use_inputs(fs::path folder) { input_ = std::move(folder); }
    void add_input(const std::string& name, std::string_view content) const {
        std::ofstream(folders().input / name, std::ios::binary) << content;
    }
    std::vector<std::string> output_names() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(folders().output)) {
            if (entry.is_regular_file()) {
                names.push_back(fs::relative(entry.path(), folders().output).string());
            }
        }
        std::ranges::sort(names);
        return names;
    }

private:
    fs::path root_;
    fs::path input_;
};

class Recorder : public Listener {
public:
    void cached(const std::vector<std::string>& node_ids) override {
        cached_ids = node_ids;
        ++cached_calls;
    }
    void executing(const std::string& node_id) override {
        executing_ids.push_back(node_id);
        told.push_back("executing " + node_id);
    }
    void progress(const std::string& node_id, double value, double max) override {
        progress_texts.push_back(
            node_id + " " + json::serialize_canonical(value) + "/" + json::serialize_canonical(max)
        );
    }
    void blocked(const std::string& node_id, const std::string& message) override {
        told.push_back("blocked " + node_id + " " + message);
    }
    void added(const std::string& node_id, const std::string& parent_id) override {
        told.push_back("added " + node_id + " to " + parent_id);
    }
    void executed(const std::string& node_id, const json::object& /*ui*/) override {
        executed_ids.push_back(node_id);
        told.push_back("executed " + node_id);
    }
    void finished(const std::string& node_id) override { told.push_back("finished " + node_id); }
    void preview(const std::string& node_id, ImageFormat, std::string_view bytes) override {
        told.push_back("preview " + node_id + " " + std::string(bytes));
    }
    void text(const std::string& node_id, std::string_view text) override {
        told.push_back("text " + node_id + " " + std::string(text));
    }

    int cached_calls = 0;
    std::vector<std::string> cached_ids;
    std::vector<std::string> executing_ids;
    std::vector<std::string> executed_ids;
    std::vector<std::string> progress_texts;
    std::vector<std::string> told;  // everything but progress
};

struct Rgba {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    int bit_depth = 0;
    std::vector<std::uint8_t> bytes;
    std::vector<std::pair<std::string, std::string>> texts;
};

// A second decoder for what the engine wrote, straight from the library.
inline Rgba read_rgba(const fs::path& path, int format = SPNG_FMT_RGBA8) {
    const std::string file = slurp(path);
    const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(
        spng_ctx_new(0), &spng_ctx_free
    );
    spng_ihdr header{};
    std::size_t size = 0;
    Rgba picture;
    if (spng_set_png_buffer(context.get(), file.data(), file.size()) != 0 ||
        spng_get_ihdr(context.get(), &header) != 0 ||
        spng_decoded_image_size(context.get(), format, &size) != 0) {
        return picture;
    }
    picture.bytes.resize(size);
    if (spng_decode_image(context.get(), picture.bytes.data(), size, format, SPNG_DECODE_TRNS) ==
        0) {
        picture.width = header.width;
        picture.height = header.height;
        picture.bit_depth = header.bit_depth;
    }
    std::uint32_t count = 0;
    if (spng_get_text(context.get(), nullptr, &count) == 0) {
        std::vector<spng_text> texts(count);
        spng_get_text(context.get(), texts.data(), &count);
        for (const spng_text& text : texts) {
            picture.texts.emplace_back(text.keyword, std::string(text.text, text.length));
        }
    }
    return picture;
}

// A prompt of one picture through any nodes: {"1": EmptyImage, ...}.
inline json::object empty_image(int side, int color = 0, int batch = 1) {
    return {
        {"class_type", "EmptyImage"},
        {"inputs", {{"width", side}, {"height", side}, {"batch_size", batch}, {"color", color}}}
    };
}
inline json::object save_image(const std::string& from, const std::string& prefix) {
    return {
        {"class_type", "SaveImage"},
        {"inputs", {{"images", json::array{from, 0}}, {"filename_prefix", prefix}}}
    };
}

// An /object_info entry.
inline json::object info(
    json::object required, std::vector<std::string> outputs, json::object more = {}
) {
    json::array types;
    json::array is_list;
    for (const std::string& type : outputs) {
        types.emplace_back(type);
        is_list.emplace_back(false);
    }
    json::object entry{
        {"input", {{"required", std::move(required)}}},
        {"output", std::move(types)},
        {"output_is_list", std::move(is_list)},
        {"output_node", false}
    };
    for (auto& [key, value] : more) {
        entry[key] = std::move(value);
    }
    return entry;
}
inline json::array type(std::string_view name) {
    return {name, json::object()};
}

}  // namespace comfyd::engine::testing
