// Internal to the cache of models: how its notes are read, and what a link is. Pure, but for the
// link.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/json.hpp"

namespace comfyd::models {

// A member that is an object, made where there is none.
inline json::object& section(json::object& index, std::string_view name) {
    json::value& member = index[boost::json::string_view(name.data(), name.size())];
    if (!member.is_object()) {
        member = json::object();
    }
    return member.get_object();
}

inline const json::object* find_section(const json::object& index, std::string_view name) {
    const json::value* member = json::find(index, name);
    return member == nullptr ? nullptr : member->if_object();
}

inline const json::object* find_content(const json::object& index, const std::string& sha256) {
    const json::object* contents = find_section(index, "contents");
    return contents == nullptr ? nullptr : find_section(*contents, sha256);
}

inline std::vector<std::string> texts_of(const json::object* in, std::string_view name) {
    std::vector<std::string> texts;
    const json::value* list = in == nullptr ? nullptr : json::find(*in, name);
    if (list != nullptr && list->is_array()) {
        for (const json::value& item : list->get_array()) {
            if (item.is_string()) {
                texts.emplace_back(item.get_string());
            }
        }
    }
    return texts;
}

inline bool leads_to(const std::filesystem::path& link, const std::filesystem::path& content) {
    std::error_code error;
    return std::filesystem::read_symlink(link, error) == content && !error;
}

}  // namespace comfyd::models
