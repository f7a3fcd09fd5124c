#include "base/id.hpp"

#include "base/crypto.hpp"
#include "base/mutex.hpp"

namespace comfyd {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool is_dash_position(std::size_t i) {
    return i == 8 || i == 13 || i == 18 || i == 23;
}

void set_version(Uuid& id, int version) {
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0F) | (version << 4));
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3F) | 0x80);
}

}  // namespace

Uuid Uuid::make(Time now) {
    // Within one millisecond the 12 bits after the version count up; when they run out the
    // millisecond itself is advanced (RFC 9562, section 6.2, method 1).
    static Mutex mutex;
    static std::uint64_t last_ms COMFYD_GUARDED_BY(mutex) = 0;
    static std::uint32_t counter COMFYD_GUARDED_BY(mutex) = 0;

    Uuid id;
    random_bytes(id.bytes.data(), id.bytes.size());
    std::uint64_t ms = static_cast<std::uint64_t>(to_unix_ms(now));
    std::uint32_t count = 0;
    {
        const Lock lock(mutex);
        if (ms > last_ms) {
            last_ms = ms;
            counter = id.bytes[7] & 0x7FU;  // a random start keeps ids hard to guess
        } else if (++counter > 0xFFFU) {
            ++last_ms;
            counter = 0;
        }
        ms = last_ms;
        count = counter;
    }
    for (int i = 0; i < 6; ++i) {
        id.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
    }
    id.bytes[6] = static_cast<std::uint8_t>(count >> 8);
    id.bytes[7] = static_cast<std::uint8_t>(count);
    set_version(id, 7);
    return id;
}

Uuid Uuid::derive(const Uuid& name_space, std::string_view name) {
    std::string input(reinterpret_cast<const char*>(name_space.bytes.data()), 16);
    input += name;
    const auto digest = sha256(input);
    Uuid id;
    std::memcpy(id.bytes.data(), digest.data(), 16);
    set_version(id, 8);
    return id;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
    if (text.size() != 36) {
        return std::nullopt;
    }
    Uuid id;
    std::size_t byte = 0;
    for (std::size_t i = 0; i < 36;) {
        if (is_dash_position(i)) {
            if (text[i] != '-') {
                return std::nullopt;
            }
            ++i;
            continue;
        }
        const int high = hex_value(text[i]);
        const int low = hex_value(text[i + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        id.bytes[byte++] = static_cast<std::uint8_t>(high << 4 | low);
        i += 2;
    }
    return id;
}

std::string Uuid::to_string() const {
    std::string text(36, '-');
    std::size_t at = 0;
    for (const std::uint8_t byte : bytes) {
        if (is_dash_position(at)) {
            ++at;
        }
        text[at++] = kHex[byte >> 4];
        text[at++] = kHex[byte & 0x0F];
    }
    return text;
}

}  // namespace comfyd
