#include "workflow/convert/ui/class_inputs.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "workflow/convert/ui/reading.hpp"

namespace comfyd::workflow::ui {
namespace {

constexpr std::array<std::string_view, 20> kWidgetTypes = {
    "INT",        "FLOAT",    "BOOLEAN",      "STRING",         "COMBO",
    "COLOR",      "COLORS",   "BOUNDING_BOX", "BOUNDING_BOXES", "CURVE",
    "RANGE",      "TEXTAREA", "IMAGECOMPARE", "COMPOSITOR",     "PAINTER",
    "VIDEO_EDIT", "MARKDOWN", "WEBCAM",       "AUDIO_RECORD",   "LOAD_3D",
};

bool is_truthy(const json::value& value) {
    switch (value.kind()) {
        case boost::json::kind::null:
            return false;
        case boost::json::kind::bool_:
            return value.get_bool();
        case boost::json::kind::string:
            return !value.get_string().empty();
        case boost::json::kind::int64:
        case boost::json::kind::uint64:
        case boost::json::kind::double_:
            return value.to_number<double>() != 0;
        default:
            return true;
    }
}

const json::value* option(const InputSpec& spec, std::string_view key) {
    return spec.options != nullptr ? json::find(*spec.options, key) : nullptr;
}

bool is_set(const InputSpec& spec, std::string_view key) {
    const json::value* found = option(spec, key);
    return found != nullptr && is_truthy(*found);
}

void set_type(InputSpec& spec, const json::value& type) {
    if (type.is_array()) {
        spec.type = "COMBO";
        spec.choices = &type.get_array();
        return;
    }
    spec.type = type.is_string() ? std::string(view(type.get_string())) : "*";
    if (spec.type == "COMBO" || spec.type == "COMFY_DYNAMICCOMBO_V3") {
        const json::value* choices = option(spec, "options");
        spec.choices = choices != nullptr ? choices->if_array() : nullptr;
    } else if (spec.type == "COMFY_MATCHTYPE_V3") {
        const json::value* form = option(spec, "template");
        const json::value* allowed = form != nullptr && form->is_object()
                                         ? json::find(form->get_object(), "allowed_types")
                                         : nullptr;
        spec.type = allowed != nullptr && allowed->is_string()
                        ? std::string(view(allowed->get_string()))
                        : "*";
    }
    spec.grows = spec.type == "COMFY_AUTOGROW_V3" || spec.type == "COMFY_DYNAMICSLOT_V3";
}

InputSpec read_spec(std::string name, const json::value& config) {
    InputSpec spec;
    spec.name = std::move(name);
    spec.type = "*";
    const json::array* pair = config.if_array();
    if (pair == nullptr || pair->empty()) {
        return spec;
    }
    if (pair->size() > 1) {
        spec.options = (*pair)[1].if_object();
    }
    set_type(spec, pair->front());
    std::string kind = spec.type;
    if (const json::value* wanted = option(spec, "widgetType");
        wanted != nullptr && wanted->is_string()) {
        kind = std::string(view(wanted->get_string()));
    }
    spec.force_input = is_set(spec, "forceInput");
    spec.socketless = is_set(spec, "socketless");
    if (!spec.force_input && (kind == "COMFY_DYNAMICCOMBO_V3" ||
                              std::ranges::find(kWidgetTypes, kind) != kWidgetTypes.end())) {
        spec.widget = std::move(kind);
    }
    return spec;
}

// `order`: as in /object_info's input_order, which a JSON library may not keep in the object
// itself.
void read_section(
    const json::object& sections,
    std::string_view section,
    const json::object* order,
    const std::string& prefix,
    std::vector<InputSpec>& into
) {
    const json::value* found = json::find(sections, section);
    const json::object* inputs = found != nullptr ? found->if_object() : nullptr;
    if (inputs == nullptr) {
        return;
    }
    std::unordered_set<std::string_view> done;
    const json::value* listed = order != nullptr ? json::find(*order, section) : nullptr;
    if (listed != nullptr && listed->is_array()) {
        for (const json::value& name : listed->get_array()) {
            const json::value* config =
                name.is_string() ? inputs->if_contains(name.get_string()) : nullptr;
            if (config != nullptr && done.insert(view(name.get_string())).second) {
                into.push_back(read_spec(prefix + std::string(view(name.get_string())), *config));
            }
        }
    }
    for (const auto& entry : *inputs) {
        if (!done.contains(view(entry.key()))) {
            into.push_back(read_spec(prefix + std::string(view(entry.key())), entry.value()));
        }
    }
}

const json::object* sections_of(const NodeDefinition& definition) {
    const json::value* input = json::find(definition.info(), "input");
    return input != nullptr ? input->if_object() : nullptr;
}

}  // namespace

bool InputSpec::asks_for_control() const {
    const json::value* wanted = option(*this, "control_after_generate");
    return wanted != nullptr && is_truthy(*wanted);
}

bool InputSpec::has_control() const {
    if (widget != "INT" && widget != "FLOAT" && widget != "COMBO") {
        return false;
    }
    if (option(*this, "control_after_generate") != nullptr) {
        return asks_for_control();
    }
    return widget == "INT" && (name == "seed" || name == "noise_seed");
}

std::vector<InputSpec> read_specs(const NodeDefinition& definition) {
    std::vector<InputSpec> specs;
    if (const json::object* sections = sections_of(definition)) {
        const json::value* listed = json::find(definition.info(), "input_order");
        const json::object* order = listed != nullptr ? listed->if_object() : nullptr;
        read_section(*sections, "required", order, "", specs);
        read_section(*sections, "optional", order, "", specs);
    }
    // The editor's viewers of 3D models bring an input that the class does not declare.
    if (definition.name() == "Preview3D" || definition.name() == "SaveGLB") {
        InputSpec viewer;
        viewer.name = "image";
        viewer.type = viewer.widget = "PREVIEW_3D";
        specs.push_back(std::move(viewer));
    }
    return specs;
}

std::vector<InputSpec> specs_of_choice(const InputSpec& combo, const json::value& choice) {
    std::vector<InputSpec> specs;
    if (combo.choices == nullptr) {
        return specs;
    }
    for (const json::value& offered : *combo.choices) {
        const json::object* fields = offered.if_object();
        const json::value* key = fields != nullptr ? fields->if_contains("key") : nullptr;
        if (key == nullptr || *key != choice) {
            continue;
        }
        const json::value* inputs = json::find(*fields, "inputs");
        if (inputs != nullptr && inputs->is_object()) {
            read_section(inputs->get_object(), "required", nullptr, combo.name + ".", specs);
            read_section(inputs->get_object(), "optional", nullptr, combo.name + ".", specs);
        }
        break;
    }
    return specs;
}

std::optional<json::value> first_choice(const InputSpec& spec) {
    if (spec.choices == nullptr || spec.choices->empty()) {
        return std::nullopt;
    }
    const json::value& first = spec.choices->front();
    if (spec.is_dynamic_combo()) {
        const json::object* fields = first.if_object();
        const json::value* key = fields != nullptr ? fields->if_contains("key") : nullptr;
        return key != nullptr ? std::optional<json::value>(*key) : std::nullopt;
    }
    return first;
}

std::optional<json::value> default_value(const InputSpec& spec) {
    const json::value* given = option(spec, "default");
    if (spec.is_combo()) {
        return given != nullptr && is_truthy(*given) ? std::optional<json::value>(*given)
                                                     : first_choice(spec);
    }
    if (spec.widget == "IMAGECOMPARE") {
        return json::array{"", ""};
    }
    if (given != nullptr) {
        return *given;
    }
    if (spec.widget == "INT" || spec.widget == "FLOAT") {
        return 0;
    }
    if (spec.widget == "BOOLEAN") {
        return false;
    }
    if (spec.widget == "COLOR") {
        return "#000000";
    }
    if (spec.widget == "COLORS" || spec.widget == "BOUNDING_BOXES") {
        return json::array();
    }
    if (spec.widget == "BOUNDING_BOX") {
        return json::object{{"x", 0}, {"y", 0}, {"width", 512}, {"height", 512}};
    }
    if (spec.widget == "CURVE") {
        return json::object{
            {"points", json::array{json::array{0, 0}, json::array{1, 1}}},
            {"interpolation", "monotone_cubic"}
        };
    }
    if (spec.widget == "STRING" || spec.widget == "TEXTAREA" || spec.widget == "MARKDOWN" ||
        spec.widget == "PREVIEW_3D") {
        return "";
    }
    return std::nullopt;
}

}  // namespace comfyd::workflow::ui
