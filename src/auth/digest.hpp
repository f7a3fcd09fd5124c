// The SHA-256 of a key as a value to look up. Pure.
#pragma once

#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "base/crypto.hpp"

namespace comfyd::auth {

inline std::string_view bytes_of(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Of 64 hexadecimal digits in either case; nullopt for anything else.
inline std::optional<Digest> parse_digest(std::string_view hex) {
    const auto value_of = [](char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
    };
    Digest digest{};
    if (hex.size() != 2 * digest.size()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < digest.size(); ++i) {
        const int high = value_of(hex[2 * i]);
        const int low = value_of(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        digest[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return digest;
}

struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept {
        std::size_t first = 0;
        std::memcpy(&first, digest.data(), sizeof first);
        return first;
    }
};

}  // namespace comfyd::auth
