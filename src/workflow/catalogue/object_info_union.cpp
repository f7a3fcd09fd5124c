#include "workflow/catalogue/object_info_union.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/catalogue/definition_pool.hpp"

namespace comfyd::workflow {
namespace {

using Values = std::vector<const json::value*>;
using Objects = std::vector<const json::object*>;

json::object merge_sections(const Objects& sections);

// Every item once, in the order in which they are first met.
json::array merge_choices(const std::vector<const json::array*>& lists) {
    json::array merged;
    std::unordered_set<std::string_view> texts;
    for (const json::array* list : lists) {
        for (const json::value& choice : *list) {
            const bool fresh = choice.is_string()
                                   ? texts.insert(view(choice.get_string())).second
                                   : std::ranges::find(merged, choice) == merged.end();
            if (fresh) {
                merged.push_back(choice);
            }
        }
    }
    return merged;
}

json::value merge_types(const Values& types) {
    std::vector<const json::array*> lists;
    std::string names;
    std::set<std::string_view> known;
    for (const json::value* type : types) {
        if (type->is_array()) {
            lists.push_back(&type->get_array());
        } else if (type->is_string() && known.insert(view(type->get_string())).second) {
            names += names.empty() ? "" : ",";
            names += view(type->get_string());
        }
    }
    if (lists.size() == types.size()) {
        return merge_choices(lists);
    }
    return lists.empty() && !names.empty() ? json::value(names) : *types.front();
}

// Those of a dynamic combo, by key.
json::array merge_dynamic_choices(const std::vector<const json::array*>& lists) {
    std::vector<std::pair<const json::value*, Objects>> by_key;
    for (const json::array* list : lists) {
        for (const json::value& option : *list) {
            const json::object* fields = option.if_object();
            const json::value* key = fields != nullptr ? fields->if_contains("key") : nullptr;
            if (key == nullptr) {
                continue;
            }
            const auto found =
                std::ranges::find_if(by_key, [&](const auto& one) { return *one.first == *key; });
            if (found == by_key.end()) {
                by_key.push_back({key, {fields}});
            } else {
                found->second.push_back(fields);
            }
        }
    }
    json::array merged;
    for (const auto& [key, variants] : by_key) {
        json::object option = *variants.front();
        Objects inputs;
        for (const json::object* variant : variants) {
            const json::value* found = json::find(*variant, "inputs");
            if (found != nullptr && found->is_object()) {
                inputs.push_back(&found->get_object());
            }
        }
        if (!inputs.empty()) {
            option["inputs"] = merge_sections(inputs);
        }
        merged.push_back(std::move(option));
    }
    return merged;
}

void merge_limit(json::object& into, const Objects& options, std::string_view name, bool smallest) {
    const boost::json::string_view key(name.data(), name.size());
    for (const json::object* other : options) {
        const json::value* limit = json::find(*other, name);
        const json::value* known = into.if_contains(key);
        if (limit == nullptr || !limit->is_number()) {
            into.erase(key);  // one of them has none
            return;
        }
        if (known == nullptr || !known->is_number()) {
            return;
        }
        const double a = limit->to_number<double>();
        const double b = known->to_number<double>();
        if (smallest ? a < b : a > b) {
            into[key] = *limit;
        }
    }
}

json::object merge_options(const Objects& options, bool dynamic) {
    json::object merged = *options.front();
    merge_limit(merged, options, "min", true);
    merge_limit(merged, options, "max", false);
    std::vector<const json::array*> lists;
    for (const json::object* one : options) {
        const json::value* list = json::find(*one, "options");
        if (list != nullptr && list->is_array()) {
            lists.push_back(&list->get_array());
        }
    }
    if (lists.size() > 1) {
        merged["options"] = dynamic ? merge_dynamic_choices(lists) : merge_choices(lists);
    }
    return merged;
}

// [type, options] of one input.
json::value merge_configs(const Values& configs) {
    Values types;
    Objects options;
    for (const json::value* config : configs) {
        const json::array* pair = config->if_array();
        if (pair == nullptr || pair->empty()) {
            return *configs.front();
        }
        types.push_back(&pair->front());
        if (pair->size() > 1 && (*pair)[1].is_object()) {
            options.push_back(&(*pair)[1].get_object());
        }
    }
    const bool same = std::ranges::all_of(configs, [&](const json::value* config) {
        return *config == *configs.front();
    });
    if (same) {
        return *configs.front();
    }
    json::array merged;
    merged.push_back(merge_types(types));
    if (!options.empty()) {
        const json::value& type = *types.front();
        const bool dynamic = type.is_string() && type.get_string() == "COMFY_DYNAMICCOMBO_V3";
        merged.push_back(merge_options(options, dynamic));
    }
    return merged;
}

// {"required": {...}, "optional": {...}, "hidden": …}
json::object merge_sections(const Objects& sections) {
    struct Input {
        std::string name;
        Values configs;
        std::size_t required = 0;  // by how many
    };
    std::vector<Input> inputs;
    std::unordered_map<std::string, std::size_t> index;
    for (const json::object* variant : sections) {
        for (const char* section : {"required", "optional"}) {
            const json::value* found = json::find(*variant, section);
            if (found == nullptr || !found->is_object()) {
                continue;
            }
            for (const auto& entry : found->get_object()) {
                const std::string name(view(entry.key()));
                const auto [at, fresh] = index.emplace(name, inputs.size());
                if (fresh) {
                    inputs.push_back({name, {}, 0});
                }
                inputs[at->second].configs.push_back(&entry.value());
                inputs[at->second].required += section[0] == 'r' ? 1 : 0;
            }
        }
    }
    json::object merged = *sections.front();
    json::object required;
    json::object optional;
    for (const Input& input : inputs) {
        (input.required == sections.size() ? required : optional)[input.name] =
            merge_configs(input.configs);
    }
    merged["required"] = std::move(required);
    if (!optional.empty() || merged.contains("optional")) {
        merged["optional"] = std::move(optional);
    }
    return merged;
}

// What the editor sorts its widgets by.
json::object input_order(const json::object& sections) {
    json::object order;
    for (const auto& section : sections) {
        if (section.value().is_object()) {
            json::array names;
            for (const auto& entry : section.value().get_object()) {
                names.emplace_back(entry.key());
            }
            order[section.key()] = std::move(names);
        }
    }
    return order;
}

json::array merge_outputs(const std::vector<const json::array*>& lists) {
    json::array merged;
    for (std::size_t slot = 0; slot < lists.front()->size(); ++slot) {
        Values types;
        for (const json::array* list : lists) {
            types.push_back(&(*list)[std::min(slot, list->size() - 1)]);
        }
        merged.push_back(merge_types(types));
    }
    return merged;
}

// How many choices inputs of this name offer in all.
std::map<std::string_view, std::size_t> choice_counts(const NodeDefinition& definition) {
    std::map<std::string_view, std::size_t> counts;
    for (const InputDefinition* input : definition.all_inputs()) {
        if (input->choices != nullptr && !input->takes_upload()) {
            counts[input->name] += input->choices->size();
        }
    }
    return counts;
}

void merge_class(MergedClass& merged) {
    Objects infos;
    for (const auto& variant : merged.variants) {
        infos.push_back(&variant->info());
    }
    auto made = shared_definition(merged.variants.front()->name(), merge_infos(infos));
    merged.definition = made ? std::move(*made) : merged.variants.front();
    std::vector<std::map<std::string_view, std::size_t>> counts;
    for (const auto& variant : merged.variants) {
        counts.push_back(choice_counts(*variant));
    }
    for (const auto& [name, all] : choice_counts(*merged.definition)) {
        const bool same = std::ranges::all_of(counts, [&](const auto& of_variant) {
            const auto found = of_variant.find(name);
            return found != of_variant.end() && found->second == all;
        });
        if (!same) {
            merged.differing_inputs.emplace_back(name);
        }
    }
}

}  // namespace

json::object merge_infos(const std::vector<const json::object*>& infos) {
    // The one with the most outputs leads, so that no output is lost.
    Objects ordered = infos;
    const auto outputs = [](const json::object* info) {
        const json::value* found = json::find(*info, "output");
        return found != nullptr && found->is_array() ? &found->get_array() : nullptr;
    };
    const auto most = std::ranges::max_element(ordered, {}, [&](const json::object* info) {
        return outputs(info) != nullptr ? outputs(info)->size() : 0;
    });
    std::ranges::rotate(ordered.begin(), most, ordered.end());
    json::object merged = *ordered.front();
    Objects sections;
    std::vector<const json::array*> types;
    for (const json::object* info : ordered) {
        const json::value* input = json::find(*info, "input");
        static const json::object kNone;
        sections.push_back(input != nullptr && input->is_object() ? &input->get_object() : &kNone);
        if (outputs(info) != nullptr && !outputs(info)->empty()) {
            types.push_back(outputs(info));
        }
    }
    merged["input"] = merge_sections(sections);
    if (merged.contains("input_order")) {
        merged["input_order"] = input_order(merged.at("input").get_object());
    }
    if (!types.empty()) {
        merged["output"] = merge_outputs(types);
    }
    return merged;
}

std::vector<MergedClass> merge_classes(
    const std::vector<std::shared_ptr<const NodeClasses>>& sources
) {
    std::vector<MergedClass> merged;
    std::unordered_map<std::string_view, std::size_t> index;
    std::unordered_set<const NodeDefinition*> seen;
    for (const auto& source : sources) {
        for (const auto& definition : source->all()) {
            if (!seen.insert(definition.get()).second) {
                continue;
            }
            const auto [at, fresh] = index.emplace(definition->name(), merged.size());
            if (fresh) {
                merged.push_back({definition, {}, {}});
            }
            merged[at->second].variants.push_back(definition);
        }
    }
    for (MergedClass& one : merged) {
        if (one.variants.size() > 1) {
            merge_class(one);
        }
    }
    return merged;
}

}  // namespace comfyd::workflow
