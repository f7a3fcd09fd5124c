// The attacks on tokens that are known (RFC 8725 and trouble of other programs), each as a test,
// and what must go well.
#include "auth/jwt/tokens.hpp"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "auth/jwt/test_support.hpp"
#include "base/wait_for.hpp"

namespace comfyd::auth::jwt::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kSecret = "a secret of more than thirty-two bytes";
constexpr const char* kHeader = R"({"alg":"HS256","typ":"JWT"})";

class SecretTokens : public testing::Test {
protected:
    static Tokens::Options options(ClaimRules claims = {}) { return {kSecret, std::move(claims)}; }

    static Result<Caller> verify(const Tokens& tokens, const std::string& text) {
        boost::asio::io_context context;
        return run_task(context, tokens.verify(text, sha256(text)));
    }
    Result<Caller> verify(const std::string& text) { return verify(tokens_, text); }
    std::int64_t now_s() const { return to_unix_ms(clock_.now()) / 1000; }
    // Right but for what is added or replaced.
    std::string claims(const json::object& changes = {}) const {
        json::object made{{"user_id", "acme"}, {"exp", now_s() + 600}};
        for (const auto& change : changes) {
            made[change.key()] = change.value();
        }
        return json::serialize(made);
    }
    std::string good(const json::object& changes = {}) const {
        return hs_token(kSecret, kHeader, claims(changes));
    }
    void expect_refused(const std::string& text, const std::string& why) {
        const auto caller = verify(text);
        ASSERT_FALSE(caller) << why << ": " << text.substr(0, 200);
        EXPECT_EQ(caller.error().code, Code::unauthorized) << why;
        EXPECT_THAT(
            caller.error().message, testing::AnyOf("Token has expired", StartsWith("Invalid token"))
        ) << why;
    }

    ManualClock clock_;
    Tokens tokens_{options(), nullptr, clock_};
};

TEST_F(SecretTokens, SayWhoseTheyAreAndWhatTheyMayDo) {
    const auto plain = verify(good());
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_EQ(plain->tenant, "acme");
    EXPECT_EQ(plain->tier, "free");
    EXPECT_EQ(plain->scopes, kTenantScopes);
    const auto rich = verify(good(
        {{"user_id", 17},
         {"tier", "premium"},
         {"permissions", json::array{"jobs:read", "assets:*", "fly"}}}
    ));
    ASSERT_TRUE(rich) << rich.error().message;
    EXPECT_EQ(rich->tenant, "17");
    EXPECT_EQ(rich->tier, "premium");
    EXPECT_EQ(rich->scopes, (Scopes{Scope::jobs_read, Scope::assets_read, Scope::assets_write}));
    EXPECT_EQ(verify(good({{"permissions", json::array()}}))->scopes, kTenantScopes);
    EXPECT_EQ(verify(good({{"permissions", json::array{"fly"}}}))->scopes, Scopes());
    EXPECT_EQ(
        verify(good({{"scope", "jobs:read admin"}}))->scopes,
        (Scopes{Scope::jobs_read, Scope::admin})
    );
    EXPECT_EQ(verify(good({{"tier", "platinum"}}))->tier, "free");
}

TEST_F(SecretTokens, WithoutASignatureAreNone) {
    for (const char* algorithm : {"none", "None", "nOnE", "NONE", "", "hs256", "HS512", "PS256"}) {
        const std::string header = R"({"alg":")" + std::string(algorithm) + "\"}";
        expect_refused(hs_token(kSecret, header, claims()), header);
        expect_refused(to_base64url(header) + "." + to_base64url(claims()) + ".", header);
    }
    const std::string text = good();
    const auto last = text.rfind('.');
    expect_refused(text.substr(0, last), "two parts");
    expect_refused(text.substr(0, last + 1), "an empty third");
    expect_refused(text + ".x", "four parts");
    expect_refused(text + ".x.y", "five parts, encrypted");
    expect_refused("." + text, "an empty first");
    expect_refused("..", "nothing");
    expect_refused(hs_token(kSecret, R"({"alg":null})", claims()), "alg null");
    expect_refused(hs_token(kSecret, R"({"typ":"JWT"})", claims()), "no alg");
}

