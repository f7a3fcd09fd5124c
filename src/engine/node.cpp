#include "engine/node.hpp"

#include <algorithm>

namespace comfyd::engine {
namespace {

json::array to_array(const std::vector<std::string>& texts) {
    json::array array;
    array.reserve(texts.size());
    for (const std::string& text : texts) {
        array.emplace_back(text);
    }
    return array;
}

void describe_inputs(const NodeClass& node, const Folders& folders, json::object& into) {
    json::object input;
    json::object order;
    for (const Need need : {Need::required, Need::optional}) {
        json::object group;
        json::array names;
        for (const Input& candidate : node.inputs) {
            if (candidate.need == need) {
                group[candidate.name] = describe(candidate, node.schema, folders);
                names.emplace_back(candidate.name);
            }
        }
        if (need == Need::required || !names.empty()) {
            const char* key = need == Need::required ? "required" : "optional";
            input[key] = std::move(group);
            order[key] = std::move(names);
        }
    }
    if (!node.hidden.empty()) {
        json::object group;
        json::array names;
        for (const auto& [name, type] : node.hidden) {
            group[name] = type;
            names.emplace_back(name);
        }
        input["hidden"] = std::move(group);
        order["hidden"] = std::move(names);
    }
    into["input"] = std::move(input);
    into["input_order"] = std::move(order);
}

}  // namespace

Input link_input(std::string name, std::string type, std::optional<json::object> options) {
    return Input{.name = std::move(name), .type = std::move(type), .options = std::move(options)};
}

Input widget_input(std::string name, std::string type, json::object options) {
    return Input{.name = std::move(name), .type = std::move(type), .options = std::move(options)};
}

Input combo_input(
    std::string name, std::vector<std::string> choices, std::optional<json::object> options
) {
    return Input{
        .name = std::move(name),
        .type = "COMBO",
        .options = std::move(options),
        .choices = std::move(choices)
    };
}

Input file_input(
    std::string name,
    std::vector<std::string> (*list_choices)(const Folders& folders),
    json::object options
) {
    return Input{
        .name = std::move(name),
        .type = "COMBO",
        .options = std::move(options),
        .choices = {},
        .list_choices = list_choices
    };
}

const Input* NodeClass::find_input(std::string_view input_name) const {
    const auto found = std::ranges::find(inputs, input_name, &Input::name);
    return found == inputs.end() ? nullptr : &*found;
}

std::vector<std::string> choices_of(const Input& input, const Folders& folders) {
    return input.list_choices != nullptr ? input.list_choices(folders) : input.choices;
}

json::array describe(const Input& input, Schema schema, const Folders& folders) {
    json::array pair;
    if (input.type != "COMBO") {
        pair.emplace_back(input.type);
        if (input.options || schema == Schema::v3) {
            pair.emplace_back(input.options.value_or(json::object{}));
        }
        return pair;
    }
    json::array choices = to_array(choices_of(input, folders));
    if (schema == Schema::v3) {
        json::object options = input.options.value_or(json::object{});
        options["multiselect"] = false;
        options["options"] = std::move(choices);
        pair.emplace_back("COMBO");
        pair.emplace_back(std::move(options));
        return pair;
    }
    pair.emplace_back(std::move(choices));
    if (input.options) {
        pair.emplace_back(*input.options);
    }
    return pair;
}

json::object describe(const NodeClass& node, const Folders& folders) {
    json::object info;
    describe_inputs(node, folders, info);
    json::array types;
    json::array names;
    json::array is_list;
    for (const Output& output : node.outputs) {
        types.emplace_back(output.type);
        names.emplace_back(output.name.empty() ? output.type : output.name);
        is_list.emplace_back(false);
    }
    info["is_input_list"] = false;
    info["output"] = std::move(types);
    info["output_is_list"] = std::move(is_list);
    info["output_name"] = std::move(names);
    if (node.schema == Schema::v3) {
        info["output_matchtypes"] = nullptr;
    }
    info["name"] = node.name;
    info["display_name"] = node.display_name;
    info["description"] = node.description;
    info["python_module"] = node.python_module;
    info["category"] = node.category;
    info["output_node"] = node.output_node;
    if (node.schema == Schema::v3) {
        for (const char* flag : {"deprecated", "experimental", "dev_only", "api_node"}) {
            info[flag] = false;
        }
    }
    info["has_intermediate_output"] = false;
    return info;
}

tl::unexpected<Error> node_error(std::string_view exception_type, std::string message) {
    json::object details;
    details["exception_type"] = exception_type;
    return fail(Code::node_execution_error, std::move(message), std::move(details));
}

}  // namespace comfyd::engine
