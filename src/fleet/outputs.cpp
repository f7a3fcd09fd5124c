#include "fleet/outputs.hpp"

#include <algorithm>

#include "comfy/members.hpp"
#include "net/http.hpp"
#include "workflow/files/private_names.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::string_view kNoType = "application/octet-stream";

void list_node(const std::string& node_id, const json::object& ui, std::vector<UiItem>& found) {
    for (const auto& [key, entry] : ui) {
        const json::array* list = entry.if_array();
        if (list == nullptr) {
            continue;
        }
        int texts = 0;
        for (const json::value& element : *list) {
            if (found.size() >= kOutputsMax) {
                return;
            }
            if (key == "text" && element.is_string()) {
                const auto& text = element.get_string();
                comfy::FileName name{
                    node_id + "_" + std::to_string(texts++) + ".txt", "", "output"
                };
                found.push_back({node_id, std::move(name), std::string(text.data(), text.size())});
                continue;
            }
            const json::object* file = element.if_object();
            const std::string filename = file == nullptr ? "" : comfy::text_of(*file, "filename");
            if (filename.empty()) {
                continue;
            }
            const auto type = comfy::maybe_text(*file, "type");
            found.push_back(
                {node_id,
                 {filename, comfy::text_of(*file, "subfolder"), type.value_or("output")},
                 std::nullopt}
            );
        }
    }
}

}  // namespace

std::vector<UiItem> list_results(const json::object& outputs) {
    std::vector<UiItem> found;
    for (const auto& [id, ui] : outputs) {
        if (const json::object* fields = ui.if_object()) {
            list_node(std::string(id.data(), id.size()), *fields, found);
        }
    }
    return found;
}

comfy::FileName shown_name(const comfy::FileName& file) {
    return {
        workflow::without_private_folders(file.filename),
        workflow::without_private_folders(file.subfolder),
        file.type,
    };
}

std::string content_type_for(std::string_view said, std::string_view filename) {
    if (!said.empty() && said != kNoType) {
        return std::string(said);
    }
    return std::string(net::content_type_of(filename));
}

std::string_view output_type(std::string_view content_type, std::string_view filename) {
    if (filename.ends_with(".latent")) {
        return "latent";
    }
    for (const std::string_view type : {"image", "video", "audio", "text"}) {
        if (content_type.starts_with(type) && content_type.substr(type.size()).starts_with('/')) {
            return type;
        }
    }
    return "file";
}

jobs::Output make_output(const UiItem& item, const assets::Asset& asset) {
    jobs::Output output;
    output.asset = asset.id;
    output.node_id = item.node_id;
    comfy::FileName shown = shown_name(item.file);
    output.type = output_type(asset.content_type, shown.filename);
    output.name = std::move(shown.filename);
    output.subfolder = std::move(shown.subfolder);
    output.folder = std::move(shown.type);
    output.content_type = asset.content_type;
    output.size_bytes = asset.size_bytes;
    output.hash = asset.hash;
    output.crc32 = asset.crc32;
    output.bytes = asset.bytes;
    output.generation = asset.generation;
    return output;
}

int count_images(const std::vector<jobs::Output>& outputs) {
    return static_cast<int>(std::ranges::count(outputs, "image", &jobs::Output::type));
}

}  // namespace comfyd::fleet
