#include "workflow/files/file_inputs.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

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
const json::value& value_in(const json::value& value) {
    const json::object* wrapper = value.if_object();
    const json::value* inner = wrapper != nullptr ? wrapper->if_contains("__value__") : nullptr;
    return inner != nullptr ? *inner : value;
}

bool is_source(const json::value& value) {
    return value.is_string() && is_file_source(view(value.get_string()));
}

// Files by whatever name; a link has a number in it.
bool is_file_list(const json::value& value) {
    const json::array* items = value.if_array();
    return items != nullptr && !items->empty() &&
           std::ranges::all_of(*items, [](const json::value& item) {
               return item.is_string() || item.is_object();
           });
}

// visit(id, class_type, inputs) for each node that is one.
template <class Node, class Visit>
void each_node(Node& workflow, Visit visit) {
    for (auto& node : workflow) {
        auto* members = node.value().if_object();
        auto* type = members != nullptr ? members->if_contains("class_type") : nullptr;
        auto* inputs = members != nullptr ? members->if_contains("inputs") : nullptr;
        if (type != nullptr && type->is_string() && inputs != nullptr && inputs->is_object()) {
            visit(view(node.key()), view(type->get_string()), inputs->get_object());
        }
    }
}

}  // namespace

std::string_view file_source_in(std::string_view text) {
    return trim(text, kSpaces);
}

bool is_file_source(std::string_view text) {
    text = trim(text, kSpaces);
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
    each_node(
        workflow,
        [&](std::string_view id, std::string_view type, const json::object& inputs) {
            for (const auto& input : inputs) {
                const json::value& value = value_in(input.value());
                const bool is_list =
                    is_file_list(value) && std::ranges::any_of(value.get_array(), is_source);
                if (!is_list && !is_source(value)) {
                    continue;
                }
                const std::string_view name = view(input.key());
                const auto kind = file_kind(type, name, inputs, classes);
                if (!kind) {
                    continue;
                }
                const auto add = [&](const json::value& text, std::optional<std::size_t> item) {
                    if (is_source(text)) {
                        found.push_back(
                            {std::string(id),
                             std::string(type),
                             std::string(name),
                             *kind,
                             std::string(trim(view(text.get_string()), kSpaces)),
                             item}
                        );
                    }
                };
                for (std::size_t i = 0; is_list && i < value.get_array().size(); ++i) {
                    add(value.get_array()[i], i);
                }
                add(value, std::nullopt);
            }
        }
    );
    return found;
}

void wrap_file_lists(json::object& workflow, const PromptClasses& classes) {
    each_node(workflow, [&](std::string_view, std::string_view type, json::object& inputs) {
        for (auto& input : inputs) {
            if (is_file_list(input.value()) &&
                file_kind(type, view(input.key()), inputs, classes)) {
                json::value list = std::move(input.value());
                input.value() = json::object{{"__value__", std::move(list)}};
            }
        }
    });
}

void place_file(json::object& workflow, const FileSource& at, json::object reference) {
    json::value* node = workflow.if_contains(at.node_id);
    json::value* inputs =
        node != nullptr && node->is_object() ? node->get_object().if_contains("inputs") : nullptr;
    if (inputs == nullptr || !inputs->is_object()) {
        return;
    }
    json::value& place = inputs->get_object()[at.input];
    if (!at.item) {
        place = std::move(reference);
        return;
    }
    json::value list = value_in(place);
    if (list.is_array() && *at.item < list.get_array().size()) {
        list.get_array()[*at.item] = std::move(reference);
        place = json::object{{"__value__", std::move(list)}};
    }
}

}  // namespace comfyd::workflow
