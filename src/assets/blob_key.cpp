#include "assets/blob_key.hpp"

#include <algorithm>
#include <charconv>

#include "assets/blake3.hpp"
#include "base/crypto.hpp"

namespace comfyd::assets {
namespace {

constexpr std::string_view kHashPrefix = "blake3:";
constexpr std::size_t kFolderDigits = 2;
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kGenerationDigits = 16;
constexpr unsigned kRandomBits = 20;

std::string to_digits(std::uint64_t number) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text(kGenerationDigits, '0');
    for (auto at = text.rbegin(); at != text.rend(); ++at, number >>= 4) {
        *at = kDigits[number & 0xF];
    }
    return text;
}

std::optional<std::uint64_t> to_generation(std::string_view digits) {
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    const bool is_ours = digits.size() == kGenerationDigits && error == std::errc() &&
                         end == digits.data() + digits.size() && number != 0 &&
                         to_digits(number) == digits;
    return is_ours ? std::optional(number) : std::nullopt;
}

}  // namespace

// Milliseconds, then chance: two who store the same bytes at the same moment know nothing of each
// other. Fits in a signed number of 64 bits for as long as anybody will care.
std::uint64_t make_generation(Time now) {
    std::uint32_t chance = 0;
    random_bytes(&chance, sizeof chance);
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    const auto at = static_cast<std::uint64_t>(since > 0 ? since : 0);
    return (at << kRandomBits) | (chance & ((1U << kRandomBits) - 1)) | 1U;
}

Time made_at(std::uint64_t generation) {
    return Time(Millis(static_cast<std::int64_t>(generation >> kRandomBits)));
}

std::string make_blob_key(
    std::string_view hash, std::uint64_t generation, std::string_view folder
) {
    const std::string_view digits = hash.substr(std::min(hash.size(), kHashPrefix.size()));
    std::string key(folder);
    if (!key.empty()) {
        key += '/';
    }
    key += digits.substr(0, kFolderDigits);
    key += '/';
    key += digits.substr(std::min(digits.size(), kFolderDigits));
    if (generation != 0) {
        key += '.' + to_digits(generation);
    }
    return key;
}

std::optional<BlobName> parse_blob_key(std::string_view key) {
    BlobName name;
    const auto slash = key.rfind('/');
    if (const auto dot = key.rfind('.'); dot != std::string_view::npos && dot > slash) {
        const auto generation = to_generation(key.substr(dot + 1));
        if (!generation) {
            return std::nullopt;
        }
        name.generation = *generation;
        key = key.substr(0, dot);
    }
    const std::size_t length = kHashDigits + 1;  // with the slash
    if (key.size() < length || (key.size() > length && key[key.size() - length - 1] != '/')) {
        return std::nullopt;
    }
    const std::string_view last = key.substr(key.size() - length);
    name.folder = key.substr(0, key.size() > length ? key.size() - length - 1 : 0);
    name.hash = kHashPrefix;
    name.hash += last.substr(0, kFolderDigits);
    name.hash += last.substr(kFolderDigits + 1);
    if (last[kFolderDigits] != '/' || !is_blake3_name(name.hash)) {
        return std::nullopt;
    }
    return name;
}

}  // namespace comfyd::assets
