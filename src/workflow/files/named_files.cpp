#include "workflow/files/named_files.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/files/private_names.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kNameBytesMax = 1'024;
constexpr std::size_t kExtensionBytesMax = 8;
constexpr std::array<std::string_view, 3> kAnnotations{"[input]", "[output]", "[temp]"};

bool is_link(const json::value& value) {
    const json::array* items = value.if_array();
    return items != nullptr && items->size() == 2 && (*items)[0].is_string() &&
           (*items)[1].is_number();
}

bool has_extension(std::string_view path) {
    const auto dot = path.rfind('.');
    const std::string_view tail = dot == path.npos ? std::string_view() : path.substr(dot + 1);
    return !tail.empty() && tail.size() <= kExtensionBytesMax &&
           tail.find_first_of(" /\\") == tail.npos;
}

bool is_loader(std::string_view class_type) {
    return class_type.find("Load") != class_type.npos;
}

bool offers(const PromptClasses& classes, const FileUse& use, const json::object& inputs) {
    const NodeDefinition* definition = classes.find(use.class_type);
    const InputDefinition* input =
        definition != nullptr ? definition->find_input(use.input, inputs) : nullptr;
    return input != nullptr && input->choices != nullptr && input->offers(json::value(use.value));
}

// visit(text) for each text in the value that is no part of a reference to an asset.
template <class Value, class Visit>
void each_text(Value& value, const Visit& visit) {
    if (value.is_string()) {
        visit(value);
    } else if (auto* list = value.if_array()) {
        for (auto& item : *list) {
            each_text(item, visit);
        }
    } else if (auto* members = value.if_object()) {
        if (is_asset_ref(value)) {
            return;
        }
        for (auto& member : *members) {
            each_text(member.value(), visit);
        }
    }
}

// visit(id, class_type, inputs) for each node that is one.
template <class Visit>
void each_node(const json::object& workflow, const Visit& visit) {
    for (const auto& node : workflow) {
        const json::object* members = node.value().if_object();
        const json::value* type = members != nullptr ? members->if_contains("class_type") : nullptr;
        const json::value* inputs = members != nullptr ? members->if_contains("inputs") : nullptr;
        if (type != nullptr && type->is_string() && inputs != nullptr && inputs->is_object()) {
            visit(view(node.key()), view(type->get_string()), inputs->get_object());
        }
    }
}

// Whether the text may name a file; what it names is then written into `use`.
bool read_use(FileUse& use, const json::object& inputs, const PromptClasses& classes) {
    use.folder = use.class_type.find("Output") == std::string::npos ? "input" : "output";
    use.path = use.value;
    split_annotation(use.path, use.folder);
    const bool is_annotated = use.path.size() != use.value.size();
    use.is_certain = holds_private_name(use.value) || (is_annotated && has_extension(use.path));
    if (use.is_choice || use.is_certain) {
        return true;
    }
    // A name without an extension is a choice of another kind, for example a channel, and what a
    // worker offers is a file of its own, for example a model.
    return is_loader(use.class_type) && use.value.size() <= kNameBytesMax &&
           has_extension(use.path) && !offers(classes, use, inputs);
}

std::string_view kind_of(const MissingFile& file) {
    const std::string_view type = file.class_type;
    return type.find("Audio") != type.npos    ? "audio"
           : type.find("Video") != type.npos  ? "video"
           : type.find("Latent") != type.npos ? "latent"
                                              : "image";
}

bool stands_in(const MissingFile& file, const json::value* value) {
    if (value == nullptr) {
        return file.value.is_null();
    }
    if (!file.value.is_string()) {
        return *value == file.value;
    }
    bool found = false;
    each_text(*value, [&](const json::value& text) { found = found || text == file.value; });
    return found;
}

}  // namespace

void split_annotation(std::string& name, std::string& folder) {
    for (const std::string_view known : kAnnotations) {
        if (name.ends_with(known)) {
            // With whatever stands between the name and the annotation.
            name.resize(name.size() - std::min(name.size(), known.size() + 1));
            folder = known.substr(1, known.size() - 2);
            return;
        }
    }
}

bool may_name_file(
    std::string_view class_type,
    std::string_view input,
    std::string_view text,
    const json::object& inputs,
    const PromptClasses& classes
) {
    return is_loader(class_type) || text.ends_with(']') || holds_private_name(text) ||
           chooses_file(class_type, input, inputs, classes);
}

