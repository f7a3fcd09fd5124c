#include "engine/nodes/files/save.hpp"

#include <array>
#include <atomic>
#include <optional>

#include "base/crypto.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kSaveLevel = 4;
constexpr int kPreviewLevel = 1;

struct Destination {
    const std::filesystem::path& folder;
    const char* type;  // as in the ui dictionary
    int level;
};

// DEL is the one character of ASCII that PNG texts may not hold.
std::string without_delete(std::string text) {
    if (text.find('\x7f') == text.npos) {
        return text;
    }
    std::string escaped;
    for (const char c : text) {
        if (c == '\x7f') {
            escaped += "\\u007f";
        } else {
            escaped += c;
        }
    }
    return escaped;
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

Result<std::string> save_one(
    const Call& call,
    const ImageView& images,
    std::size_t index,
    const SavePlace& place,
    const std::vector<PngText>& texts,
    int level
) {
    const ImageShape& shape = images.shape();
    std::vector<float> scratch;
    const PngPicture picture{
        .width = shape.width,
        .height = shape.height,
        .channels = shape.channels,
        .row = [&](std::size_t y) { return images.row(index * shape.height + y, scratch); }
    };
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

Result<json::array> save_all(
    const Call& call,
    const ImageView& images,
    const std::string& prefix,
    const std::vector<PngText>& texts,
    const Destination& destination
) {
    const ImageShape& shape = images.shape();
    if (shape.channels != 3 && shape.channels != 4) {
        return node_error(
            "TypeError",
            "A picture with " + std::to_string(shape.channels) + " channels cannot be saved: 3 or 4"
        );
    }
    const auto place = make_save_place(destination.folder, prefix, shape.width, shape.height);
    if (!place) {
        return fail(place.error());
    }
    const auto space = call.charge(shape.batch * kBytesPerFile);
    if (!space) {
        return fail(space.error());
    }
    std::vector<std::string> names(shape.batch);
    std::atomic<int> saved = 0;
    auto done = call.for_each(shape.batch, [&](std::size_t i) -> Result<> {
        auto name = save_one(call, images, i, *place, texts, destination.level);
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
        files.emplace_back(saved_file(name, place->subfolder, destination.type));
    }
    return files;
}

}  // namespace

json::object saved_file(
    const std::string& name, const std::string& subfolder, std::string_view type
) {
    return {{"filename", name}, {"subfolder", subfolder}, {"type", type}};
}

std::vector<std::pair<std::string, std::string>> workflow_texts(const Call& call) {
    std::vector<std::pair<std::string, std::string>> texts;
    texts.emplace_back("prompt", json::serialize_python(call.prompt()));
    for (const auto& [key, value] : call.extra_pnginfo()) {
        texts.emplace_back(key, json::serialize_python(value));
    }
    return texts;
}

Result<std::vector<PngText>> png_texts(const Call& call) {
    std::vector<PngText> texts;
    for (auto& [key, text] : workflow_texts(call)) {
        auto keyword = to_latin1(key);
        if (!keyword) {
            return node_error(
                "UnicodeEncodeError",
                "The extra_pnginfo key '" + key + "' cannot name a text in a PNG: use Latin-1"
            );
        }
        texts.push_back({std::move(*keyword), without_delete(std::move(text))});
    }
    return texts;
}

Result<json::array> save_pictures(
    const Call& call, const ImageView& images, const std::string& prefix
) {
    const auto texts = png_texts(call);
    if (!texts) {
        return fail(texts.error());
    }
    return save_all(call, images, prefix, *texts, {call.folders().output, "output", kSaveLevel});
}

std::string random_letters() {
    std::array<unsigned char, 5> random{};
    random_bytes(random.data(), random.size());
    std::string letters;
    for (const unsigned char byte : random) {
        letters += static_cast<char>('a' + byte % 26);
    }
    return letters;
}

Result<json::array> preview_pictures(
    const Call& call, const ImageView& images, const std::string& prefix, bool with_texts
) {
    std::vector<PngText> texts;
    if (with_texts) {
        auto all = png_texts(call);
        if (!all) {
            return fail(std::move(all.error()));
        }
        texts = std::move(*all);
    }
    return save_all(call, images, prefix, texts, {call.folders().temp, "temp", kPreviewLevel});
}

Result<json::object> preview_ui(const Call& call, const ImageView& images, bool with_texts) {
    auto files = preview_pictures(call, images, "ComfyUI_temp_" + random_letters(), with_texts);
    if (!files) {
        return fail(std::move(files.error()));
    }
    return json::object{{"images", std::move(*files)}, {"animated", json::array{false}}};
}

}  // namespace comfyd::engine::nodes
