#include "auth/jwt/key_set.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <array>
#include <optional>
#include <utility>

#include "auth/jwt/base64url.hpp"
#include "base/json_unique.hpp"
#include "base/text.hpp"

namespace comfyd::auth::jwt {
namespace {

constexpr std::size_t kKeysMax = 100;
constexpr std::size_t kKidBytesMax = 256;
constexpr int kRsaBitsMin = 2048;
constexpr int kRsaBitsMax = 8192;
constexpr unsigned long kRsaExponentMin = 65'537;
constexpr std::size_t kEd25519Bytes = 32;

struct Free {
    void operator()(BIGNUM* number) const { BN_free(number); }
    void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
    void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
    void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;
using KeyPtr = std::shared_ptr<EVP_PKEY>;

const unsigned char* bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

std::string text_of(const json::object& in, std::string_view name) {
    const auto found = json::find_string(in, name);
    return found && *found ? **found : std::string();
}

std::optional<std::string> bytes_of(const json::object& in, std::string_view name) {
    auto decoded = from_base64url(text_of(in, name));
    return decoded && !decoded->empty() ? std::move(decoded) : std::nullopt;
}

Owned<BIGNUM> number_of(std::string_view big_endian) {
    return Owned<BIGNUM>(BN_bin2bn(bytes(big_endian), static_cast<int>(big_endian.size()), nullptr)
    );
}

KeyPtr build(const char* type, OSSL_PARAM_BLD* builder) {
    const Owned<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder));
    const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
    EVP_PKEY* made = nullptr;
    const bool is_made =
        parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1 &&
        EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters.get()) == 1;
    KeyPtr key(made, EVP_PKEY_free);
    return is_made ? key : nullptr;
}

// OpenSSL takes an exponent of 1, with which anybody signs.
KeyPtr read_rsa(const json::object& jwk) {
    const auto modulus = bytes_of(jwk, "n");
    const auto exponent = bytes_of(jwk, "e");
    if (!modulus || !exponent || modulus->size() > kRsaBitsMax / 8 || exponent->size() > 8) {
        return nullptr;
    }
    const auto n = number_of(*modulus);
    const auto e = number_of(*exponent);
    const int bits = BN_num_bits(n.get());
    if (bits < kRsaBitsMin || bits > kRsaBitsMax || !BN_is_odd(n.get()) || !BN_is_odd(e.get()) ||
        BN_get_word(e.get()) < kRsaExponentMin) {
        return nullptr;
    }
    const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
    return build("RSA", builder.get());
}

struct Curve {
    std::string_view name;  // as a JWK has it
    const char* group;
    std::size_t coordinate_bytes;
    Algorithm algorithm;
};
constexpr std::array<Curve, 3> kCurves{{
    {"P-256", "prime256v1", 32, Algorithm::es256},
    {"P-384", "secp384r1", 48, Algorithm::es384},
    {"P-521", "secp521r1", 66, Algorithm::es512},
}};

template <class Matches>
const Curve* find_curve(Matches matches) {
    const auto found = std::ranges::find_if(kCurves, matches);
    return found == kCurves.end() ? nullptr : &*found;
}

KeyPtr read_ec(const json::object& jwk, const Curve& curve) {
    const auto x = bytes_of(jwk, "x");
    const auto y = bytes_of(jwk, "y");
    if (!x || !y || x->size() != curve.coordinate_bytes || y->size() != curve.coordinate_bytes) {
        return nullptr;
    }
    const std::string point = "\x04" + *x + *y;  // not compressed
    const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
    OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0);
    OSSL_PARAM_BLD_push_octet_string(
        builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()
    );
    KeyPtr key = build("EC", builder.get());
    const Owned<EVP_PKEY_CTX> check(key ? EVP_PKEY_CTX_new(key.get(), nullptr) : nullptr);
    return check && EVP_PKEY_public_check(check.get()) == 1 ? key : nullptr;
}

// Points of small order, with which a signature of zeros is good for any text. The sign bit is not
// looked at.
bool has_small_order(std::string_view point) {
    constexpr std::array<std::string_view, 3> kHex{
        "0000000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    };
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::array<std::uint8_t, kEd25519Bytes> given{};
    std::ranges::transform(point, given.begin(), [](char c) {
        return static_cast<std::uint8_t>(c);
    });
    given.back() &= 0x7F;
    for (const std::string_view hex : kHex) {
        bool is_it = true;
        for (std::size_t i = 0; i < given.size(); ++i) {
            is_it = is_it && given[i] == digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]);
        }
        if (is_it) {
            return true;
        }
    }
    // 1, and p - 1, p, p + 1, which are 0xEC to 0xEE and 0xFF up to the last byte, 0x7F.
    const auto all = [&given](std::uint8_t middle, std::uint8_t last) {
        return std::all_of(
                   given.begin() + 1,
                   given.end() - 1,
                   [middle](std::uint8_t byte) { return byte == middle; }
               ) &&
               given.back() == last;
    };
    return (given[0] == 1 && all(0, 0)) ||
           (given[0] >= 0xEC && given[0] <= 0xEE && all(0xFF, 0x7F));
}

