#include "assets/links.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::assets {
namespace {

constexpr std::size_t kExpiresDigitsMax = 12;  // some 30,000 years

std::string signature_of(const std::string& key, const AssetId& id, std::string_view expires) {
    // The first line keeps this signature from being of use anywhere else that signs with the same
    // key.
    std::string text = "comfyd-asset-link\n";
    text += id.to_string();
    text += '\n';
    text += expires;
    return to_hex(hmac_sha256(key, text));
}

}  // namespace

LinkSigner::LinkSigner(std::string key, Millis lifetime)
    : key_(std::move(key)), lifetime_(lifetime) {}

LinkSigner::Link LinkSigner::sign(const AssetId& id, Time now) const {
    const auto expires_at = std::chrono::ceil<std::chrono::seconds>(now + lifetime_);
    const std::string expires = std::to_string(expires_at.time_since_epoch().count());
    return Link{
        "/api/v2/assets/" + id.to_string() + "/content?expires=" + expires +
            "&signature=" + signature_of(key_, id, expires),
        expires_at,
    };
}

bool LinkSigner::verify(
    const AssetId& id, std::string_view expires, std::string_view signature, Time now
) const {
    const bool is_number =
        !expires.empty() && expires.size() <= kExpiresDigitsMax &&
        std::all_of(expires.begin(), expires.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) {
        return false;
    }
    std::int64_t seconds = 0;
    std::from_chars(expires.data(), expires.data() + expires.size(), seconds);
    return equal_constant_time(signature, signature_of(key_, id, expires)) &&
           now < Time(std::chrono::seconds(seconds));
}

}  // namespace comfyd::assets
