#include "assets/drive/jwt.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "base/crypto.hpp"

namespace comfyd::assets::drive {
namespace {

std::string to_base64url(std::string_view data) {
    std::string text = to_base64(data);
    while (text.ends_with('=')) {
        text.pop_back();
    }
    for (char& c : text) {
        c = c == '+' ? '-' : (c == '/' ? '_' : c);
    }
    return text;
}

struct Free {
    void operator()(BIO* bio) const { BIO_free(bio); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::unique_ptr<EVP_PKEY, Free> read_key(std::string_view pem) {
    const std::unique_ptr<BIO, Free> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const auto no_password = [](char*, int, int, void*) { return 0; };
    std::unique_ptr<EVP_PKEY, Free> key(
        PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)
    );
    ERR_clear_error();
    return key && EVP_PKEY_base_id(key.get()) == EVP_PKEY_RSA ? std::move(key) : nullptr;
}

}  // namespace

Result<std::string> make_jwt(
    const json::object& header, const json::object& claims, std::string_view private_key
) {
    const auto key = read_key(private_key);
    if (!key) {
        return fail(Code::config_invalid, "the private key of the service account is unusable");
    }
    std::string text =
        to_base64url(json::serialize(header)) + "." + to_base64url(json::serialize(claims));
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    std::size_t size = 0;
    std::string signature;
    bool signs =
        EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
        EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) == 1;
    signature.resize(size);
    auto* const out = reinterpret_cast<unsigned char*>(signature.data());
    signs = signs && EVP_DigestSign(context.get(), out, &size, bytes, text.size()) == 1;
    if (!signs) {
        ERR_clear_error();
        return fail(Code::config_invalid, "the private key of the service account does not sign");
    }
    signature.resize(size);
    return text + "." + to_base64url(signature);
}

}  // namespace comfyd::assets::drive
