// Elements of lists in answers of others. Pure.
#pragma once

#include <span>
#include <string_view>

#include "comfy/members.hpp"

namespace comfyd::fleet {

// None where it is no list.
inline std::span<const json::value> elements_of(const json::value& list) {
    const json::array* all = list.if_array();
    return all != nullptr ? std::span(all->data(), all->size()) : std::span<const json::value>();
}
inline std::span<const json::value> elements_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr ? elements_of(*found) : std::span<const json::value>();
}

}  // namespace comfyd::fleet
