// Tolerant access to members of ComfyUI's documents: a member that is absent or of another type is
// empty.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::comfy {

inline std::optional<std::string> maybe_text(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    if (found == nullptr || !found->is_string()) {
        return std::nullopt;
    }
    return std::string(found->get_string().data(), found->get_string().size());
}

inline std::string text_of(const json::object& in, std::string_view key) {
    return maybe_text(in, key).value_or(std::string());
}

inline std::optional<double> maybe_number(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    if (found == nullptr || !found->is_number()) {
        return std::nullopt;
    }
    return found->to_number<double>();
}

// 0 for what is no number or does not fit.
inline std::int64_t integer_of(const json::object& in, std::string_view key) {
    const auto number = maybe_number(in, key);
    constexpr double kExact = 9'007'199'254'740'992.0;
    if (!number || !std::isfinite(*number) || std::fabs(*number) > kExact) {
        return 0;
    }
    return static_cast<std::int64_t>(*number);
}

inline const json::object* object_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found == nullptr ? nullptr : found->if_object();
}

inline const json::array* array_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found == nullptr ? nullptr : found->if_array();
}

// The strings of a list; other elements are left out.
inline std::vector<std::string> texts_of(const json::object& in, std::string_view key) {
    std::vector<std::string> texts;
    if (const json::array* list = array_of(in, key)) {
        for (const json::value& element : *list) {
            if (element.is_string()) {
                texts.emplace_back(element.get_string().data(), element.get_string().size());
            }
        }
    }
    return texts;
}

}  // namespace comfyd::comfy
