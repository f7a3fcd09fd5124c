// Which variables hold what nobody else may see, as far as their names tell.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace comfyd {

inline bool names_secret(std::string_view variable) {
    constexpr std::array<std::string_view, 6> kWords{
        "TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL", "AUTH"
    };
    std::string name(variable);
    std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return std::ranges::any_of(kWords, [&name](std::string_view word) {
        return name.find(word) != std::string::npos;
    });
}

}  // namespace comfyd
