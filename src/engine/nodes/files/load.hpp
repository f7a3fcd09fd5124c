// Reading files that prompts name, for the nodes that do.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

class Call;

namespace nodes {

struct LoadedPicture {
    Image image;
    Mask mask;  // 1 - alpha, or 64 x 64 zeros without alpha
};

// The content of a file, by ComfyUI's annotated name. A node error when it is not there.
Result<std::string> read_named(const std::string& name, const Folders& folders);

// For NodeClass::check of classes that load a file of this kind.
std::optional<Refusal> check_file_name(
    const json::value& name, std::string_view kind, const Folders& folders
);
// For NodeClass::fingerprint: the hash of the file that `input` names.
Result<std::string> file_fingerprint(
    const json::object& inputs, std::string_view input, const Folders& folders
);

// As LoadImage: the file's frames are the batch.
Result<LoadedPicture> load_picture(const Call& call, const std::string& name);
// The same for a file that is already in memory; `name` is for error texts.
Result<LoadedPicture> decode_picture(
    const Call& call, const std::string& name, std::string_view file
);

}  // namespace nodes
}  // namespace comfyd::engine
