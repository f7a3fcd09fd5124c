// Hashes, signatures, random bytes and their text forms, over OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace comfyd {

using Digest = std::array<std::uint8_t, 32>;

void random_bytes(void* into, std::size_t count);
Digest sha256(std::string_view data);
Digest hmac_sha256(std::string_view key, std::string_view data);
// Takes the same time whatever differs.
bool equal_constant_time(std::string_view a, std::string_view b);

std::string to_hex(const void* data, std::size_t count);
std::string to_hex(const Digest& digest);
std::string to_base64(std::string_view data);
// Standard alphabet, padding optional; nullopt when anything else is in it.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace comfyd
