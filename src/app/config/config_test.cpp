#include "app/config/config.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>

namespace comfyd::app {
namespace {

class ConfigFile {
public:
    explicit ConfigFile(const std::string& text)
        : path_(testing::TempDir() + "comfyd_config_" + std::to_string(::getpid()) + ".yaml") {
        std::ofstream(path_) << text;
    }
    ~ConfigFile() { std::remove(path_.c_str()); }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

Result<Config> load(
    const std::string& yaml,
    std::map<std::string, std::string> environment = {},
    std::vector<std::pair<std::string, std::string>> flags = {}
) {
    const ConfigFile file(yaml);
    ConfigSources sources;
    sources.file = file.path();
    sources.environment = [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
    sources.flags = std::move(flags);
    return load_config(sources);
}

TEST(Config, FlagsWinOverEnvironmentAndEnvironmentOverFile) {
    const std::string yaml = "listen: 127.0.0.1:1\ndata: from-file\nlog:\n  level: error\n";
    const auto config = load(
        yaml,
        {{"COMFYD_LISTEN", "127.0.0.1:2"}, {"COMFYD_LOG_LEVEL", "debug"}},
        {{"listen", "127.0.0.1:3"}}
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->listen, "127.0.0.1:3");
    EXPECT_EQ(config->log_level, log::Level::debug);
    EXPECT_EQ(config->data, "from-file");
}

TEST(Config, AnUnknownKeyNamesFileLineAndTheNearestKey) {
    const auto config = load("listen: 127.0.0.1:1\nlog:\n  levle: info\n");
    ASSERT_FALSE(config);
    EXPECT_NE(config.error().message.find(".yaml:3:"), std::string::npos) << config.error().message;
    EXPECT_NE(config.error().message.find("'log.level'"), std::string::npos)
        << config.error().message;
    EXPECT_FALSE(load("lisen: x\n"));
    EXPECT_FALSE(load("nonsense:\n  - a\n"));
}

TEST(Config, ComfyUiOnThisComputer) {
    const auto config = load(
        "comfyui:\n  dir: /opt/ComfyUI\n  per_gpu: 3\n  arguments: [--fast, --preview-method, "
        "auto]\n"
        "  packs_allowed: [https://example.com/packs/]\n",
        {{"COMFYD_COMFYUI_GPU_MEMORY_MB", "8000"}},
        {{"comfyui.dir", "/srv/ComfyUI"}}
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->comfyui.at("dir"), "/srv/ComfyUI");
    EXPECT_EQ(config->comfyui.at("per_gpu"), "3");
    EXPECT_EQ(config->comfyui.at("gpu_memory_mb"), "8000");
    EXPECT_TRUE(config->comfyui.at("packs_allowed").starts_with("https://example.com/packs/"));
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->comfyui.at("dir"), "/srv/ComfyUI");
    EXPECT_EQ(again->comfyui.at("per_gpu"), "3");
    EXPECT_EQ(show_config(*again), show_config(*config));
    const auto wrong = load("comfyui:\n  per_gpu: many\n");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("'comfyui.per_gpu'"), std::string::npos);
    EXPECT_FALSE(load("comfyui:\n  ports: 9-1\n"));
    EXPECT_FALSE(load("comfyui:\n  pergpu: 1\n"));
}

TEST(Config, ATenantMayReuseOutputs) {
    const auto config = load(
        "reuse:\n  never_nodes: [Dice*]\n  generation: \"2\"\n"
        "tenants:\n  - name: acme\n    reuse: true\n  - name: other\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    for (const Config* one : {&*config, &*again}) {
        EXPECT_TRUE(one->tenants.at(0).reuse);
        EXPECT_FALSE(one->tenants.at(1).reuse);
        EXPECT_EQ(one->reuse_never_nodes, std::vector<std::string>{"Dice*"});
        EXPECT_EQ(one->reuse_generation, "2");
    }
}

TEST(Config, TenantsHaveTermsOfTheirOwn) {
    const auto config = load(
        "security:\n  denied_nodes: [Bad]\ntenants:\n  - name: acme\n    weight: 3\n    "
        "running_max: 4\n    tier: pro\n    gpu_seconds_per_day: 3600\n"
        "    denied_nodes: [LoadVideo*]\n    allowed_nodes: [Load*]\n"
        "    budget: {usd_per_hour: 1.5, usd_per_month: 40}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    ASSERT_EQ(config->tenants.size(), 1U);
    EXPECT_EQ(config->tenants[0].weight, 3);
    EXPECT_EQ(config->tenants[0].running_max, 4);
    EXPECT_EQ(config->tenants[0].tier, "pro");
    EXPECT_EQ(config->tenants[0].gpu_seconds_per_day, 3600);
    EXPECT_EQ(config->tenants[0].budget, (Budget{1.5, 0, 40}));
    const auto policy = security_policy(*config, config->tenants[0]);
    EXPECT_EQ(policy.denied_nodes, (std::vector<std::string>{"Bad", "LoadVideo*"}));
    EXPECT_EQ(policy.allowed_nodes, (std::vector<std::string>{"Load*"}));
    EXPECT_NE(show_config(*config).find("- name: \"acme\""), std::string::npos);
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->tenants[0].tier, "pro");
    EXPECT_EQ(again->tenants[0].gpu_seconds_per_day, 3600);
    EXPECT_EQ(again->tenants[0].budget, (Budget{1.5, 0, 40}));
    const auto wrong = load("tenants: [{name: acme, budget: {usd_per_week: 1}}]\n");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("'budget'"), std::string::npos) << wrong.error().message;
}

TEST(Config, TiersAreOneTableThatCanBeChanged) {
    const auto config = load(
        "tiers:\n  free: {requests_per_minute: 5, usd_per_month: 1.5}\n  pro.queued_max: 7\n"
        "limits: {tier_default: basic, blocked_addresses: [192.0.2.0/24, \"2001:db8::/32\"]}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(check_config(*config));
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    for (const Config* one : {&*config, &*again}) {
        EXPECT_EQ(one->tiers.of("free").requests_per_minute, 5);
        EXPECT_EQ(one->tiers.of("free").running_max, 2);
        EXPECT_EQ(one->tiers.of("free").usd_per_month, 1.5);
        EXPECT_EQ(one->tiers.of("pro").queued_max, 7);
        EXPECT_EQ(one->tier_default, "basic");
        EXPECT_EQ(one->blocked_addresses.size(), 2U);
    }
    const auto keys = load(
        "auth:\n  keys:\n    - {name: a, requests_per_minute: 30, sha256: "
        "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752}\n"
    );
    ASSERT_TRUE(keys) << keys.error().message;
    EXPECT_EQ(keys->keys.at(0).requests_per_minute, 30);
    EXPECT_NE(show_config(*keys).find("requests_per_minute: 30"), std::string::npos);
    for (const char* bad :
         {"tiers: {free: {requests_per_minute: -1}}\n",
          "tiers: {free: {requests: 1}}\n",
          "tiers: {gold: {requests_per_minute: 1}}\n",
          "tiers: {free: {usd_per_day: much}}\n"}) {
        EXPECT_FALSE(load(bad)) << bad;
    }
    EXPECT_FALSE(check_config(*load("limits: {tier_default: gold}\n")));
    EXPECT_FALSE(check_config(*load("limits: {blocked_addresses: [everybody]}\n")));
}

TEST(Config, TenantsHaveLimitsAndWhatTheyMayUse) {
    const auto config = load(
        "workers:\n  - url: http://gpu2:8188\n    pool: gold\n"
        "tenants:\n  - {name: acme, tier: premium, requests_per_minute: 300, usd_per_day: 2.5, "
        "disabled: true, allowed_pools: [gold, default], pool: gold}\n  - name: 7\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(check_config(*config));
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    for (const Config* one : {&*config, &*again}) {
        EXPECT_EQ(one->tenants.at(0).tier, "premium");
        EXPECT_EQ(one->tenants.at(0).requests_per_minute, 300);
        EXPECT_EQ(one->tenants.at(0).usd_per_day, 2.5);
        EXPECT_EQ(one->tenants.at(0).usd_per_month, std::nullopt);
        EXPECT_TRUE(one->tenants.at(0).disabled);
        EXPECT_EQ(one->tenants.at(0).allowed_pools, (std::vector<std::string>{"gold", "default"}));
        EXPECT_EQ(one->tenants.at(1).name, "7");
    }
    const auto unknown = load("tenants:\n  - {name: acme, allowed_pools: [silver]}\n");
    ASSERT_TRUE(unknown);
    EXPECT_NE(check_config(*unknown).error().message.find("'silver'"), std::string::npos);
}

TEST(Config, TokensNeedASecretOrAnIssuerThatCanBeTrusted) {
    const std::string issuer = "jwt: {issuer: \"https://id.example.com\", audience: comfyd}\n";
    EXPECT_TRUE(check_config(load(issuer).value()));
    EXPECT_TRUE(asks_who(load(issuer).value()));
    EXPECT_FALSE(asks_who(load("{}\n").value()));
    EXPECT_TRUE(asks_who(load("auth: {required: true}\n").value()));
    EXPECT_TRUE(check_config(load("listen: \"0.0.0.0:1\"\nauth: {required: true}\n").value()));
    const std::string secret = "jwt: {secret: 0123456789abcdef0123456789abcdef}\n";
    EXPECT_TRUE(check_config(load(secret).value()));
    EXPECT_EQ(show_config(load(secret).value()).find("0123456789abcdef"), std::string::npos);
    for (const char* bad :
         {"jwt: {secret: too short}\n",
          "jwt: {issuer: \"https://id.example.com\"}\n",
          "jwt: {issuer: \"http://id.example.com\", audience: x}\n",
          "jwt: {issuer: nonsense, audience: x}\n",
          "jwt: {jwks_url: \"https://id.example.com/keys\"}\n",
          "jwt: {issuer: \"https://a.b\", audience: x, jwks_url: \"http://a.b/keys\"}\n"}) {
        const auto config = load(bad);
        ASSERT_TRUE(config) << bad;
        EXPECT_FALSE(check_config(*config)) << bad;
    }
    EXPECT_FALSE(load("jwt: {leeway_s: 301}\n"));
}

TEST(Config, StoresAndHowLongOutputsStay) {
    const auto config = load(
        "stores:\n  - name: nas\n    provider: folder\n    path: /mnt/x\n    tenants: [acme]\n"
        "  - {name: far, provider: other, bucket: b, secret_key: hush}\n"
        "results: {store: nas, retention: archive, immediate_hours: 12, archive_days: 100}\n"
        "tenants:\n  - {name: acme, store: far, retention: glacier}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    ASSERT_TRUE(check_config(*config));
    ASSERT_EQ(config->stores.size(), 2U);
    EXPECT_EQ(config->stores[0].options.at("path"), "/mnt/x");
    EXPECT_EQ(config->stores[0].tenants, std::vector<std::string>{"acme"});
    EXPECT_EQ(config->results_retention, assets::RetentionClass::archive);
    const auto rules = retention_rules(*config);
    EXPECT_EQ(rules.life_of(assets::RetentionClass::immediate), std::chrono::hours(12));
    EXPECT_EQ(rules.life_of(assets::RetentionClass::standard), std::chrono::hours(24 * 30));
    EXPECT_EQ(rules.life_of(assets::RetentionClass::archive), std::chrono::hours(24 * 100));
    const std::string shown = show_config(*config);
    EXPECT_EQ(shown.find("hush"), std::string::npos);
    const auto again = load(shown);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->stores[1].name, "far");
    EXPECT_EQ(again->tenants[0].retention, "glacier");
    EXPECT_EQ(again->tenants[0].store, "far");

    Config brief = *config;
    brief.retention_days = 0.0001;
    EXPECT_TRUE(std::ranges::is_sorted(retention_rules(brief).life));
    brief.retention_days = 3650;
    EXPECT_TRUE(std::ranges::is_sorted(retention_rules(brief).life));

    for (const char* wrong :
         {"stores:\n  - {name: local, provider: folder, path: /x}\n",
          "stores:\n  - {name: a, provider: folder}\n  - {name: a, provider: folder}\n",
          "stores:\n  - {provider: folder, path: /x}\n",
          "stores:\n  - {name: a/b, provider: folder}\n",
          "tenants:\n  - {name: acme, retention: forever}\n",
          "results: {retention: forever}\n"}) {
        EXPECT_FALSE(load(wrong)) << wrong;
    }
    for (const char* wrong :
         {"results: {store: nowhere}\n", "tenants:\n  - {name: acme, store: nowhere}\n"}) {
        EXPECT_FALSE(check_config(load(wrong).value())) << wrong;
    }
}

TEST(Config, SizesOfModelsAreRead) {
    const auto config = load(
        "models:\n  - {name: sd_xl_base_1.0.safetensors, bytes: 6.9GB}\n"
        "  - {name: \"lora/*\", bytes: 128 MiB}\n  - {name: a, bytes: 17}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(
        config->models,
        (std::vector<workflow::KnownModel>{
            {"sd_xl_base_1.0.safetensors", 6'900'000'000}, {"lora/*", 128ULL << 20}, {"a", 17}
        })
    );
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->models, config->models);
    EXPECT_FALSE(load("", {{"COMFYD_MODELS", "a"}}));
}

TEST(Config, BadValuesSayWhatWouldBeRight) {
    for (const char* bad :
         {"io_threads: many\n",
          "io_threads: -1\n",
          "engine:\n  enabled: maybe\n",
          "log:\n  level: loud\n",
          "workers: http://x\n",
          "workers:\n  - ftp://x\n",
          "workers:\n  - urll: http://x\n",
          "workers:\n  - url: http://x\n    gpu_second_usd: -1\n",
          "workers:\n  - url: http://x\n    slots: 0\n",
          "workers:\n  - url: http://x\n    model_memory: lots\n",
          "scheduler:\n  policy: best\n",
          "workers:\n  - url: http://x\n    gpu_second_usd: much\n",
          "tenants:\n  - weight: 2\n",
          "tenants:\n  - name: a\n    weight: 0\n",
          "tenants:\n  - name: a\n  - name: a\n",
          "tenants:\n  - name: a\n    tier: gold\n",
          "models:\n  - name: a\n",
          "models:\n  - name: a\n    bytes: 3 GX\n",
          "models:\n  - name: a\n    bytes: -1\n",
          "models:\n  - name: a\n    bytes: 1e30\n",
          "models:\n  - name: a\n    size: 1\n",
          "tenants:\n  - name: a\n    gpu_seconds_per_day: -1\n",
          "auth:\n  keys:\n    - name: a\n      operator: perhaps\n",
          ": :\n",
          "auth:\n  keys:\n    - name: a\n      sha256: short\n",
          "limits: 5\n"}) {
        const auto config = load(bad);
        ASSERT_FALSE(config) << bad;
        EXPECT_EQ(config.error().code, Code::config_invalid) << bad;
        EXPECT_NE(config.error().message.find(".yaml:"), std::string::npos)
            << config.error().message;
    }
}

TEST(Config, WorkersFormPools) {
    const auto config = load(
        "workers:\n  - http://gpu1:8188\n  - url: http://gpu2:8188\n    pool: gold\n"
        "engine:\n  pool: cpu\ntenants:\n  - name: acme\n    pool: gold\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(pools_of(*config), (std::set<std::string>{"cpu", "default", "gold"}));
    EXPECT_TRUE(check_config(*config));
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(pools_of(*again), pools_of(*config));
    EXPECT_EQ(again->tenants.at(0).pool, "gold");
    const auto unknown = load("tenants:\n  - name: acme\n    pool: silver\n");
    ASSERT_TRUE(unknown);
    EXPECT_NE(check_config(*unknown).error().message.find("'silver'"), std::string::npos);
    EXPECT_FALSE(load("workers:\n  - url: http://gpu2:8188\n    pool: \"Not a name\"\n"));
    const auto engine = load("engine:\n  pool: \"a\\tb\"\n");
    EXPECT_FALSE(engine && check_config(*engine));
}

TEST(Config, WorkersComeAsStringsMapsOrFlags) {
    const auto config = load(
        "workers:\n  - http://gpu1:8188/\n  - id: big\n    url: https://gpu2\n"
        "    gpu_second_usd: 0.0011\n    gpu: card0\n    region: EU west\n    slots: 2\n    "
        "model_memory: "
        "24GB\nscheduler:\n  policy: score\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    ASSERT_EQ(config->workers.size(), 2U);
    EXPECT_EQ(config->workers[0].id, "gpu1:8188");
    EXPECT_EQ(config->workers[0].url, "http://gpu1:8188");
    EXPECT_EQ(config->workers[1].id, "big");
    EXPECT_EQ(config->workers[0].gpu_second_usd, std::nullopt);
    EXPECT_EQ(config->workers[1].gpu_second_usd, 0.0011);
    EXPECT_NE(show_config(*config).find("gpu_second_usd: 0.0011"), std::string::npos);
    EXPECT_EQ(config->workers[0].slots, 1);
    EXPECT_EQ(config->workers[1].slots, 2);
    EXPECT_EQ(config->workers[1].model_memory_bytes, 24'000'000'000U);
    EXPECT_EQ(config->workers[1].gpu, "card0");
    EXPECT_EQ(config->workers[1].region, "EU west");
    EXPECT_NE(
        show_config(*config).find("gpu: \"card0\"\n    region: \"EU west\"\n    slots: 2"),
        std::string::npos
    );
    EXPECT_FALSE(load("workers:\n  - url: http://gpu2:8188\n    region: \"a\\tb\"\n"));
    EXPECT_EQ(config->scheduler_policy, scheduler::PolicyName::score);
    const auto flagged = load(
        "workers:\n  - http://gpu1:8188\n", {}, {{"worker", "http://a:1"}, {"worker", "http://b:1"}}
    );
    ASSERT_TRUE(flagged);
    EXPECT_EQ(flagged->workers.size(), 2U);
    EXPECT_FALSE(load("workers:\n  - http://gpu1:8188\n  - http://gpu1:8188\n"));
}

TEST(Config, WorkersThatCallByThemselvesHaveATokenThatIsNotShown) {
    const std::string token = "0123456789abcdef";
    const auto config = load("workers:\n  - url: worker://home\n    token: " + token + "\n");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->workers[0].id, "home");
    EXPECT_EQ(config->workers[0].token, token);
    EXPECT_EQ(show_config(*config).find(token), std::string::npos);
    EXPECT_TRUE(load("workers:\n  - url: http://gpu\n    token: " + token + "\n"));
    for (const char* wrong :
         {"workers:\n  - worker://home\n",
          "workers:\n  - url: worker://home\n    token: short\n",
          "workers:\n  - url: worker://home\n    token: \"0123456789abc def\"\n",
          "workers:\n  - url: worker://a b\n    token: 0123456789abcdef\n",
          "workers:\n  - url: worker://\n    token: 0123456789abcdef\n"}) {
        const auto refused = load(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().message.find("0123456789abc"), std::string::npos);
    }
}

TEST(Config, ListeningBeyondLoopbackNeedsKeys) {
    auto config = load("listen: 0.0.0.0:8080\n");
    ASSERT_TRUE(config);
    const auto refused = check_config(*config);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("COMFYD_AUTH_KEYS"), std::string::npos);
    auto with_key =
        load("listen: 0.0.0.0:8080\n", {{"COMFYD_AUTH_KEYS", "app=0123456789abcdef0123"}});
    ASSERT_TRUE(with_key) << with_key.error().message;
    EXPECT_TRUE(check_config(*with_key));
    EXPECT_TRUE(check_config(Config{}));
}

TEST(Config, OperatorsAreNamedInOneListOrAtTheirKeys) {
    const std::string hash(64, 'a');
    const auto config = load(
        "auth:\n  keys:\n    - {name: boss, sha256: " + hash +
        ", operator: true}\n    - {name: ops, sha256: " + hash +
        "}\n    - {name: app, sha256: " + hash + "}\n  operators: [ops]\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(check_config(*config));
    std::map<std::string, bool> operators;
    for (const auth::ApiKey& key : api_keys(*config)) {
        operators[key.name] = key.is_operator;
    }
    EXPECT_EQ(
        operators, (std::map<std::string, bool>{{"app", false}, {"boss", true}, {"ops", true}})
    );
    const auto from_environment = load(
        "",
        {{"COMFYD_AUTH_KEYS", "app=0123456789abcdef0123,ops=0123456789abcdef4567"},
         {"COMFYD_AUTH_OPERATORS", "ops"},
         {"COMFYD_METRICS_OPEN", "true"}}
    );
    ASSERT_TRUE(from_environment) << from_environment.error().message;
    EXPECT_FALSE(api_keys(*from_environment).at(0).is_operator);
    EXPECT_TRUE(api_keys(*from_environment).at(1).is_operator);
    EXPECT_TRUE(from_environment->metrics_open);
    const auto unknown = load("auth:\n  operators: [nobody]\n");
    ASSERT_TRUE(unknown);
    EXPECT_NE(check_config(*unknown).error().message.find("'nobody'"), std::string::npos);
}

TEST(Config, WhatIsShownCanBeReadBackAndHidesSecrets) {
    auto config = load(
        "workers:\n  - http://gpu1:8188\nretention_days: 7\n",
        {{"COMFYD_AUTH_KEYS", "app=0123456789abcdef0123"}}
    );
    ASSERT_TRUE(config);
    const std::string shown = show_config(*config);
    EXPECT_NE(shown.find("retention_days: 7"), std::string::npos);
    EXPECT_EQ(shown.find(config->keys[0].sha256), std::string::npos);
    EXPECT_EQ(shown.find("0123456789abcdef"), std::string::npos);
    config->keys.clear();
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->workers.size(), 1U);
    EXPECT_EQ(again->retention_days, 7);
}

TEST(Config, ThumbnailsOfAllOutputsAreSizesThatThereAre) {
    const auto config = load("outputs:\n  thumbnails: [256, 1024, 256]\n");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->outputs_thumbnails, (std::vector<int>{1024, 256}));
    const auto again = load(show_config(*config));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->outputs_thumbnails, config->outputs_thumbnails);
    EXPECT_EQ(load("", {{"COMFYD_OUTPUTS_THUMBNAILS", "512"}})->outputs_thumbnails.size(), 1U);
    for (const char* wrong : {"[100]", "all", "[256.5]", "256,x"}) {
        const auto refused = load("outputs:\n  thumbnails: " + std::string(wrong) + "\n");
        ASSERT_FALSE(refused) << wrong;
        EXPECT_NE(refused.error().message.find("outputs.thumbnails"), std::string::npos);
    }
}

TEST(Config, PasswordsAndSecretsAreNotShown) {
    Config config;
    config.ledger = "postgres://comfyd:xyzzy@db:5432,other:5433/comfyd?sslmode=require";
    config.events = "rediss://:xyzzy@redis:6379/0";
    config.cluster_secret = "xyzzy";
    const std::string shown = show_config(config);
    EXPECT_EQ(shown.find("xyzzy"), std::string::npos);
    EXPECT_NE(
        shown.find("postgres://comfyd:***@db:5432,other:5433/comfyd?sslmode=require"),
        std::string::npos
    );
    EXPECT_NE(shown.find("rediss://:***@redis:6379/0"), std::string::npos);
    config.ledger = "postgres://db/comfyd?user=comfyd&password=xyzzy&sslmode=require";
    EXPECT_EQ(show_config(config).find("xyzzy"), std::string::npos);
    EXPECT_NE(show_config(config).find("&sslmode=require"), std::string::npos);
}

}  // namespace
}  // namespace comfyd::app
