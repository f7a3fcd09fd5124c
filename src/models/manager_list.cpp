#include "models/manager_list.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "models/wish.hpp"

namespace comfyd::models {
namespace {

struct Place {
    std::string_view type;  // of the list, in small letters
    std::string_view folder;
};
// Where ComfyUI-Manager puts what has the save_path "default".
constexpr std::array kPlaces{
    Place{"checkpoint", "checkpoints"},
    Place{"checkpoints", "checkpoints"},
    Place{"unclip", "checkpoints"},
    Place{"clip", "text_encoders"},
    Place{"text_encoders", "text_encoders"},
    Place{"vae", "vae"},
    Place{"lora", "loras"},
    Place{"loras", "loras"},
    Place{"t2i-adapter", "controlnet"},
    Place{"t2i-style", "controlnet"},
    Place{"controlnet", "controlnet"},
    Place{"clip_vision", "clip_vision"},
    Place{"gligen", "gligen"},
    Place{"upscale", "upscale_models"},
    Place{"embedding", "embeddings"},
    Place{"embeddings", "embeddings"},
    Place{"unet", "diffusion_models"},
    Place{"diffusion_model", "diffusion_models"},
};

std::string text_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

// "checkpoints/SD1.5/" -> "checkpoints/SD1.5"; empty: nowhere.
std::string place_of(const json::object& entry) {
    std::string path = text_of(entry, "save_path");
    while (path.ends_with('/')) {
        path.pop_back();
    }
    if (path != "default") {
        return path;
    }
    const std::string type = lower(text_of(entry, "type"));
    const auto known = std::ranges::find(kPlaces, type, &Place::type);
    return known == kPlaces.end() ? std::string() : std::string(known->folder);
}

}  // namespace

Result<std::vector<RegisteredModel>> read_manager_list(std::string_view text) {
    const auto document = json::parse_object(text);
    const auto list = document ? json::find_array(*document, "models")
                               : Result<const json::array*>(fail(document.error()));
    if (!list || *list == nullptr) {
        return fail(
            Code::invalid_argument,
            list ? R"(a list of models is {"models": [{"save_path", "filename", "url", …}]})"
                 : list.error().message
        );
    }
    std::vector<RegisteredModel> models;
    std::set<std::string> paths;
    for (const json::value& one : **list) {
        const json::object* entry = one.if_object();
        const std::string path =
            entry == nullptr ? "" : place_of(*entry) + "/" + text_of(*entry, "filename");
        const auto slash = path.find('/');
        if (slash == std::string::npos || slash == 0 || !paths.insert(path).second) {
            continue;
        }
        RegisteredModel model;
        model.folder = path.substr(0, slash);
        model.name = path.substr(slash + 1);
        auto version = read_version(model.folder, model.name, {{"source", text_of(*entry, "url")}});
        if (version && !is_pickle(model.name)) {
            model.last = 1;
            model.versions.push_back(std::move(*version));
            models.push_back(std::move(model));
        }
    }
    return models;
}

}  // namespace comfyd::models
