// Inputs of loader nodes that choose a file, where they name it by where it can be had and not by
// a name on a worker: "https://…", "data:image/png;base64,…", "asset:<id>", "blake3:<hash>". Only
// such inputs: a prompt that mentions an address stays a prompt. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

enum class FileKind { image, audio, video, other };

struct FileSource {
    std::string node_id{};
    std::string class_type{};
    std::string input{};
    FileKind kind = FileKind::other;
    std::string source{};               // without spaces around it
    std::optional<std::size_t> item{};  // its place, where the input holds a list of files
};

bool is_file_source(std::string_view text);
// Without the spaces around it.
std::string_view file_source_in(std::string_view text);

// True where the server fetches what the input names, and not a worker. `inputs` are the node's.
bool chooses_file(
    std::string_view class_type,
    std::string_view input,
    const json::object& inputs,
    const PromptClasses& classes
);

// In the order of the workflow. Inputs that take uploads by what `classes` knows of them, and those
// of well-known loaders also where it knows nothing.
std::vector<FileSource> find_file_sources(
    const json::object& workflow, const PromptClasses& classes
);

// Lists of files in inputs that choose files become {"__value__": [...]}, which ComfyUI takes for a
// list and not for a broken link. Before the workflow is checked.
void wrap_file_lists(json::object& workflow, const PromptClasses& classes);

// Puts the reference to a stored file in the place of the source.
void place_file(json::object& workflow, const FileSource& at, json::object reference);

}  // namespace comfyd::workflow
