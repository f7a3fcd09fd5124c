// Tokens and key sets of strangers: nothing crashes, nothing that nobody signed is believed, and
// what can be read has one spelling alone. An input is a token; or a key set and, on the next line,
// a token.
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include "auth/jwt/base64url.hpp"
#include "auth/jwt/claims.hpp"
#include "auth/jwt/key_set.hpp"
#include "auth/jwt/token.hpp"
#include "auth/tenant.hpp"
#include "base/crypto.hpp"

namespace {

using namespace comfyd;
using namespace comfyd::auth::jwt;

// The public halves of keys that nobody has any more.
constexpr std::string_view kKeys =
    R"({"keys":[{"kty":"EC","crv":"P-256","kid":"e","x":"xaVI7-Dl5ztUBXesWmUFBabdRTdPtTUxpRAW4RYm-b4","y":"3918kRobVtrgrnZikWWnHRtVi8okTriwA10aSE9cb0k"},{"kty":"OKP","crv":"Ed25519","kid":"d","x":"oj_iPkONHGW1DMRA-6qsqSPA7tuip829ayxGAyuzm6Q"}]})";

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void check_spelling(std::string_view part) {
    const auto bytes = from_base64url(part);
    require(bytes.has_value());
    std::string again = to_base64(*bytes);
    again.erase(again.find_last_not_of('=') + 1);
    for (char& c : again) {
        c = c == '+' ? '-' : c == '/' ? '_' : c;
    }
    require(again == part);
}

void check_claims(const json::object& claims) {
    const Time now = from_unix_ms(1'800'000'000'000);
    const auto judged = judge_claims(claims, {}, now);
    if (judged) {
        require(auth::is_tenant_name(judged->caller.tenant));
        require(auth::is_tier(judged->caller.tier));
        require(judged->good_until > now);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const KeySet kFixed = KeySet::parse(kKeys).value();
    std::string_view input(reinterpret_cast<const char*>(data), size);
    KeySet given;
    if (const auto line_end = input.find('\n'); line_end != std::string_view::npos) {
        auto parsed = KeySet::parse(input.substr(0, line_end));
        given = parsed ? std::move(*parsed) : KeySet();
        input.remove_prefix(line_end + 1);
    }
    const auto token = parse_token(input);
    if (!token) {
        require(token.error().code == Code::unauthorized);
        return 0;
    }
    require(input.size() <= kTokenBytesMax);
    check_spelling(input.substr(0, input.find('.')));
    check_spelling(input.substr(input.rfind('.') + 1));
    check_claims(token->claims);
    for (const KeySet* keys : std::initializer_list<const KeySet*>{&kFixed, &given}) {
        const PublicKey* key = keys->find(token->kid, token->algorithm);
        if (key != nullptr && key->has_signed(token->signed_text, token->signature)) {
            require(keys == &given);
        }
    }
    return 0;
}
