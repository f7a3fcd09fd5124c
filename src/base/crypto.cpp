#include "base/crypto.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <memory>

#include "base/assert.hpp"

namespace comfyd {
namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const unsigned char* bytes_of(std::string_view data) {
    return reinterpret_cast<const unsigned char*>(data.data());
}

// OpenSSL looks an algorithm up by its name, under a lock, for every digest that names it; one that
// was fetched once is used as it is.
const EVP_MD* sha256_algorithm() {
    static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return fetched;
}

// A context that needs only a key to begin.
EVP_MAC_CTX* hmac_context() {
    struct Free {
        void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
    };
    thread_local const auto context = [] {
        static EVP_MAC* const fetched = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
        std::unique_ptr<EVP_MAC_CTX, Free> made(EVP_MAC_CTX_new(fetched));
        char name[] = "SHA256";
        const OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
            OSSL_PARAM_construct_end()
        };
        COMFYD_ASSERT(made && EVP_MAC_CTX_set_params(made.get(), parameters) == 1);
        return made;
    }();
    return context.get();
}

}  // namespace

void random_bytes(void* into, std::size_t count) {
    // One call into OpenSSL per 4 KB instead of per id: its lock would be the hottest of the submit
    // path.
    thread_local std::array<unsigned char, 4096> pool;
    thread_local std::size_t used = pool.size();
    auto* out = static_cast<unsigned char*>(into);
    while (count > 0) {
        if (used == pool.size()) {
            COMFYD_ASSERT(RAND_bytes(pool.data(), static_cast<int>(pool.size())) == 1);
            used = 0;
        }
        *out++ = pool[used];
        pool[used++] = 0;
        --count;
    }
}

Digest sha256(std::string_view data) {
    Digest digest;
    COMFYD_ASSERT(
        EVP_Digest(data.data(), data.size(), digest.data(), nullptr, sha256_algorithm(), nullptr) ==
        1
    );
    return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view data) {
    Digest digest;
    EVP_MAC_CTX* const context = hmac_context();
    if (key.empty()) {
        key = "";  // a null pointer would mean the key of the call before
    }
    std::size_t length = 0;
    COMFYD_ASSERT(EVP_MAC_init(context, bytes_of(key), key.size(), nullptr) == 1);
    COMFYD_ASSERT(EVP_MAC_update(context, bytes_of(data), data.size()) == 1);
    COMFYD_ASSERT(EVP_MAC_final(context, digest.data(), &length, digest.size()) == 1);
    return digest;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(const void* data, std::size_t count) {
    constexpr char kHex[] = "0123456789abcdef";
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    std::string text;
    text.reserve(count * 2);
    for (std::size_t i = 0; i < count; ++i) {
        text += kHex[bytes[i] >> 4];
        text += kHex[bytes[i] & 0x0F];
    }
    return text;
}

std::string to_hex(const Digest& digest) {
    return to_hex(digest.data(), digest.size());
}

std::string to_base64(std::string_view data) {
    std::string text(4 * ((data.size() + 2) / 3) + 1, '\0');
    const int length = EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(text.data()), bytes_of(data), static_cast<int>(data.size())
    );
    text.resize(static_cast<std::size_t>(length));
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    static const auto kValues = [] {
        std::array<std::int8_t, 256> values{};
        values.fill(-1);
        for (int i = 0; i < 64; ++i) {
            values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
        }
        return values;
    }();
    while (!text.empty() && text.back() == '=') {
        text.remove_suffix(1);
    }
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::string data;
    data.reserve(text.size() * 3 / 4);
    std::uint32_t bits = 0;
    int bit_count = 0;
    for (const char c : text) {
        const int value = kValues[static_cast<unsigned char>(c)];
        if (value < 0) {
            return std::nullopt;
        }
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            data += static_cast<char>(bits >> bit_count & 0xFF);
        }
    }
    return data;
}

}  // namespace comfyd
