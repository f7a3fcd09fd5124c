// Finds the workflow in a file, in whatever form people have it: JSON (API format, the editor's
// save format, or either in a wrapper), and pictures that ComfyUI saved, which hold both: PNG in
// text chunks, WebP in EXIF. Pictures are not decoded. Pure; any thread.
//
// Guarantees: reads within the bytes given, unpacks at most kWorkflowBytesMax.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kWorkflowBytesMax = 64 * 1024 * 1024;

// A prompt in API format, or a workflow in the editor's save format (is_ui_format); where a file
// holds both, the prompt, which is what ran. Code::invalid_argument when there is none,
// Code::malformed_json, Code::invalid_workflow for links that cannot be used.
Result<json::object> read_workflow_file(std::string_view bytes);

}  // namespace comfyd::workflow
