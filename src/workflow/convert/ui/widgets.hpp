// The widgets of one node with the values that a saved workflow gives them. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "workflow/convert/ui/class_inputs.hpp"

namespace comfyd::workflow::ui {

struct Widget {
    std::string name;
    std::string kind;
    const json::object* options = nullptr;
    std::optional<json::value> value;  // nullopt: none, the input is left out
    bool sent = true;
    bool replaces_names = false;  // "%node.widget%" in its text, wherever it is

    bool has_option(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;  // an option
};

// A socket that a node has by its class.
struct SocketSpec {
    static constexpr std::size_t kNoWidget = static_cast<std::size_t>(-1);
    std::string name;
    std::string type;
    std::size_t widget = kNoWidget;
    bool grows = false;
};

struct NodeLayout {
    std::vector<Widget> widgets;
    std::vector<SocketSpec> sockets;
};

// `saved`: the node's widgets_values; nullptr: none.
NodeLayout lay_out(
    const std::string& class_type, const std::vector<InputSpec>& specs, const json::value* saved
);

}  // namespace comfyd::workflow::ui
