// What the configuration says of logins, of the guard, and of workers that speak TLS.
#include <gmock/gmock.h>

#include "app/config/own_hosts.hpp"
#include "app/config/part_options.hpp"

namespace comfyd::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config with_login() {
    Config config;
    config.public_url = "https://comfyd.example.com/";
    config.login_issuer = "https://id.example.com";
    config.login_client_id = "comfyd";
    return config;
}

TEST(LoginConfig, AProviderNeedsAClientAndAnAddressToComeBackTo) {
    EXPECT_TRUE(check_config(with_login()));
    EXPECT_TRUE(asks_who(with_login()));
    const std::vector<void (*)(Config&)> wrongs{
        [](Config& config) { config.public_url = ""; },
        [](Config& config) { config.public_url = "http://comfyd.example.com"; },
        [](Config& config) { config.login_client_id = ""; },
        [](Config& config) { config.login_issuer = "http://id.example.com"; },
        [](Config& config) { config.login_issuer = "nonsense"; },
        [](Config& config) { config.login_scopes = "profile"; },
    };
    for (std::size_t i = 0; i < wrongs.size(); ++i) {
        Config config = with_login();
        wrongs[i](config);
        EXPECT_FALSE(check_config(config)) << i;
    }
}

TEST(LoginConfig, TheProviderComesBackToTheExactAddress) {
    Config config = with_login();
    config.jwt_tenant_claim = "org";
    config.login_scope_claim = "roles";
    const auto options = code_flow_options(config);
    EXPECT_EQ(options.return_url, "https://comfyd.example.com/login/callback");
    EXPECT_EQ(options.after_logout_url, "https://comfyd.example.com/login");
    EXPECT_EQ(options.claims.issuer, "https://id.example.com");
    EXPECT_EQ(options.claims.audience, "comfyd");
    EXPECT_EQ(options.claims.tenant_claim, "org");
    EXPECT_EQ(options.claims.scope_claim, "roles");
    EXPECT_TRUE(options.claims.require_expiry);
}

TEST(LoginConfig, CookiesAreSecureOrOfThisMachine) {
    const auto of = [](const char* listen, const char* url, const char* certificate) {
        Config config;
        config.listen = listen;
        config.public_url = url;
        config.tls_certificate = certificate;
        return cookie_options(config);
    };
    EXPECT_FALSE(of("127.0.0.1:8080", "", "")->are_secure);
    EXPECT_FALSE(of("unix:/run/comfyd.sock", "", "")->are_secure);
    EXPECT_TRUE(of("127.0.0.1:8080", "https://a.example", "")->are_secure);
    EXPECT_EQ(
        of("127.0.0.1:8080", "https://A.example:8443/x", "")->origin, "https://a.example:8443"
    );
    EXPECT_TRUE(of("0.0.0.0:8080", "", "cert.pem")->are_secure);
    EXPECT_FALSE(of("0.0.0.0:8080", "", "")) << "over plain HTTP to other machines";
    EXPECT_FALSE(of("127.0.0.1:8080", "http://a.example", ""));
    EXPECT_FALSE(of("127.0.0.1:8080", "http://localhost:8080", "")->are_secure);
}

TEST(GuardConfig, OwnHostsAreAllThatComfydIsMadeOf) {
    Config config = with_login();
    config.listen = "192.0.2.1:8080";
    config.ledger =
        "postgres://user:p%40ss@db1.example:5432,db2.example,[2001:db8::1]:1/comfyd?x=y";
    config.events = "rediss://:secret@redis.example:6379/0";
    config.workers = {{"", "http://gpu1.example:8188"}, {"", "unix:/run/comfy.sock"}};
    config.stores = {
        {"main", "s3", {{"endpoint", "https://minio.example:9000"}, {"bucket", "b"}}},
        {"aws", "s3", {{"region", "eu-west-1"}}},
    };
    config.guard_own_hosts = {"vault.example"};
    EXPECT_THAT(
        own_hosts(config),
        testing::UnorderedElementsAre(
            "192.0.2.1",
            "2001:db8::1",
            "comfyd.example.com",
            "db1.example",
            "db2.example",
            "gpu1.example",
            "minio.example",
            "redis.example",
            "vault.example"
        )
    );
    EXPECT_THAT(hosts_in("redis+sentinel://a:1,b:2/name"), ElementsAre("a", "b"));
    EXPECT_THAT(hosts_in("postgres:///comfyd?host=/run"), IsEmpty());
    EXPECT_THAT(hosts_in("nonsense"), IsEmpty());
}

TEST(GuardConfig, APrefixOfNat64MustBeOne) {
    Config config;
    config.guard_nat64 = {"2001:db8:64::/96"};
    EXPECT_TRUE(check_config(config));
    config.guard_nat64 = {"2001:db8:64::/97"};
    EXPECT_FALSE(check_config(config));
}

TEST(ProxyConfig, TheProtocolNeedsProxiesThatAreTrusted) {
    Config config;
    config.proxies_protocol = true;
    EXPECT_FALSE(check_config(config));
    config.proxies_trusted = {"10.0.0.0/8"};
    EXPECT_TRUE(check_config(config));
}

TEST(WorkerTls, AWorkersOwnCertificateIsBeforeThatOfAll) {
    Config config;
    config.fleet_certificate = "all.pem";
    config.fleet_key = "all.key";
    config.fleet_ca_file = "ca.pem";
    WorkerSetting own{"", "https://b:8188"};
    own.certificate = "own.pem";
    own.key = "own.key";
    own.tls_name = "worker-b";
    config.workers = {{"", "https://a:8188"}, own, {"", "http://c:8188"}};
    const auto identities = worker_identities(config);
    ASSERT_TRUE(identities);
    ASSERT_EQ(identities->size(), 2U) << "one speaks no TLS";
    EXPECT_EQ(identities->at(0).certificate, "all.pem");
    EXPECT_EQ(identities->at(0).ca_file, "ca.pem");
    EXPECT_EQ(identities->at(1).certificate, "own.pem");
    EXPECT_EQ(identities->at(1).key, "own.key");
    EXPECT_EQ(identities->at(1).ca_file, "ca.pem");
    EXPECT_EQ(identities->at(1).server_name, "worker-b");
    config.workers[1].key = "";
    EXPECT_FALSE(worker_identities(config));
    EXPECT_THAT(*worker_identities(Config()), IsEmpty());
}

}  // namespace
}  // namespace comfyd::app
