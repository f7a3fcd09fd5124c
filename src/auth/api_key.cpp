#include "auth/api_key.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

constexpr std::string_view kPrefix = "ck_live_";
constexpr std::string_view kLetters =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kSecretSize = 32;
constexpr std::size_t kChecksumSize = 6;
constexpr std::size_t kKeySize = kPrefix.size() + kKeyIdSize + kSecretSize + kChecksumSize;

// As zlib and PNG have it.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320U : 0U);
        }
        table[i] = value;
    }
    return table;
}();

std::array<char, kChecksumSize> checksum_of(std::string_view text) {
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const char c : text) {
        crc = kCrcTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xFF] ^ (crc >> 8);
    }
    crc = ~crc;
    std::array<char, kChecksumSize> made{};
    for (auto place = made.rbegin(); place != made.rend(); ++place) {
        *place = kLetters[crc % kLetters.size()];
        crc /= kLetters.size();
    }
    return made;
}

bool is_letter(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Each letter is as likely as any other: bytes beyond the last whole round are thrown away.
std::string random_letters(std::size_t count) {
    constexpr std::size_t kRounds = 256 / kLetters.size() * kLetters.size();
    std::string text;
    while (text.size() < count) {
        std::array<std::uint8_t, 64> bytes{};
        random_bytes(bytes.data(), bytes.size());
        for (const std::uint8_t byte : bytes) {
            if (byte < kRounds && text.size() < count) {
                text += kLetters[byte % kLetters.size()];
            }
        }
    }
    return text;
}

}  // namespace

std::string make_key_id() {
    return random_letters(kKeyIdSize);
}

std::string make_key(std::string_view id) {
    std::string key(kPrefix);
    key.append(id).append(random_letters(kSecretSize));
    const auto checksum = checksum_of(key);
    return key.append(checksum.data(), checksum.size());
}

bool is_key_id(std::string_view text) {
    return text.size() == kKeyIdSize && std::ranges::all_of(text, is_letter);
}

std::optional<std::string_view> id_of_key(std::string_view key) {
    if (key.size() != kKeySize || !key.starts_with(kPrefix) ||
        !std::ranges::all_of(key.substr(kPrefix.size()), is_letter)) {
        return std::nullopt;
    }
    const auto checksum = checksum_of(key.substr(0, kKeySize - kChecksumSize));
    if (key.substr(kKeySize - kChecksumSize) !=
        std::string_view(checksum.data(), checksum.size())) {
        return std::nullopt;
    }
    return key.substr(kPrefix.size(), kKeyIdSize);
}

}  // namespace comfyd::auth
