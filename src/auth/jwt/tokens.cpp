#include "auth/jwt/tokens.hpp"

#include <algorithm>
#include <utility>

#include "auth/digest.hpp"

namespace comfyd::auth {

bool looks_like_token(std::string_view credential) {
    return std::ranges::count(credential, '.') == 2 && credential.starts_with("ey");
}

Tokens::Tokens(Options options, jwt::IssuerKeys* issuer, Clock& clock)
    : options_(std::move(options)), issuer_(issuer), clock_(clock) {}

std::uint64_t Tokens::key_version() const {
    const auto keys = issuer_ != nullptr ? issuer_->now() : nullptr;
    return keys ? keys->version : 0;
}

Task<Result<Caller>> Tokens::verify(std::string_view text, Digest digest) const {
    Shelf& shelf = shelves_[digest[0] % kShelves];
    const Time now = clock_.now();
    const std::uint64_t version = key_version();
    {
        const Lock lock(shelf.mutex);
        const Remembered* known = shelf.tokens.find(bytes_of(digest));
        if (known != nullptr && now < known->good_until && known->key_version == version) {
            co_return known->caller;
        }
    }
    const auto token = jwt::parse_token(text);
    if (!token) {
        co_return fail(token.error());
    }
    auto signed_well = co_await check_signature(*token);
    if (!signed_well) {
        co_return fail(std::move(signed_well.error()));
    }
    auto judged = jwt::judge_claims(token->claims, options_.claims, clock_.now());
    if (!judged) {
        co_return fail(std::move(judged.error()));
    }
    const Lock lock(shelf.mutex);
    shelf.tokens.use(bytes_of(digest)) = {judged->caller, judged->good_until, key_version()};
    co_return std::move(judged->caller);
}

Task<Result<>> Tokens::check_signature(const jwt::Token& token) const {
    if (token.algorithm == jwt::Algorithm::hs256) {
        const bool is_ours =
            options_.secret.size() >= kSecretBytesMin &&
            equal_constant_time(
                bytes_of(hmac_sha256(options_.secret, token.signed_text)), token.signature
            );
        co_return is_ours ? Result<>() : jwt::invalid_token("its signature is not good");
    }
    if (issuer_ == nullptr) {
        co_return jwt::invalid_token("its algorithm is not accepted");
    }
    auto checked = co_await issuer_->check_signature(token);
    co_return checked;
}

}  // namespace comfyd::auth