KeyPtr read_ed25519(const json::object& jwk) {
    const auto point = bytes_of(jwk, "x");
    if (!point || point->size() != kEd25519Bytes || has_small_order(*point)) {
        return nullptr;
    }
    return KeyPtr(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes(*point), point->size()),
        EVP_PKEY_free
    );
}

std::optional<PublicKey> read_key(const json::object& jwk) {
    const std::string type = text_of(jwk, "kty");
    const std::string curve_name = text_of(jwk, "crv");
    std::string kid = text_of(jwk, "kid");
    if (text_of(jwk, "use") == "enc" || kid.size() > kKidBytesMax) {
        return std::nullopt;
    }
    KeyPtr key;
    Algorithm algorithm = Algorithm::rs256;
    if (type == "RSA") {
        key = read_rsa(jwk);
    } else if (type == "EC") {
        const Curve* curve = find_curve([&](const Curve& one) { return one.name == curve_name; });
        key = curve != nullptr ? read_ec(jwk, *curve) : nullptr;
        algorithm = curve != nullptr ? curve->algorithm : algorithm;
    } else if (type == "OKP" && curve_name == "Ed25519") {
        key = read_ed25519(jwk);
        algorithm = Algorithm::eddsa;
    }
    ERR_clear_error();
    const std::string named = text_of(jwk, "alg");
    if (!key || (!named.empty() && parse_algorithm(named) != algorithm)) {
        return std::nullopt;
    }
    return PublicKey(std::move(kid), algorithm, std::move(key));
}

// r and s side by side, as tokens have them, in the form that OpenSSL reads. Empty: they are not of
// the curve's length.
std::string to_der(std::string_view signature, std::size_t coordinate_bytes) {
    if (signature.size() != 2 * coordinate_bytes) {
        return {};
    }
    const Owned<ECDSA_SIG> pair(ECDSA_SIG_new());
    ECDSA_SIG_set0(
        pair.get(),
        number_of(signature.substr(0, coordinate_bytes)).release(),
        number_of(signature.substr(coordinate_bytes)).release()
    );
    unsigned char* encoded = nullptr;
    const int size = i2d_ECDSA_SIG(pair.get(), &encoded);
    std::string der(
        reinterpret_cast<const char*>(encoded), size > 0 ? static_cast<std::size_t>(size) : 0
    );
    OPENSSL_free(encoded);
    return der;
}

const EVP_MD* digest_of(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::es384:
            return EVP_sha384();
        case Algorithm::es512:
            return EVP_sha512();
        case Algorithm::eddsa:
            return nullptr;
        default:
            return EVP_sha256();
    }
}

}  // namespace

bool PublicKey::has_signed(std::string_view text, std::string_view signature) const {
    const Curve* curve =
        find_curve([this](const Curve& one) { return one.algorithm == algorithm_; });
    const std::string der = curve != nullptr ? to_der(signature, curve->coordinate_bytes) : "";
    const std::string_view shown = curve != nullptr ? std::string_view(der) : signature;
    const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
    const bool is_good =
        !shown.empty() &&
        EVP_DigestVerifyInit(context.get(), nullptr, digest_of(algorithm_), nullptr, key_.get()) ==
            1 &&
        EVP_DigestVerify(context.get(), bytes(shown), shown.size(), bytes(text), text.size()) == 1;
    ERR_clear_error();
    return is_good;
}

Result<KeySet> KeySet::parse(std::string_view document) {
    const auto parsed = json::parse_unique_object(document);
    const auto listed = parsed ? json::find_array(*parsed, "keys") : fail(parsed.error());
    if (!listed || *listed == nullptr) {
        return fail(Code::protocol_error, "the issuer's key set is not {\"keys\": [...]}");
    }
    if ((*listed)->size() > kKeysMax) {
        return fail(Code::protocol_error, "the issuer's key set has more than 100 keys");
    }
    KeySet set;
    for (const json::value& jwk : **listed) {
        auto key = jwk.is_object() ? read_key(jwk.get_object()) : std::nullopt;
        if (key) {
            set.keys_.push_back(std::move(*key));
        }
    }
    return set;
}

const PublicKey* KeySet::find(std::string_view kid, Algorithm algorithm) const {
    const PublicKey* found = nullptr;
    for (const PublicKey& key : keys_) {
        if (key.algorithm() == algorithm && (kid.empty() || key.kid() == kid)) {
            if (found != nullptr) {
                return nullptr;
            }
            found = &key;
        }
    }
    return found;
}

}  // namespace comfyd::auth::jwt
