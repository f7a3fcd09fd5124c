#include "engine/nodes/dataset/folders.hpp"

#include <algorithm>
#include <system_error>

#include "base/json.hpp"
#include "engine/nodes/node.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {

Result<std::filesystem::path> folder_inside(
    const std::filesystem::path& root, const std::string& name
) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path real_root = fs::weakly_canonical(root, error);
    fs::path target;
    if (!error && name.find('\0') == name.npos) {
        target = fs::weakly_canonical(real_root / name, error);
    }
    const auto [rest, unused] =
        std::mismatch(real_root.begin(), real_root.end(), target.begin(), target.end());
    if (error || target.empty() || rest != real_root.end()) {
        return node_error(
            "ValueError",
            "Invalid folder name " + workflow::python_repr(json::value(name)) +
                ": resolves outside of its folder"
        );
    }
    return target;
}

}  // namespace comfyd::engine::nodes
