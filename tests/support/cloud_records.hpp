// What the doubles of clouds are written with. Test code only.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"
#include "support/cloud_double.hpp"

namespace comfyd::support {

inline bool count_down(int& left) {
    return left > 0 && left-- > 0;
}

inline std::string text_in(const json::object& in, std::string_view name) {
    const auto found = json::find_string(in, name);
    return found && *found ? **found : std::string();
}

// A step of a machine's life.
inline void step(json::value& status, std::initializer_list<std::string_view> steps) {
    const auto at = std::ranges::find(steps, view(status.as_string()));
    if (at != steps.end() && std::next(at) != steps.end()) {
        status = *std::next(at);
    }
}

inline CloudAnswer as_json(const json::object& body, int status = 200) {
    return {status, json::serialize(body)};
}

}  // namespace comfyd::support
