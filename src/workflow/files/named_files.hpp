// The files that a workflow names by a name ("cat.png", "set/cat.png [input]", "x_00001_.png
// [output]") and not by where they are to be had: where the names stand, and what ComfyUI says of
// those that lead nowhere. Who has which file is the caller's to find out. Pure; any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

struct FileUse {
    std::string node_id;
    std::string class_type;
    std::string input;
    std::string value;             // as it stands there
    std::string folder = "input";  // "input", "output", "temp"
    std::string path;              // in the folder
    // The input chooses a file. Elsewhere a text may be anything else, unless is_certain.
    bool is_choice = false;
    bool is_nested = false;   // in a list or an object
    bool is_certain = false;  // its form says that it names a file of the folder
};

// Whether such a text can be one of find_file_uses(): false for most, for which nothing else needs
// to be known.
bool may_name_file(
    std::string_view class_type,
    std::string_view input,
    std::string_view text,
    const json::object& inputs,
    const PromptClasses& classes
);

// In the order of the workflow; texts at any depth of an input.
std::vector<FileUse> find_file_uses(const json::object& workflow, const PromptClasses& classes);

// "a.png [temp]" -> "a.png" and "temp", as ComfyUI reads it. Without such an ending the folder
// stays as it is.
void split_annotation(std::string& name, std::string& folder);

// Puts the value in the place of each text `use.value` in the input; a list is wrapped as
// {"__value__": [...]}.
void replace_file(json::object& workflow, const FileUse& use, const json::object& with);

// What stands in an input that chooses a file, and leads to none, or to one that is of no use
// there; or to one that will be brought to a worker, against which nothing is said.
struct MissingFile {
    std::string node_id;
    std::string class_type;
    std::string input;
    json::value value;
    bool is_linked = false;  // the name would only be known when it runs
    bool is_coming = false;
    std::string unfit{};  // why it is of no use there

    // As the class's own check says it.
    OwnRefusal refusal() const;
};

// Numbers and the like where a file is chosen, and links where those are not allowed.
std::vector<MissingFile> find_nameless(
    const json::object& workflow, const PromptClasses& classes, bool links_allowed
);

// Classes which refuse missing files, as ComfyUI's loaders do. Both arguments outlive it.
class FileCheckedClasses final : public PromptClasses {
public:
    FileCheckedClasses(const PromptClasses& classes, const std::vector<MissingFile>& missing)
        : classes_(classes), missing_(missing) {}

    const NodeDefinition* find(std::string_view class_type) const override {
        return classes_.find(class_type);
    }
    const OwnCheck* own_check(const NodeDefinition& definition) const override;
    bool tells_own_checks(const NodeDefinition& definition) const override {
        return classes_.tells_own_checks(definition);
    }

private:
    const PromptClasses& classes_;
    const std::vector<MissingFile>& missing_;
    mutable std::map<std::string, std::unique_ptr<OwnCheck>> checks_;  // by class
};

}  // namespace comfyd::workflow
