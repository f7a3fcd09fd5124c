#include "base/sealing.hpp"

#include <openssl/evp.h>

#include <climits>
#include <memory>

#include "base/assert.hpp"

namespace comfyd {
namespace {

constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::string_view kPurpose = "comfyd/sealing";

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

Context make_context() {
    return {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free};
}

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text, std::size_t from) {
    return reinterpret_cast<unsigned char*>(text.data() + from);
}

}  // namespace

Sealing::Sealing(std::string_view secret) : key_(hmac_sha256(secret, kPurpose)) {}

// A nonce, the text, a tag. Nonces are random: of so few texts as are ever sealed with one secret,
// no two have the same.
std::string Sealing::seal(std::string_view text, std::string_view label) const {
    COMFYD_ASSERT(text.size() < INT_MAX && label.size() < INT_MAX);
    std::string sealed(kNonceBytes + text.size() + kTagBytes, '\0');
    random_bytes(sealed.data(), kNonceBytes);
    const Context context = make_context();
    int length = 0;
    const bool is_done =
        EVP_EncryptInit_ex(
            context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), bytes_of(sealed)
        ) == 1 &&
        EVP_EncryptUpdate(
            context.get(), nullptr, &length, bytes_of(label), static_cast<int>(label.size())
        ) == 1 &&
        EVP_EncryptUpdate(
            context.get(),
            bytes_of(sealed, kNonceBytes),
            &length,
            bytes_of(text),
            static_cast<int>(text.size())
        ) == 1 &&
        EVP_EncryptFinal_ex(context.get(), bytes_of(sealed, kNonceBytes + text.size()), &length) ==
            1 &&
        EVP_CIPHER_CTX_ctrl(
            context.get(),
            EVP_CTRL_GCM_GET_TAG,
            kTagBytes,
            bytes_of(sealed, kNonceBytes + text.size())
        ) == 1;
    COMFYD_ASSERT(is_done);
    return sealed;
}

std::optional<std::string> Sealing::open(std::string_view sealed, std::string_view label) const {
    if (sealed.size() < kNonceBytes + kTagBytes || sealed.size() >= INT_MAX) {
        return std::nullopt;
    }
    const std::string_view hidden =
        sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
    std::string tag(sealed.substr(kNonceBytes + hidden.size()));
    std::string text(hidden.size(), '\0');
    const Context context = make_context();
    int length = 0;
    const bool is_sound =
        EVP_DecryptInit_ex(
            context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), bytes_of(sealed)
        ) == 1 &&
        EVP_DecryptUpdate(
            context.get(), nullptr, &length, bytes_of(label), static_cast<int>(label.size())
        ) == 1 &&
        EVP_DecryptUpdate(
            context.get(),
            bytes_of(text, 0),
            &length,
            bytes_of(hidden),
            static_cast<int>(hidden.size())
        ) == 1 &&
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, bytes_of(tag, 0)) ==
            1 &&
        EVP_DecryptFinal_ex(context.get(), bytes_of(text, 0) + text.size(), &length) == 1;
    return is_sound ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace comfyd
