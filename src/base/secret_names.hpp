// Which variables hold what nobody else may see, as far as their names tell, and texts without it.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

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

// The values of such variables, of lines "NAME=value".
std::vector<std::string> secrets_in(const std::vector<std::string>& environment);

// Each of `secrets` that is long enough to be one becomes "***".
std::string without_secrets(std::string text, const std::vector<std::string>& secrets);

}  // namespace comfyd
