// What is done to text in many places. ASCII only. Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <boost/json/string.hpp>

namespace comfyd {

// Boost.JSON's texts and keys as the standard library views them.
inline std::string_view view(boost::json::string_view text) {
    return {text.data(), text.size()};
}

// Without any of `spaces` at its ends.
inline std::string_view trim(std::string_view text, std::string_view spaces = " \t") {
    const auto first = text.find_first_not_of(spaces);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower(std::string_view text) {
    std::string lowered(text);
    std::ranges::transform(lowered, lowered.begin(), [](char c) { return lower(c); });
    return lowered;
}

}  // namespace comfyd
