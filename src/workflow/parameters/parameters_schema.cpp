#include "workflow/parameters/parameters_schema.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::workflow {
namespace {

boost::json::string_view key(std::string_view text) {
    return {text.data(), text.size()};
}

// What an input takes, as far as it can be said in one word.
ParameterType type_of(const InputDefinition& input) {
    if (input.takes_upload()) {
        return ParameterType::file;
    }
    if (input.type == "STRING") {
        return ParameterType::string;
    }
    if (input.type == "INT") {
        return ParameterType::integer;
    }
    if (input.type == "FLOAT") {
        return ParameterType::number;
    }
    if (input.type == "BOOLEAN") {
        return ParameterType::boolean;
    }
    const bool offers_texts =
        input.type == "COMBO" && input.choices != nullptr && !input.choices->empty() &&
        std::ranges::all_of(*input.choices, [](const json::value& one) { return one.is_string(); });
    return offers_texts ? ParameterType::string : ParameterType::any;
}

ParameterType type_of(const json::value& value) {
    if (value.is_string()) {
        return ParameterType::string;
    }
    if (value.is_bool()) {
        return ParameterType::boolean;
    }
    return value.is_number() ? ParameterType::number : ParameterType::any;
}

bool fits(ParameterType declared, ParameterType taken) {
    using enum ParameterType;
    return declared == taken || declared == any || taken == any ||
           (declared == integer && taken == number) || (declared == string && taken == file) ||
           (declared == file && taken == string);
}

bool is_multiple(const InputDefinition& input) {
    const json::value* multiple =
        input.options != nullptr ? json::find(*input.options, "multiselect") : nullptr;
    return multiple != nullptr && python_bool(*multiple);
}

// Makes a limit tighter, never wider. `sign` is 1 for a minimum and -1 for a maximum.
void tighten(json::value& limit, const json::value* other, int sign) {
    if (other != nullptr && other->is_number() &&
        (limit.is_null() || sign * compare_numbers(*other, limit) > 0)) {
        limit = *other;
    }
}

}  // namespace

Result<ParameterSchema> ParameterSchema::make(
    const json::object& declared, const json::object& graph, const PromptClasses& classes
) {
    const ParameterNames names(graph, nullptr);
    ParameterSchema schema;
    for (const auto& entry : declared) {
        Parameter parameter;
        parameter.name = std::string(view(entry.key()));
        auto targets = names.read_declaration(parameter.name, entry.value());
        if (!targets) {
            return fail(std::move(targets.error()));
        }
        parameter.declared = entry.value().if_object();
        if (parameter.declared == nullptr) {
            return fail(
                Code::internal, "the stored declaration of '" + parameter.name + "' is damaged"
            );
        }
        parameter.required = parameter.declared->contains("required");
        parameter.may_be_random = std::ranges::all_of(
            *targets, [&](const ParameterNames::Target& target) { return names.is_seed(target); }
        );
        if (const json::value* type = json::find(*parameter.declared, "type")) {
            parameter.type =
                parse_parameter_type(view(type->as_string())).value_or(ParameterType::any);
        }
        tighten(parameter.minimum, json::find(*parameter.declared, "minimum"), 1);
        tighten(parameter.maximum, json::find(*parameter.declared, "maximum"), -1);
        if (const json::value* choices = json::find(*parameter.declared, "enum")) {
            parameter.choices = choices->if_array();
        }
        for (const ParameterNames::Target& target : *targets) {
            if (auto done = complete(names, target, classes, parameter); !done) {
                return fail(std::move(done.error()));
            }
        }
        schema.parameters_.push_back(std::move(parameter));
    }
    return schema;
}