TEST_F(SecretTokens, OfAnotherSecretOrChangedAreRefused) {
    expect_refused(hs_token(kSecret + "x", kHeader, claims()), "another secret");
    expect_refused(hs_token("", kHeader, claims()), "an empty secret");
    std::string text = good();
    const std::string mine = to_base64url(claims({{"user_id", "other"}}));
    const auto first = text.find('.');
    expect_refused(text.replace(first + 1, text.rfind('.') - first - 1, mine), "other claims");
    Tokens none({"", {}}, nullptr, clock_);
    EXPECT_FALSE(verify(none, hs_token("", kHeader, claims()))) << "no secret is configured";
    Tokens weak({"short", {}}, nullptr, clock_);
    EXPECT_FALSE(verify(weak, hs_token("short", kHeader, claims())));
}

TEST_F(SecretTokens, HeadersThatDemandMoreAreRefused) {
    for (const char* header : {
             R"({"alg":"HS256","crit":["b64"],"b64":false})",
             R"({"alg":"HS256","crit":["unknown"],"unknown":1})",
             R"({"alg":"HS256","crit":[]})",
             R"({"alg":"HS256","zip":"DEF"})",
             R"({"alg":"HS256","typ":"JWE"})",
             R"({"alg":"HS256","typ":"secevent+jwt"})",
             R"({"alg":"HS256","typ":1})",
             R"({"alg":"HS256","kid":7})",
             R"({"alg":"HS256","kid":null})",
             R"({"alg":"HS256","kid":""})",
             R"({"alg":"HS256","alg":"none"})",
             R"({"alg":"none","alg":"HS256"})",
             R"({"alg":"HS256"} )"
             "x",
             R"(["alg"])",
             "\xEF\xBB\xBF{\"alg\":\"HS256\"}",
             "{\"alg\":\"HS256\",\"x\":\"\xFF\"}",
             "",
         }) {
        expect_refused(hs_token(kSecret, header, claims()), header);
    }
    expect_refused(
        hs_token(
            kSecret,
            R"({"alg":"HS256","x":)" + std::string(1000, '[') + std::string(1000, ']') + "}",
            claims()
        ),
        "deep"
    );
    expect_refused(
        hs_token(kSecret, R"({"alg":"HS256","kid":")" + std::string(300, 'k') + "\"}", claims()),
        "a long kid"
    );
    for (const char* header : {
             R"({"alg":"HS256","kid":"../../dev/null"})",
             R"({"alg":"HS256","kid":"' OR 1=1"})",
             R"({"alg":"HS256","jku":"http://127.0.0.1:1/","jwk":{"kty":"oct","k":""},"x5u":"x"})",
             R"({"alg":"HS256","typ":"at+jwt"})",
         }) {
        EXPECT_TRUE(verify(hs_token(kSecret, header, claims()))) << header << ": it means nothing";
        expect_refused(hs_token("", header, claims()), header);
    }
}

TEST_F(SecretTokens, ClaimsThatSaySomethingTwiceAreRefused) {
    const std::string exp = std::to_string(now_s() + 600);
    for (const std::string& twice :
         {R"({"user_id":"a","user_id":"b","exp":)" + exp + "}",
          R"({"user_id":"a","exp":1,"exp":)" + exp + "}",
          R"({"user_id":"a","exp":)" + exp + R"(,"exp":1})",
          R"({"user_id":"a","\u0065xp":1,"exp":)" + exp + "}",
          R"({"user_id":"a","x":[{"a":1,"a":2}],"exp":)" + exp + "}"}) {
        expect_refused(hs_token(kSecret, kHeader, twice), twice);
    }
}

