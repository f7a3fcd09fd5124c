// An operator's list of models, in the form of ComfyUI-Manager's model-list.json. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "models/register.hpp"

namespace comfyd::models {

// {"models":[{"type","save_path","filename","url"}]}. Entries that are no models of ours (pickles,
// packs of several files, other places) are left out. Code::invalid_argument: it is no such list.
Result<std::vector<RegisteredModel>> read_manager_list(std::string_view text);

}  // namespace comfyd::models
