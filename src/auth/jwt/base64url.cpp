#include "auth/jwt/base64url.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/crypto.hpp"

namespace comfyd::auth::jwt {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> kValues = [] {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kLetters.size(); ++i) {
        values[static_cast<std::uint8_t>(kLetters[i])] = static_cast<std::int8_t>(i);
    }
    return values;
}();

}  // namespace

std::string to_base64url(std::string_view data) {
    std::string text = to_base64(data);
    text.erase(std::find(text.begin(), text.end(), '='), text.end());
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::string bytes;
    bytes.reserve(text.size() * 3 / 4);
    std::uint32_t held = 0;
    int bits = 0;
    for (const char c : text) {
        const std::int8_t value = kValues[static_cast<std::uint8_t>(c)];
        if (value < 0) {
            return std::nullopt;
        }
        held = held << 6 | static_cast<std::uint32_t>(value);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes += static_cast<char>(held >> bits & 0xFF);
        }
    }
    const std::uint32_t left_over = held & ((1U << bits) - 1);
    return left_over == 0 ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace comfyd::auth::jwt
