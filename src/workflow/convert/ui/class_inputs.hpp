// The inputs of a node class as ComfyUI's editor sees them: which of them are widgets, in which
// order, and what a widget holds before anybody touched it. Everything points into the definition
// and lives as long as it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/catalogue/definition.hpp"

namespace comfyd::workflow::ui {

struct InputSpec {
    std::string name;    // flat, as in prompts
    std::string type;    // of the socket
    std::string widget;  // the kind of widget; empty: only a socket
    const json::object* options = nullptr;
    const json::array* choices = nullptr;
    bool force_input = false;  // would be a widget, but the class wants a link
    bool socketless = false;
    bool grows = false;  // stands for the inputs "name.…" that a node happens to have

    bool is_combo() const { return widget == "COMBO" || is_dynamic_combo(); }
    bool is_dynamic_combo() const { return widget == "COMFY_DYNAMICCOMBO_V3"; }
    // A widget that says how the value changes between runs follows it.
    bool has_control() const;
    bool asks_for_control() const;  // by an option of its own
};

// In the order of the editor's widgets.
std::vector<InputSpec> read_specs(const NodeDefinition& definition);
// Those that come with one choice of a dynamic combo; none for a choice that is not offered.
std::vector<InputSpec> specs_of_choice(const InputSpec& combo, const json::value& choice);

// nullopt: no value, so the input is left out.
std::optional<json::value> default_value(const InputSpec& spec);
// What a combo holds where there is nothing else.
std::optional<json::value> first_choice(const InputSpec& spec);

}  // namespace comfyd::workflow::ui
