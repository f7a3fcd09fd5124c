// Writing pictures the way ComfyUI's nodes do, for every node that saves or shows some.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/files.hpp"
#include "engine/pictures/png.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

class Call;

namespace nodes {

// What the account of a saved file takes at most: its name, and its entry in the ui.
inline constexpr std::uint64_t kBytesPerFile = 512;

// An entry of a ui dictionary.
json::object saved_file(
    const std::string& name, const std::string& subfolder, std::string_view type
);

// The prompt and each member of extra_pnginfo, as Python's JSON, under their names.
std::vector<std::pair<std::string, std::string>> workflow_texts(const Call& call);
// The same as the texts of a PNG. A node error when a name cannot be one.
Result<std::vector<PngText>> png_texts(const Call& call);

// Each picture as a PNG with these texts into the output folder; the entries for the ui.
Result<json::array> save_pictures(
    const Call& call, const ImageView& images, const std::string& prefix
);

// Five random letters, as in the names of previews.
std::string random_letters();
// Into the temporary folder, quickly. `with_texts`: the workflow goes inside.
Result<json::array> preview_pictures(
    const Call& call, const ImageView& images, const std::string& prefix, bool with_texts
);
// {"images": …, "animated": [false]} as of ComfyUI's newer nodes.
Result<json::object> preview_ui(const Call& call, const ImageView& images, bool with_texts);

}  // namespace nodes
}  // namespace comfyd::engine