std::vector<FileUse> find_file_uses(const json::object& workflow, const PromptClasses& classes) {
    std::vector<FileUse> uses;
    each_node(
        workflow,
        [&](std::string_view id, std::string_view type, const json::object& inputs) {
            for (const auto& input : inputs) {
                if (is_link(input.value())) {
                    continue;
                }
                const std::string_view name = view(input.key());
                const bool is_choice = chooses_file(type, name, inputs, classes);
                each_text(input.value(), [&](const json::value& text) {
                    if (!may_name_file(type, name, view(text.get_string()), inputs, classes)) {
                        return;
                    }
                    FileUse use;
                    use.node_id = id;
                    use.class_type = type;
                    use.input = name;
                    use.value = std::string(text.get_string());
                    use.is_choice = is_choice;
                    use.is_nested = &text != &input.value();
                    const bool is_source = is_choice && is_file_source(use.value);
                    if (!is_source && read_use(use, inputs, classes)) {
                        uses.push_back(std::move(use));
                    }
                });
            }
        }
    );
    return uses;
}

void replace_file(json::object& workflow, const FileUse& use, const json::object& with) {
    json::value* node = workflow.if_contains(use.node_id);
    json::value* inputs =
        node != nullptr && node->is_object() ? node->get_object().if_contains("inputs") : nullptr;
    json::value* input = inputs != nullptr && inputs->is_object()
                             ? inputs->get_object().if_contains(use.input)
                             : nullptr;
    if (input == nullptr) {
        return;
    }
    std::vector<json::value*> places;  // replacing one moves no other
    each_text(*input, [&](json::value& text) {
        if (view(text.get_string()) == use.value) {
            places.push_back(&text);
        }
    });
    for (json::value* place : places) {
        *place = with;
    }
    if (input->is_array()) {  // ComfyUI takes a bare list for a broken link
        json::value list = std::move(*input);
        *input = json::object{{"__value__", std::move(list)}};
    }
}

std::vector<MissingFile> find_nameless(
    const json::object& workflow, const PromptClasses& classes, bool links_allowed
) {
    std::vector<MissingFile> missing;
    each_node(
        workflow,
        [&](std::string_view id, std::string_view type, const json::object& inputs) {
            for (const auto& input : inputs) {
                const json::value& value = input.value();
                const bool is_linked = is_link(value);
                const bool is_plain = value.is_number() || value.is_bool() || value.is_null();
                if ((is_plain || (is_linked && !links_allowed)) &&
                    chooses_file(type, view(input.key()), inputs, classes)) {
                    missing.push_back(
                        {std::string(id),
                         std::string(type),
                         std::string(input.key()),
                         is_linked ? json::value() : value,
                         is_linked}
                    );
                }
            }
        }
    );
    return missing;
}

OwnRefusal MissingFile::refusal() const {
    if (!unfit.empty()) {
        return {unfit};
    }
    if (is_linked) {
        return {"The file must be named in the prompt itself, not by another node"};
    }
    if (!value.is_string()) {
        return {
            "'" + std::string(python_type(value)) + "' object has no attribute 'endswith'",
            "AttributeError"
        };
    }
    return {"Invalid " + std::string(kind_of(*this)) + " file: " + std::string(value.get_string())};
}

const OwnCheck* FileCheckedClasses::own_check(const NodeDefinition& definition) const {
    const auto [entry, is_new] = checks_.try_emplace(definition.name());
    std::unique_ptr<OwnCheck>& check = entry->second;
    if (!is_new) {
        return check.get();
    }
    OwnCheck made;
    const OwnCheck* told = classes_.own_check(definition);
    if (told != nullptr) {
        made = *told;
    }
    for (const InputDefinition* input : definition.all_inputs()) {
        if (input->takes_upload()) {  // the file is brought there, whatever the worker's list says
            made.inputs.push_back(input->name);
        }
    }
    std::vector<const MissingFile*> files;
    for (const MissingFile& file : missing_) {
        if (file.class_type == definition.name()) {
            made.inputs.push_back(file.input);
            if (!file.is_coming) {
                files.push_back(&file);
            }
        }
    }
    if (told == nullptr && made.inputs.empty()) {
        return nullptr;
    }
    made.check = [files = std::move(files), inner = std::move(made.check)](
                     const json::object& inputs, const std::map<std::string, std::string>& received
                 ) -> std::optional<OwnRefusal> {
        for (const MissingFile* file : files) {
            const bool is_linked = received.contains(file->input);
            const bool is_this = file->is_linked
                                     ? is_linked
                                     : !is_linked && inputs.contains(file->input) &&
                                           stands_in(*file, inputs.if_contains(file->input));
            if (is_this) {
                return file->refusal();
            }
        }
        return inner ? inner(inputs, received) : std::nullopt;
    };
    check = std::make_unique<OwnCheck>(std::move(made));
    return check.get();
}

}  // namespace comfyd::workflow
