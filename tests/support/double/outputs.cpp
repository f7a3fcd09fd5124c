#include "support/double/outputs.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/crypto.hpp"
#include "support/double/catalogue.hpp"
#include "support/double/dummy.hpp"
#include "support/double/files.hpp"
#include "support/double/pictures.hpp"

namespace comfyd::support {
namespace {

json::value to_json(const FileRef& file) {
    return json::object{
        {"filename", file.name}, {"subfolder", file.subfolder}, {"type", file.type}
    };
}

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : json::serialize_python(value);
}

// What a text output shows: its literal, or the first text of the node that it is linked to.
std::string shown_text(const json::object& graph, const std::string& node) {
    for (const auto& [name, value] : inputs_of(graph, node)) {
        const auto from = linked_node(value);
        if (from.empty()) {
            return text_of(value);
        }
        for (const auto& [other, literal] : inputs_of(graph, from)) {
            if (literal.is_string()) {
                return std::string(literal.get_string());
            }
        }
        return std::string(class_of(graph, from));
    }
    return {};
}

bool takes(const json::object& node_class, std::string_view type) {
    const auto* inputs = json::find(node_class, "input");
    const auto* required =
        inputs && inputs->is_object() ? json::find(inputs->get_object(), "required") : nullptr;
    if (!required || !required->is_object()) {
        return false;
    }
    return std::any_of(
        required->get_object().begin(),
        required->get_object().end(),
        [type](const auto& member) {
            const auto* config = member.value().if_array();
            return config && !config->empty() && (*config)[0] == json::value(type);
        }
    );
}

// Five letters that stay the same for a node, as the real server's random ones do while it runs.
std::string letters_for(const std::string& node) {
    const Digest digest = sha256(node);
    std::string letters;
    for (std::size_t i = 0; i < 5; ++i) {
        letters += static_cast<char>('a' + digest[i] % 26);
    }
    return letters;
}

struct Metadata {
    std::string prompt;
    json::object extra{};
};

// What the node writes into its pictures.
Metadata metadata_of(const Prompt& prompt, const std::string& node) {
    if (class_of(prompt.graph, node) != "ComfydSaveImage") {
        const auto* extra = json::find(prompt.extra_data, "extra_pnginfo");
        return {
            json::serialize_python(prompt.graph),
            extra && extra->is_object() ? extra->get_object() : json::object{}
        };
    }
    const auto& inputs = inputs_of(prompt.graph, node);
    const auto own = json::parse(std::string(inputs.at("prompt").as_string()));
    const auto extra = json::parse_object(std::string(inputs.at("extra_pnginfo").as_string()));
    return {
        json::serialize_python(own ? *own : json::value(nullptr)), extra ? *extra : json::object{}
    };
}

json::array save_dummies(
    const Prompt& prompt,
    const std::string& node,
    const std::string& prefix,
    const char* type,
    Files& files,
    std::size_t output_bytes
) {
    const Metadata metadata = metadata_of(prompt, node);
    json::array list;
    for (const DummySample& sample : DummyTensors(prompt.graph).input(node, "images")) {
        PictureTexts texts{{"prompt", metadata.prompt}, {"sample", sample.text}};
        for (const auto& [name, value] : metadata.extra) {
            texts.emplace_back(name, json::serialize_python(value));
        }
        auto png = make_png(sample.what, 0, texts, output_bytes);
        list.push_back(to_json(files.add_numbered(prefix, type, ".png", std::move(png))));
    }
    return list;
}

}  // namespace

int batch_size_above(const json::object& graph, const std::string& node) {
    constexpr std::int64_t kBatchMax = 64;
    std::int64_t batch = 1;
    std::set<std::string> seen;
    std::vector<std::string> stack{node};
    while (!stack.empty()) {
        const std::string next = std::move(stack.back());
        stack.pop_back();
        if (!seen.insert(next).second) {
            continue;
        }
        for (const auto& [name, value] : inputs_of(graph, next)) {
            if (name == "batch_size" && value.is_int64()) {
                batch = std::max(batch, value.get_int64());
            }
            if (const auto from = linked_node(value); !from.empty()) {
                stack.emplace_back(from);
            }
        }
    }
    return static_cast<int>(std::min(batch, kBatchMax));
}

json::object make_outputs(
    const Prompt& prompt,
    const std::string& node,
    const Catalogue& catalogue,
    Files& files,
    std::size_t output_bytes,
    bool dummies
) {
    const auto name = class_of(prompt.graph, node);
    if (!catalogue.is_output(name) || name == "SaveImageWebsocket") {
        return {};
    }
    const auto& node_class = *catalogue.find(name);
    const auto* preview = json::find(inputs_of(prompt.graph, node), "preview");
    const bool temporary = name.starts_with("Preview") ||
                           (name == "ComfydSaveImage" && preview && *preview == json::value(true));
    const auto given = json::find_string(inputs_of(prompt.graph, node), "filename_prefix");
    const std::string prefix = temporary         ? "ComfyUI_temp_" + letters_for(node)
                               : given && *given ? **given
                                                 : std::string("ComfyUI");
    const char* type = temporary ? "temp" : "output";
    const std::string text = json::serialize_python(prompt.graph);
    if (takes(node_class, "VIDEO")) {
        json::array list{to_json(files.add_numbered(prefix, type, ".mp4", make_mp4(text)))};
        return {{"images", std::move(list)}, {"animated", json::array{true}}};
    }
    if (takes(node_class, "AUDIO")) {
        return {
            {"audio",
             json::array{to_json(files.add_numbered(prefix, type, ".flac", make_flac(text)))}}
        };
    }
    if (!takes(node_class, "IMAGE")) {
        return {{"text", json::array{shown_text(prompt.graph, node)}}};
    }
    if (dummies) {
        return {{"images", save_dummies(prompt, node, prefix, type, files, output_bytes)}};
    }
    json::array list;
    for (int i = 0; i < batch_size_above(prompt.graph, node); ++i) {
        auto png = make_png(text, static_cast<unsigned>(i), output_bytes);
        list.push_back(to_json(files.add_numbered(prefix, type, ".png", std::move(png))));
    }
    return {{"images", std::move(list)}};
}

}  // namespace comfyd::support
