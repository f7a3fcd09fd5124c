// What /metrics says of what comfyd depends on, while that is away and when it is back, and how
// often it is asked meanwhile.
#include <gtest/gtest.h>

#include "auth/jwt/issuer_test_support.hpp"
#include "auth/jwt/test_support.hpp"
#include "support/comfyd.hpp"
#include "support/fault_proxy.hpp"
#include "support/mail_server.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {
namespace {

using auth::jwt::test::Issuer;
using auth::jwt::test::Signer;

bool shows(Http& boss, const std::string& dependency, int state) {
    const std::string line =
        "\ncomfyd_breaker_state{dependency=\"" + dependency + "\"} " + std::to_string(state) + "\n";
    return wait_until([&] { return boss.get("/metrics").body.find(line) != std::string::npos; });
}

TEST(Breakers, AnIssuerOfTokensThatIsAwayIsNotAskedByRequests) {
    Issuer issuer;
    const Signer signer(Signer::Kind::ed25519, "key");
    issuer.put("/keys", "sorry", 503);
    const std::string key = "boss-0123456789abcdef";
    ComfydOptions options;
    options.arguments = {
        "--no-engine",
        "--set",
        "jwt.issuer=" + issuer.url(),
        "--set",
        "jwt.audience=comfyd",
    };
    options.environment = {{"COMFYD_AUTH_KEYS", "boss=" + key}, {"COMFYD_AUTH_OPERATORS", "boss"}};
    Comfyd comfyd(options);
    Http boss(comfyd.url());
    boss.set_header("Authorization", "Bearer " + key);
    const std::string token = signer.token({
        {"iss", issuer.url()},
        {"aud", "comfyd"},
        {"sub", "acme"},
        {"scope", "jobs:read"},
        {"exp", to_unix_ms(SystemClock().now()) / 1000 + 6'000},
    });
    Http somebody(comfyd.url());
    somebody.set_header("Authorization", "Bearer " + token);
    ASSERT_TRUE(shows(boss, "issuer", 1)) << comfyd.log();
    const int asked = issuer.asked("/keys");
    for (int i = 0; i < 50; ++i) {
        EXPECT_GE(somebody.get("/api/v2/jobs").status, 500);
    }
    EXPECT_LE(issuer.asked("/keys"), asked + 1) << "but for the look in the background";
    issuer.put_keys({signer.jwk()});
    EXPECT_TRUE(shows(boss, "issuer", 0)) << comfyd.log();
    EXPECT_EQ(somebody.get("/api/v2/jobs").status, 200);
}

TEST(Breakers, AMailServerThatIsAwayShows) {
    const TempDir folder;
    MailServer server;
    FaultProxy proxy(server.port());
    proxy.refuse(true);
    ComfydOptions options;
    options.arguments = {
        "--config",
        folder.write(
            "comfyd.yaml",
            "notify:\n  channels:\n    - {name: ops, kind: mail, host: 127.0.0.1, port: " +
                std::to_string(proxy.port()) +
                ", security: none, from: comfyd@example.com}\n"
                "  rules:\n    - {channel: ops, to: a@example.com, events: [completed]}\n"
        )
    };
    Comfyd comfyd(options);
    EXPECT_TRUE(shows(comfyd.http(), "ledger", 0));
    EXPECT_TRUE(shows(comfyd.http(), "mail:ops", 0));
    comfyd.submit(small_picture());
    EXPECT_TRUE(shows(comfyd.http(), "mail:ops", 1)) << comfyd.log();
    proxy.refuse(false);
    EXPECT_EQ(server.wait_for(1).size(), 1U) << comfyd.log();
    EXPECT_TRUE(shows(comfyd.http(), "mail:ops", 0)) << comfyd.log();
}

}  // namespace
}  // namespace comfyd::support