Result<> ParameterSchema::complete(
    const ParameterNames& names,
    const ParameterNames::Target& target,
    const PromptClasses& classes,
    Parameter& parameter
) {
    const Graph::Node& node = names.graph()[target.node];
    const json::value* value = node.inputs->if_contains(target.input);
    const bool is_literal = value != nullptr && !value->is_array() && !value->is_object();
    if (parameter.value == nullptr && is_literal) {
        parameter.value = value;
    }
    const NodeDefinition* definition = classes.find(node.class_type);
    const InputDefinition* input =
        definition != nullptr ? definition->find_input(target.input, *node.inputs) : nullptr;
    const bool is_said = parameter.declared->contains("type");
    if (input == nullptr) {
        if (!is_said && is_literal && parameter.type == ParameterType::any) {
            parameter.type = type_of(*value);
        }
        return {};
    }
    if (is_multiple(*input)) {
        return {};
    }
    const ParameterType taken = type_of(*input);
    if (is_said && !fits(parameter.type, taken)) {
        return fail(
            Code::invalid_argument,
            "parameter '" + parameter.name + "': its type is " +
                std::string(to_string(parameter.type)) + ", but input '" + target.input +
                "' of node " + std::string(node.id) + " takes " + std::string(to_string(taken)),
            {{"field", "parameters." + parameter.name}, {"parameter", parameter.name}}
        );
    }
    if (!is_said && parameter.type == ParameterType::any) {
        parameter.type = taken;
    }
    if (is_numeric(parameter.type) && input->options != nullptr) {
        tighten(parameter.minimum, json::find(*input->options, "min"), 1);
        tighten(parameter.maximum, json::find(*input->options, "max"), -1);
    }
    if (parameter.choices == nullptr && taken != ParameterType::file && input->choices != nullptr &&
        !input->choices->empty()) {
        parameter.choices = input->choices;
    }
    return {};
}

const ParameterSchema::Parameter* ParameterSchema::find(std::string_view name) const {
    const auto found = std::ranges::find(parameters_, name, &Parameter::name);
    return found == parameters_.end() ? nullptr : &*found;
}

json::object ParameterSchema::describe(const Parameter& parameter) {
    json::object about;
    for (const char* member : {"title", "description"}) {
        if (const json::value* text = json::find(*parameter.declared, member)) {
            about[member] = *text;
        }
    }
    json::object type;
    if (parameter.type == ParameterType::file) {
        about["anyOf"] =
            json::array{json::object{{"type", "string"}}, json::object{{"type", "object"}}};
        about["x-type"] = "file";
    } else if (parameter.type != ParameterType::any) {
        type["type"] = key(to_string(parameter.type));
    }
    if (is_numeric(parameter.type)) {
        if (!parameter.minimum.is_null()) {
            type["minimum"] = parameter.minimum;
        }
        if (!parameter.maximum.is_null()) {
            type["maximum"] = parameter.maximum;
        }
    }
    if (parameter.choices != nullptr && parameter.choices->size() <= kParameterChoicesShown) {
        type["enum"] = *parameter.choices;
    }
    if (parameter.may_be_random && is_numeric(parameter.type)) {
        about["anyOf"] = json::array{
            std::move(type), json::object{{"type", "string"}, {"enum", json::array{"random"}}}
        };
    } else {
        for (auto& member : type) {
            about[member.key()] = std::move(member.value());
        }
    }
    const json::value* otherwise = json::find(*parameter.declared, "default");
    otherwise = otherwise != nullptr || parameter.required ? otherwise : parameter.value;
    if (otherwise != nullptr) {
        about["default"] = *otherwise;
    }
    return about;
}

json::object ParameterSchema::to_json() const {
    json::object properties;
    json::array required;
    for (const Parameter& parameter : parameters_) {
        properties[parameter.name] = describe(parameter);
        if (parameter.required) {
            required.emplace_back(parameter.name);
        }
    }
    json::object schema;
    schema["type"] = "object";
    schema["properties"] = std::move(properties);
    if (!required.empty()) {
        schema["required"] = std::move(required);
    }
    schema["additionalProperties"] = false;
    return schema;
}

}  // namespace comfyd::workflow
