#include "audit/signing.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/crypto.hpp"

namespace comfyd::audit {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;

struct Freed {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed>;
using Context = std::unique_ptr<EVP_MD_CTX, Freed>;

const std::uint8_t* bytes(std::string_view text) {
    return reinterpret_cast<const std::uint8_t*>(text.data());
}

Key private_key(const std::string& seed) {
    return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes(seed), seed.size()));
}

tl::unexpected<Error> cannot_sign() {
    return fail(Code::internal, "a checkpoint of the audit log cannot be signed");
}

// nullopt: it is not as long as it must be, or no hex.
std::optional<std::string> from_hex(std::string_view hex, std::size_t length) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (hex.size() != 2 * length || hex.find_first_not_of(kDigits) != std::string_view::npos) {
        return std::nullopt;
    }
    std::string made;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        made += static_cast<char>(kDigits.find(hex[i]) * 16 + kDigits.find(hex[i + 1]));
    }
    return made;
}

}  // namespace

Result<Signer> Signer::make(std::string seed) {
    const Key key = seed.size() == kKeyBytes ? private_key(seed) : nullptr;
    std::array<std::uint8_t, kKeyBytes> raw{};
    std::size_t length = raw.size();
    if (!key || EVP_PKEY_get_raw_public_key(key.get(), raw.data(), &length) != 1) {
        return cannot_sign();
    }
    return Signer(std::move(seed), to_hex(raw.data(), length));
}

Result<std::string> Signer::sign(std::string_view text) const {
    const Key key = private_key(seed_);
    const Context context(EVP_MD_CTX_new());
    std::array<std::uint8_t, kSignatureBytes> made{};
    std::size_t length = made.size();
    if (!key || !context ||
        EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), made.data(), &length, bytes(text), text.size()) != 1) {
        return cannot_sign();
    }
    return to_hex(made.data(), length);
}

bool is_signed_by(std::string_view public_key, std::string_view text, std::string_view signature) {
    const auto raw_key = from_hex(public_key, kKeyBytes);
    const auto raw = from_hex(signature, kSignatureBytes);
    if (!raw_key || !raw) {
        return false;
    }
    const Key key(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(*raw_key), raw_key->size())
    );
    const Context context(EVP_MD_CTX_new());
    return key && context &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), bytes(*raw), raw->size(), bytes(text), text.size()) == 1;
}

}  // namespace comfyd::audit
