// Elements of lists, and numbers, in answers of others. Pure.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
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

// A number, or a text that is one: services write prices either way.
inline std::optional<double> number_in(const json::object& in, std::string_view key) {
    const auto number = comfy::maybe_number(in, key);
    if (number) {
        return std::isfinite(*number) ? number : std::nullopt;
    }
    const std::string text = comfy::text_of(in, key);
    double read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole && std::isfinite(read) ? std::optional(read) : std::nullopt;
}

}  // namespace comfyd::fleet
