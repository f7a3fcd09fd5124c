// Members of JSON objects of other nodes: what is absent or of another type is as if it were at
// its default. A node of another version may say less or more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/id.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::cluster {

inline std::string text_in(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

inline std::optional<std::int64_t> number_in(const json::object& from, std::string_view key) {
    return json::find_int(from, key).value_or(std::nullopt);
}

inline std::uint64_t count_in(const json::object& from, std::string_view key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(number_in(from, key).value_or(0), 0));
}

// `fallback`: also where it does not fit.
inline int small_in(const json::object& from, std::string_view key, int fallback) {
    const auto number = number_in(from, key);
    return number && std::in_range<int>(*number) ? static_cast<int>(*number) : fallback;
}

inline bool flag_in(const json::object& from, std::string_view key) {
    return json::find_bool(from, key).value_or(std::nullopt).value_or(false);
}

inline std::optional<Time> time_in(const json::object& from, std::string_view key) {
    const auto ms = number_in(from, key);
    return ms ? std::optional(from_unix_ms(*ms)) : std::nullopt;
}

inline const json::object* object_in(const json::object& from, std::string_view key) {
    return json::find_object(from, key).value_or(nullptr);
}

inline const json::array* list_in(const json::object& from, std::string_view key) {
    return json::find_array(from, key).value_or(nullptr);
}

template <class Tag>
std::optional<Id<Tag>> id_in(const json::object& from, std::string_view key) {
    return Id<Tag>::parse(text_in(from, key));
}

}  // namespace comfyd::cluster
