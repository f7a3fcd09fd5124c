// For tests of tokens: an issuer's private keys, made by OpenSSL, their public halves as JWK, and
// tokens that are right until a test changes them.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "auth/jwt/base64url.hpp"
#include "base/crypto.hpp"
#include "base/json.hpp"

namespace comfyd::auth::jwt::test {

class Signer {
public:
    enum class Kind { rsa, weak_rsa, p256, p384, p521, ed25519 };

    Signer(Kind kind, std::string kid) : kind_(kind), kid_(std::move(kid)) {
        key_.reset(
            kind == Kind::rsa        ? EVP_RSA_gen(2048)
            : kind == Kind::weak_rsa ? EVP_RSA_gen(1024)
            : kind == Kind::p256     ? EVP_EC_gen("P-256")
            : kind == Kind::p384     ? EVP_EC_gen("P-384")
            : kind == Kind::p521     ? EVP_EC_gen("P-521")
                                     : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"),
            EVP_PKEY_free
        );
    }

    std::string algorithm() const {
        return kind_ == Kind::p256      ? "ES256"
               : kind_ == Kind::p384    ? "ES384"
               : kind_ == Kind::p521    ? "ES512"
               : kind_ == Kind::ed25519 ? "EdDSA"
                                        : "RS256";
    }

    json::object jwk() const {
        json::object made{{"kid", kid_}, {"use", "sig"}};
        if (kind_ == Kind::ed25519) {
            made["kty"] = "OKP";
            made["crv"] = "Ed25519";
            std::string raw(32, '\0');
            std::size_t size = raw.size();
            EVP_PKEY_get_raw_public_key(
                key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size
            );
            made["x"] = to_base64url(raw);
        } else if (kind_ == Kind::rsa || kind_ == Kind::weak_rsa) {
            made["kty"] = "RSA";
            made["n"] = to_base64url(number(OSSL_PKEY_PARAM_RSA_N, 0));
            made["e"] = to_base64url(number(OSSL_PKEY_PARAM_RSA_E, 0));
        } else {
            made["kty"] = "EC";
            made["crv"] = kind_ == Kind::p256 ? "P-256" : kind_ == Kind::p384 ? "P-384" : "P-521";
            made["x"] = to_base64url(number(OSSL_PKEY_PARAM_EC_PUB_X, coordinate_bytes()));
            made["y"] = to_base64url(number(OSSL_PKEY_PARAM_EC_PUB_Y, coordinate_bytes()));
        }
        return made;
    }

    std::string pem() const {
        const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
        PEM_write_bio_PUBKEY(out.get(), key_.get());
        char* text = nullptr;
        const long size = BIO_get_mem_data(out.get(), &text);
        return {text, static_cast<std::size_t>(size)};
    }

    std::string sign(const std::string& text) const {
        const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
            EVP_MD_CTX_new(), EVP_MD_CTX_free
        );
        const EVP_MD* digest = kind_ == Kind::ed25519 ? nullptr
                               : kind_ == Kind::p384  ? EVP_sha384()
                               : kind_ == Kind::p521  ? EVP_sha512()
                                                      : EVP_sha256();
        EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key_.get());
        std::size_t size = 1024;
        std::string signature(size, '\0');
        const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
        EVP_DigestSign(
            context.get(),
            reinterpret_cast<unsigned char*>(signature.data()),
            &size,
            bytes,
            text.size()
        );
        signature.resize(size);
        return coordinate_bytes() > 0 ? from_der(signature) : signature;
    }

    std::string token(const json::object& claims, json::object header = {}) const {
        if (!header.contains("alg")) {
            header["alg"] = algorithm();
        }
        if (!header.contains("kid")) {
            header["kid"] = kid_;
        }
        const std::string text =
            to_base64url(json::serialize(header)) + "." + to_base64url(json::serialize(claims));
        return text + "." + to_base64url(sign(text));
    }

private:
    std::size_t coordinate_bytes() const {
        return kind_ == Kind::p256 ? 32 : kind_ == Kind::p384 ? 48 : kind_ == Kind::p521 ? 66 : 0;
    }
    static std::string padded(const BIGNUM* number, std::size_t size) {
        std::string bytes(size == 0 ? static_cast<std::size_t>(BN_num_bytes(number)) : size, '\0');
        BN_bn2binpad(
            number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())
        );
        return bytes;
    }
    std::string number(const char* name, std::size_t size) const {
        BIGNUM* found = nullptr;
        EVP_PKEY_get_bn_param(key_.get(), name, &found);
        const std::unique_ptr<BIGNUM, decltype(&BN_free)> owned(found, BN_free);
        return padded(found, size);
    }
    std::string from_der(const std::string& der) const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
        const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(
            d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size())), ECDSA_SIG_free
        );
        return padded(ECDSA_SIG_get0_r(pair.get()), coordinate_bytes()) +
               padded(ECDSA_SIG_get0_s(pair.get()), coordinate_bytes());
    }

    Kind kind_;
    std::string kid_;
    std::shared_ptr<EVP_PKEY> key_;
};

// By HS256, of whatever is given as the two parts.
inline std::string hs_token(
    const std::string& secret, const std::string& header, const std::string& claims
) {
    const std::string text = to_base64url(header) + "." + to_base64url(claims);
    const Digest digest = hmac_sha256(secret, text);
    return text + "." + to_base64url({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace comfyd::auth::jwt::test
