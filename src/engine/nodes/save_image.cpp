// SaveImage and PreviewImage: the same pictures in another folder, less tightly packed.

#include <array>
#include <atomic>
#include <utility>

#include "base/crypto.hpp"
#include "engine/call.hpp"
#include "engine/files.hpp"
#include "engine/nodes/all.hpp"
#include "engine/png.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kSaveLevel = 4;
constexpr int kPreviewLevel = 1;

struct Destination {
    const std::filesystem::path& folder;
    const char* type;  // as in the ui dictionary
    int level;
};

// JSON in ASCII; DEL is the one character of it that PNG texts may not hold.
std::string picture_text(const json::value& of) {
    std::string text = json::serialize_python(of);
    for (std::size_t at = text.find('\x7f'); at != text.npos; at = text.find('\x7f', at)) {
        text.replace(at, 1, "\\u007f");
    }
    return text;
}

// UTF-8 to Latin-1, which PNG keywords are in; nullopt where it has no such character.
std::optional<std::string> to_latin1(std::string_view text) {
    std::string latin;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x80) {
            latin += text[i];
        } else if ((byte == 0xC2 || byte == 0xC3) && i + 1 < text.size()) {
            ++i;
            latin += static_cast<char>(byte << 6 | (static_cast<unsigned char>(text[i]) & 0x3F));
        } else {
            return std::nullopt;
        }
    }
    return latin;
}

Result<std::vector<PngText>> make_texts(const Call& call) {
    std::vector<PngText> texts;
    texts.push_back({"prompt", picture_text(call.prompt())});
    for (const auto& [key, value] : call.extra_pnginfo()) {
        const std::string_view name(key.data(), key.size());
        auto keyword = to_latin1(name);
        if (!keyword) {
            return node_error(
                "UnicodeEncodeError",
                "The extra_pnginfo key '" + std::string(name) +
                    "' cannot name a text in a PNG: use Latin-1"
            );
        }
        texts.push_back({std::move(*keyword), picture_text(value)});
    }
    return texts;
}

Result<std::string> save_one(
    const Call& call,
    const Image& images,
    std::size_t index,
    const SavePlace& place,
    const std::vector<PngText>& texts,
    int level
) {
    const ImageShape& shape = images.shape();
    const PngPicture picture{images.picture(index), shape.width, shape.height, shape.channels};
    return save_counted(
        place,
        place.counter + index,
        index,
        "png",
        [&](const FileSink& sink) -> Result<> {
            const auto encoded =
                encode_png(picture, level, texts, sink, [&call] { return call.stopped(); });
            if (auto stopped = call.check_stopped(); !stopped) {
                return stopped;
            }
            if (!encoded) {
                return node_error("ValueError", encoded.error().text);
            }
            return {};
        }
    );
}

Result<NodeResult> save_all(Call& call, const std::string& prefix, const Destination& destination) {
    const Image& images = call.image("images");
    const ImageShape& shape = images.shape();
    if (shape.channels != 3 && shape.channels != 4) {
        return node_error(
            "TypeError",
            "A picture with " + std::to_string(shape.channels) + " channels cannot be saved: 3 or 4"
        );
    }
    const auto texts = make_texts(call);
    if (!texts) {
        return fail(texts.error());
    }
    const auto place = make_save_place(destination.folder, prefix, shape.width, shape.height);
    if (!place) {
        return fail(place.error());
    }
    std::vector<std::string> names(shape.batch);
    std::atomic<int> saved = 0;
    auto done = call.for_each(shape.batch, [&](std::size_t i) -> Result<> {
        auto name = save_one(call, images, i, *place, *texts, destination.level);
        if (!name) {
            return fail(std::move(name.error()));
        }
        names[i] = std::move(*name);
        if (shape.batch > 1) {
            call.progress(saved.fetch_add(1) + 1, static_cast<int>(shape.batch));
        }
        return {};
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    json::array files;
    for (const std::string& name : names) {
        files.emplace_back(json::object{
            {"filename", name}, {"subfolder", place->subfolder}, {"type", destination.type}
        });
    }
    return NodeResult{.outputs = {images}, .ui = json::object{{"images", std::move(files)}}};
}

Result<NodeResult> execute_save(Call& call) {
    return save_all(
        call, call.text("filename_prefix"), {call.folders().output, "output", kSaveLevel}
    );
}

Result<NodeResult> execute_preview(Call& call) {
    std::array<unsigned char, 5> random{};
    random_bytes(random.data(), random.size());
    std::string prefix = "ComfyUI_temp_";
    for (const unsigned char byte : random) {
        prefix += static_cast<char>('a' + byte % 26);
    }
    return save_all(call, prefix, {call.folders().temp, "temp", kPreviewLevel});
}

std::vector<std::pair<std::string, std::string>> hidden_inputs() {
    return {{"prompt", "PROMPT"}, {"extra_pnginfo", "EXTRA_PNGINFO"}};
}

}  // namespace

NodeClass save_image() {
    return {
        .name = "SaveImage",
        .display_name = "Save Image",
        .description = "Writes pictures into the output folder, with the workflow inside.",
        .category = "image",
        .output_node = true,
        .inputs =
            {link_input("images", "IMAGE", json::object{}),
             widget_input("filename_prefix", "STRING", {{"default", "ComfyUI"}})},
        .hidden = hidden_inputs(),
        .outputs = {{"IMAGE", "images"}},
        .execute = &execute_save,
    };
}

NodeClass preview_image() {
    return {
        .name = "PreviewImage",
        .display_name = "Preview Image",
        .description = "Writes pictures into the temporary folder.",
        .category = "image",
        .output_node = true,
        .inputs = {link_input("images", "IMAGE")},
        .hidden = hidden_inputs(),
        .outputs = {{"IMAGE", "images"}},
        .execute = &execute_preview,
    };
}

}  // namespace comfyd::engine::nodes
