#include "api/dialects/native/uploads.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "comfy/members.hpp"
#include "net/http.hpp"

namespace comfyd::api::native {
namespace {

bool is_set(const json::object& options, std::string_view name) {
    const json::value* found = json::find(options, name);
    return found != nullptr && found->is_bool() && found->get_bool();
}

// As ComfyUI lists them: a film has sounds too.
bool takes(const json::object& options, std::string_view content_type) {
    const bool is_film = content_type.starts_with("video/");
    if (is_set(options, "image_upload") || is_set(options, "animated_image_upload")) {
        return content_type.starts_with("image/");
    }
    if (is_set(options, "audio_upload")) {
        return is_film || content_type.starts_with("audio/");
    }
    return is_set(options, "video_upload") && is_film;
}

void add_to_input(json::value& spec, const std::vector<std::string>& uploads) {
    json::array* pair = spec.if_array();
    json::object* options = pair != nullptr && pair->size() > 1 ? (*pair)[1].if_object() : nullptr;
    if (options == nullptr) {
        return;
    }
    const std::string folder = comfy::text_of(*options, "image_folder");
    json::value* choices = (*pair)[0].is_array() ? &(*pair)[0] : options->if_contains("options");
    if ((!folder.empty() && folder != "input") || choices == nullptr || !choices->is_array()) {
        return;
    }
    json::array own;
    std::unordered_set<std::string_view> names;
    for (const std::string& name : uploads) {
        if (takes(*options, net::content_type_of(name))) {
            own.emplace_back(name);
            names.insert(name);
        }
    }
    json::array& list = choices->get_array();
    const auto is_own = [&names](const json::value& choice) {
        return choice.is_string() && names.contains(view(choice.get_string()));
    };
    list.erase(std::remove_if(list.begin(), list.end(), is_own), list.end());
    list.insert(list.begin(), own.begin(), own.end());
}

void add_to_class(json::object& info, const std::vector<std::string>& uploads) {
    json::value* input = info.if_contains("input");
    if (input == nullptr || !input->is_object()) {
        return;
    }
    for (auto& group : input->get_object()) {
        if (json::object* specs = group.value().if_object()) {
            for (auto& spec : *specs) {
                add_to_input(spec.value(), uploads);
            }
        }
    }
}

}  // namespace

std::string with_uploads(const std::string& object_info, const std::vector<std::string>& uploads) {
    auto classes = json::parse_object(object_info);
    if (!classes) {
        return object_info;
    }
    for (auto& entry : *classes) {
        if (json::object* info = entry.value().if_object()) {
            add_to_class(*info, uploads);
        }
    }
    return json::serialize_python(*classes);
}

}  // namespace comfyd::api::native