TEST_F(SecretTokens, AreGoodInTheirTimeAlone) {
    const std::int64_t now = now_s();
    EXPECT_TRUE(verify(good({{"exp", now - 59}}))) << "within the leeway";
    EXPECT_EQ(verify(good({{"exp", now - 60}})).error().message, "Token has expired");
    EXPECT_EQ(verify(good({{"exp", 0}})).error().message, "Token has expired");
    EXPECT_TRUE(verify(good({{"exp", static_cast<double>(now) + 10.7}})));
    EXPECT_TRUE(verify(good({{"nbf", now + 59}, {"iat", now + 59}})));
    expect_refused(good({{"nbf", now + 61}}), "not yet");
    expect_refused(good({{"iat", now + 86'400}}), "made tomorrow");
    const std::string rest = R"(,"user_id":"acme"})";
    for (const char* exp :
         {"\"soon\"",
          "\"9999999999\"",
          "null",
          "true",
          "[1]",
          "{}",
          "-1",
          "1e400",
          "-1e400",
          "9223372036854775808",
          "18446744073709551616",
          "1e300"}) {
        expect_refused(hs_token(kSecret, kHeader, R"({"exp":)" + std::string(exp) + rest), exp);
    }
    expect_refused(hs_token(kSecret, kHeader, R"({"user_id":"acme"})"), "no exp");
    ClaimRules lax;
    lax.require_expiry = false;
    lax.leeway = std::chrono::seconds(0);
    const Tokens without(options(lax), nullptr, clock_);
    EXPECT_TRUE(verify(without, hs_token(kSecret, kHeader, R"({"user_id":"acme"})")));
    EXPECT_FALSE(verify(without, good({{"exp", now}})));
}

TEST_F(SecretTokens, AreForUsAndOfTheOneWeTrust) {
    ClaimRules rules;
    rules.issuer = "https://id.example.com";
    rules.audience = "comfyd";
    const Tokens tokens(options(rules), nullptr, clock_);
    const auto with = [this](json::value issuer, json::value audience) {
        return good({{"iss", std::move(issuer)}, {"aud", std::move(audience)}});
    };
    EXPECT_TRUE(verify(tokens, with("https://id.example.com", "comfyd")));
    EXPECT_TRUE(verify(tokens, with("https://id.example.com", json::array{"other", "comfyd"})));
    for (const json::value& audience :
         {json::value("other"),
          json::value("comfyd "),
          json::value(json::array()),
          json::value(json::array{"other"}),
          json::value(json::array{"comfyd", 1}),
          json::value(json::object{{"comfyd", true}}),
          json::value(nullptr)}) {
        EXPECT_FALSE(verify(tokens, with("https://id.example.com", audience)))
            << json::serialize(audience);
    }
    for (const json::value& issuer :
         {json::value("https://id.example.com/"),
          json::value("HTTPS://id.example.com"),
          json::value(json::array{"https://id.example.com"}),
          json::value(nullptr)}) {
        EXPECT_FALSE(verify(tokens, with(issuer, "comfyd"))) << json::serialize(issuer);
    }
    EXPECT_FALSE(verify(tokens, good())) << "neither";
}

TEST_F(SecretTokens, MustSayWhoseTheyAre) {
    for (const json::value& user :
         {json::value(""),
          json::value(nullptr),
          json::value(true),
          json::value(1.5),
          json::value(json::array{"acme"}),
          json::value("a\nb"),
          json::value(std::string(200, 'x'))}) {
        expect_refused(good({{"user_id", user}}), json::serialize(user));
    }
    expect_refused(good({{"permissions", 7}}), "permissions of another type");
    expect_refused(good({{"permissions", json::array{7}}}), "a permission of another type");
    expect_refused(good({{"tier", 7}}), "a tier of another type");
    EXPECT_EQ(verify(hs_token(kSecret, kHeader, R"({"sub":"s","exp":9999999999})"))->tenant, "s");
    ClaimRules rules;
    rules.tenant_claim = "org";
    rules.scope_claim = "roles";
    const Tokens tokens(options(rules), nullptr, clock_);
    const auto caller = verify(tokens, good({{"org", "o"}, {"roles", json::array{"jobs:read"}}}));
    EXPECT_EQ(caller->tenant, "o");
    EXPECT_EQ(caller->scopes, Scopes{Scope::jobs_read});
    EXPECT_FALSE(verify(tokens, good())) << "no other claim stands in for it";
}

TEST_F(SecretTokens, HaveOneSpellingAlone) {
    const std::string text = good();
    const auto last = text.rfind('.');
    expect_refused(text + "=", "padding");
    expect_refused(text.substr(0, last + 1) + " " + text.substr(last + 1), "a space");
    expect_refused(text + "\n", "a line end");
    std::string spare = text;
    spare.back() = spare.back() == 'A' ? 'B' : static_cast<char>(spare.back() + 1);
    expect_refused(spare, "another text, perhaps of the same bytes");
    std::string standard = text;
    for (std::size_t i = last; i < standard.size(); ++i) {
        standard[i] = standard[i] == '-' ? '+' : standard[i] == '_' ? '/' : standard[i];
    }
    if (standard != text) {
        expect_refused(standard, "the other alphabet");
    }
    expect_refused("x" + std::string(9'000, 'x') + text, "too long");
    const std::string padded = claims({{"pad", std::string(9'000, 'x')}});
    expect_refused(hs_token(kSecret, kHeader, padded), "too long, but good");
    expect_refused(to_base64url(R"({"alg":"HS256"})") + ".x." + to_base64url("x"), "one letter");
}

TEST_F(SecretTokens, AreRememberedUntilTheyEnd) {
    const std::string text = good();
    EXPECT_TRUE(verify(text));
    EXPECT_TRUE(verify(text));
    clock_.advance(std::chrono::seconds(659));
    EXPECT_TRUE(verify(text));
    clock_.advance(std::chrono::seconds(1));
    EXPECT_EQ(verify(text).error().message, "Token has expired");
    for (int i = 0; i < 20'000; ++i) {  // more than are remembered
        const std::string one = good({{"n", i}, {"exp", now_s() + 600}});
        ASSERT_TRUE(verify(one));
    }
}

class KeySets : public testing::Test {
protected:
    static KeySet set_of(json::array keys) {
        auto parsed = KeySet::parse(json::serialize(json::object{{"keys", std::move(keys)}}));
        EXPECT_TRUE(parsed) << parsed.error().message;
        return std::move(*parsed);
    }
    // As a token's check does it.
    static bool is_good(const KeySet& keys, const std::string& text) {
        const auto token = parse_token(text);
        const PublicKey* key = token ? keys.find(token->kid, token->algorithm) : nullptr;
        return key != nullptr && key->has_signed(token->signed_text, token->signature);
    }
    static std::string with_signature(const std::string& text, const std::string& signature) {
        return text.substr(0, text.rfind('.') + 1) + to_base64url(signature);
    }
};

TEST_F(KeySets, CheckEveryKindOfSignature) {
    const Signer rsa(Signer::Kind::rsa, "r");
    const Signer other(Signer::Kind::rsa, "r");
    const Signer p256(Signer::Kind::p256, "e2");
    const Signer p384(Signer::Kind::p384, "e3");
    const Signer p521(Signer::Kind::p521, "e5");
    const Signer ed(Signer::Kind::ed25519, "d");
    const KeySet keys = set_of({rsa.jwk(), p256.jwk(), p384.jwk(), p521.jwk(), ed.jwk()});
    EXPECT_EQ(keys.size(), 5U);
    for (const Signer* signer : {&rsa, &p256, &p384, &p521, &ed}) {
        const std::string text = signer->token({{"sub", "acme"}});
        EXPECT_TRUE(is_good(keys, text)) << signer->algorithm();
        EXPECT_TRUE(is_good(keys, signer->token({{"sub", "acme"}}, {{"typ", "at+jwt"}})));
        std::string changed = text;
        changed[changed.find('.') + 3] ^= 1;
        EXPECT_FALSE(is_good(keys, changed)) << signer->algorithm();
        EXPECT_FALSE(is_good(keys, signer->token({}, {{"kid", "unknown"}})));
        EXPECT_FALSE(is_good(keys, signer->token({}, {{"kid", "../../dev/null"}})));
        EXPECT_FALSE(is_good(keys, signer->token({}, {{"kid", signer == &rsa ? "e2" : "r"}})));
    }
    EXPECT_FALSE(is_good(keys, other.token({{"sub", "acme"}}))) << "another's key of that name";
}

TEST_F(KeySets, AreNotTakenForSecrets) {
    const Signer rsa(Signer::Kind::rsa, "r");
    const KeySet keys = set_of({rsa.jwk()});
    ManualClock clock;
    const Tokens tokens({kSecret, {}}, nullptr, clock);
    for (const std::string& secret :
         {rsa.pem(), json::serialize(rsa.jwk()), std::string(), std::string(32, '\0')}) {
        const std::string text =
            hs_token(secret, R"({"alg":"HS256","kid":"r"})", R"({"sub":"a","exp":9999999999})");
        EXPECT_FALSE(is_good(keys, text));
        boost::asio::io_context context;
        auto answer = boost::asio::co_spawn(
            context.get_executor(), tokens.verify(text, sha256(text)), boost::asio::use_future
        );
        context.run();
        EXPECT_FALSE(answer.get());
    }
    const json::object secret_key{
        {"kty", "oct"}, {"kid", "r"}, {"alg", "HS256"}, {"k", to_base64url(kSecret)}
    };
    EXPECT_EQ(set_of({secret_key}).size(), 0U);
}

TEST_F(KeySets, ForgedSignaturesOfCurvesAreRefused) {
    const Signer p256(Signer::Kind::p256, "e");
    const KeySet keys = set_of({p256.jwk()});
    const std::string text = p256.token({{"sub", "acme"}});
    const std::string order =
        "\xFF\xFF\xFF\xFF" + std::string(4, '\0') + std::string(8, '\xFF') +
        std::string("\xBC\xE6\xFA\xAD\xA7\x17\x9E\x84\xF3\xB9\xCA\xC2\xFC\x63\x25\x51", 16);
    const std::string one = std::string(31, '\0') + "\x01";
    for (const std::string& forged :
         {std::string(64, '\0'),
          order + order,
          one + order,
          order + one,
          std::string(32, '\0') + one,
          std::string(63, '\x01'),
          std::string(65, '\x01'),
          std::string(16'374, '\x01'),
          std::string(70, '\x30')}) {
        const auto token = parse_token(text);
        EXPECT_FALSE(keys.find("e", Algorithm::es256)->has_signed(token->signed_text, forged));
    }
    EXPECT_FALSE(is_good(keys, with_signature(text, std::string(64, '\0'))));
}

TEST_F(KeySets, KeysThatProveNothingAreLeftOut) {
    const Signer rsa(Signer::Kind::rsa, "r");
    const Signer weak(Signer::Kind::weak_rsa, "w");
    const Signer p256(Signer::Kind::p256, "e");
    const Signer ed(Signer::Kind::ed25519, "d");
    const auto changed = [](json::object jwk, const char* name, const auto& value) {
        jwk[name] = value;
        return jwk;
    };
    const std::string p(32, '\xFF');
    for (const json::object& jwk :
         {weak.jwk(),
          changed(rsa.jwk(), "e", "AQ"),    // 1
          changed(rsa.jwk(), "e", "Aw"),    // 3
          changed(rsa.jwk(), "e", "AQAA"),  // even
          changed(rsa.jwk(), "e", ""),
          changed(rsa.jwk(), "n", "AQ"),
          changed(rsa.jwk(), "n", to_base64url(std::string(2'000, '\xFF'))),
          changed(rsa.jwk(), "n", 7),
          changed(rsa.jwk(), "use", "enc"),
          changed(rsa.jwk(), "alg", "RS512"),
          changed(rsa.jwk(), "alg", "HS256"),
          changed(rsa.jwk(), "kty", "oct"),
          changed(rsa.jwk(), "kid", std::string(300, 'k')),
          changed(p256.jwk(), "x", to_base64url(std::string(32, '\x01'))),  // not on the curve
          changed(p256.jwk(), "x", to_base64url(std::string(31, '\x01'))),
          changed(p256.jwk(), "crv", "P-384"),
          changed(p256.jwk(), "crv", "secp256k1"),
          changed(p256.jwk(), "alg", "ES384"),
          changed(ed.jwk(), "x", to_base64url(std::string(32, '\0'))),
          changed(ed.jwk(), "x", to_base64url("\x01" + std::string(31, '\0'))),
          changed(ed.jwk(), "x", to_base64url("\x01" + std::string(30, '\0') + "\x80")),
          changed(ed.jwk(), "x", to_base64url("\xEC" + std::string(30, '\xFF') + "\x7F")),
          changed(ed.jwk(), "x", to_base64url("\xEE" + p.substr(1))),
          changed(ed.jwk(), "x", to_base64url(std::string(31, '\x05'))),
          changed(ed.jwk(), "crv", "X25519"),
          json::object()}) {
        EXPECT_EQ(set_of({jwk}).size(), 0U) << json::serialize(jwk);
    }
}

TEST_F(KeySets, AmbiguousNamesMeanNoKey) {
    const Signer one(Signer::Kind::p256, "a");
    const Signer two(Signer::Kind::p256, "b");
    const Signer same(Signer::Kind::p256, "a");
    EXPECT_NE(set_of({one.jwk()}).find("", Algorithm::es256), nullptr);
    EXPECT_EQ(set_of({one.jwk(), two.jwk()}).find("", Algorithm::es256), nullptr);
    EXPECT_NE(set_of({one.jwk(), two.jwk()}).find("b", Algorithm::es256), nullptr);
    EXPECT_EQ(set_of({one.jwk(), same.jwk()}).find("a", Algorithm::es256), nullptr);
}

TEST_F(KeySets, OtherDocumentsAreRefused) {
    for (const std::string& document :
         {std::string(),
          std::string("[]"),
          std::string("{}"),
          std::string(R"({"keys":{}})"),
          std::string(R"({"keys":[],"keys":[]})"),
          std::string("<html>"),
          json::serialize(json::object{{"keys", json::array(101)}})}) {
        EXPECT_EQ(KeySet::parse(document).error().code, Code::protocol_error) << document;
    }
    EXPECT_EQ(KeySet::parse(R"({"keys":[1,null,"x",{}]})")->size(), 0U);
}

}  // namespace
}  // namespace comfyd::auth::jwt::test
