// What is not known is null in answers. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::api {

template <class T>
json::value or_null(const std::optional<T>& from) {
    return from ? json::value(*from) : json::value(nullptr);
}

inline json::value time_or_null(const std::optional<Time>& time) {
    return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

inline json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value(nullptr) : json::value(text);
}

}  // namespace comfyd::api
