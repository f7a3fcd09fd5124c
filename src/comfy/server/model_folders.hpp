// The folders of models that ComfyUI has, in its order. Pure.
#pragma once

#include <span>
#include <string_view>

namespace comfyd::comfy::server {

struct ModelFolder {
    std::string_view name;
    // The input that lists its files; empty: none does.
    std::string_view class_type;
    std::string_view input;
};

std::span<const ModelFolder> model_folders();
// Also by its older name. nullptr: there is none.
const ModelFolder* find_model_folder(std::string_view name);

}  // namespace comfyd::comfy::server
