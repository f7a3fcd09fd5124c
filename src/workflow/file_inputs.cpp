#include "workflow/file_inputs.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "workflow/security.hpp"

namespace comfyd::workflow {
namespace {

std::string_view view(boost::json::string_view text) {
    return {text.data(), text.size()};
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpaces = " \t\r\n";
    const auto first = text.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

struct KnownLoader {
    std::string_view class_type;
    std::string_view input;
    FileKind kind;
};

// Loaders whose definition may be missing, or does not say that they take uploads.
constexpr std::array<KnownLoader, 10> kLoaders{{
    {"LoadImage", "image", FileKind::image},
    {"LoadImageMask", "image", FileKind::image},
    {"LoadImageOutput", "image", FileKind::image},
    {"LoadAudio", "audio", FileKind::audio},
    {"LoadVideo", "file", FileKind::video},
    {"LoadLatent", "latent", FileKind::other},
    {"Load3D", "model_file", FileKind::other},
    {"VHS_LoadVideo", "video", FileKind::video},
    {"VHS_LoadVideoFFmpeg", "video", FileKind::video},
    {"VHS_LoadAudioUpload", "audio", FileKind::audio},
}};

FileKind kind_of(const json::object& options) {
    const auto takes = [&options](boost::json::string_view key) {
        const json::value* found = options.if_contains(key);
        return found != nullptr && found->is_bool() && found->get_bool();
    };
    if (takes("audio_upload")) {
        return FileKind::audio;
    }
    if (takes("video_upload")) {
        return FileKind::video;
    }
    return takes("image_upload") || takes("animated_image_upload") ? FileKind::image
                                                                   : FileKind::other;
}

// nullopt: the input chooses no file.
std::optional<FileKind> file_kind(
    std::string_view class_type,
    std::string_view input,
    const json::object& inputs,
    const PromptClasses& classes
) {
    const NodeDefinition* definition = classes.find(class_type);
    const InputDefinition* known =
        definition != nullptr ? definition->find_input(input, inputs) : nullptr;
    if (known != nullptr && known->takes_upload()) {
        return kind_of(*known->options);
    }
    if (known != nullptr && known->type != "COMBO") {
        return std::nullopt;
    }
    const auto* found = std::ranges::find_if(kLoaders, [&](const KnownLoader& loader) {
        return loader.class_type == class_type && loader.input == input;
    });
    return found == kLoaders.end() ? std::nullopt : std::optional(found->kind);
}

// ComfyUI takes {"__value__": x} for x.
const boost::json::string* text_of(const json::value& value) {
    const json::object* wrapper = value.if_object();
    const json::value* inner = wrapper != nullptr ? wrapper->if_contains("__value__") : nullptr;
    return inner != nullptr ? inner->if_string() : value.if_string();
}

}  // namespace

bool is_file_source(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with("data:") || text.starts_with("asset:") || text.starts_with("blake3:")) {
        return true;
    }
    InputUrl url;
    return read_input_url(text, url) && (url.scheme == "http" || url.scheme == "https");
}

bool chooses_file(
    std::string_view class_type,
    std::string_view input,
    const json::object& inputs,
    const PromptClasses& classes
) {
    return file_kind(class_type, input, inputs, classes).has_value();
}

std::vector<FileSource> find_file_sources(
    const json::object& workflow, const PromptClasses& classes
) {
    std::vector<FileSource> found;
    for (const auto& node : workflow) {
        const json::object* members = node.value().if_object();
        const json::value* type = members != nullptr ? members->if_contains("class_type") : nullptr;
        const json::value* inputs = members != nullptr ? members->if_contains("inputs") : nullptr;
        if (type == nullptr || !type->is_string() || inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        const std::string_view class_type = view(type->get_string());
        for (const auto& input : inputs->get_object()) {
            const boost::json::string* text = text_of(input.value());
            if (text == nullptr || !is_file_source(view(*text))) {
                continue;
            }
            const std::string_view name = view(input.key());
            if (const auto kind = file_kind(class_type, name, inputs->get_object(), classes)) {
                found.push_back(
                    {std::string(view(node.key())),
                     std::string(class_type),
                     std::string(name),
                     *kind,
                     std::string(trimmed(view(*text)))}
                );
            }
        }
    }
    return found;
}

void place_file(json::object& workflow, const FileSource& at, json::object reference) {
    json::value* node = workflow.if_contains(at.node_id);
    json::value* inputs =
        node != nullptr && node->is_object() ? node->get_object().if_contains("inputs") : nullptr;
    if (inputs != nullptr && inputs->is_object()) {
        inputs->get_object()[at.input] = std::move(reference);
    }
}

}  // namespace comfyd::workflow
