#include "app/config/fleet_config.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "app/config/config.hpp"
#include "app/machine_providers.hpp"
#include "base/scratch_folder.hpp"

namespace comfyd::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class FleetConfigTest : public testing::Test {
protected:
    Result<Config> load(
        const std::string& yaml, std::map<std::string, std::string> environment = {}
    ) {
        ConfigSources sources;
        sources.file = write("comfyd.yaml", yaml);
        sources.environment = [&](const std::string& name) -> std::optional<std::string> {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt : std::optional(found->second);
        };
        auto config = load_config(sources);
        if (config) {
            if (auto checked = check_config(*config); !checked) {
                return fail(std::move(checked.error()));
            }
        }
        return config;
    }
    // What it complains of.
    std::string refusal(
        const std::string& yaml, std::map<std::string, std::string> environment = {}
    ) {
        const auto config = load(yaml, std::move(environment));
        return config ? "" : config.error().message;
    }
    std::string pool_refusal(const std::string& members) {
        return refusal("providers: {a: {kind: docker}}\npools:\n  - {" + members + "}\n");
    }
    std::string write(const std::string& name, const std::string& text) {
        const auto path = folder_.path() / name;
        std::ofstream(path) << text;
        return path.string();
    }

    Result<ScratchFolder> made_ = ScratchFolder::make();
    ScratchFolder& folder_ = *made_;
};

TEST_F(FleetConfigTest, PoolsAndProvidersAreRead) {
    const std::string key = write("key", "sk_secret\n");
    const std::string warm_up = write("warm.json", R"({"1": {"class_type": "A", "inputs": {}}})");
    const auto config = load(
        "fleet: {name: eu-1}\n"
        "providers:\n"
        "  cloud: {kind: novita, key_file: " +
        key +
        ", regions: [a, b]}\n"
        "  box: {kind: docker, socket: /run/x.sock}\n"
        "pools:\n"
        "  - name: gold\n"
        "    size: 2\n"
        "    parked: 3\n"
        "    start_max_s: 900\n"
        "    drain_max_s: 60\n"
        "    template: {image: img, command: [a, b c], env: {A: b}, disk_gb: 80, gpus: 2,\n"
        "               per_gpu: 3, memory_mb: 1000, slots: 4, warm_up: " +
        warm_up +
        "}\n"
        "    offers:\n"
        "      - {provider: cloud, gpus: [RTX 4090, L40S], region: us, market: spot,\n"
        "         max_usd_per_hour: 0.5}\n"
        "      - {provider: box, gpus: any}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->fleet_name, "eu-1");
    ASSERT_THAT(config->fleet.providers, SizeIs(2));
    const ProviderSetting& cloud = config->fleet.providers[0];
    EXPECT_EQ(cloud.kind, "novita");
    EXPECT_EQ(cloud.options.at("key"), "sk_secret");
    EXPECT_EQ(cloud.options.at("regions"), "a,b");
    ASSERT_THAT(config->fleet.pools, SizeIs(1));
    const fleet::PoolSettings& pool = config->fleet.pools[0];
    EXPECT_EQ(pool.size, 2);
    EXPECT_EQ(pool.parked, 3);
    EXPECT_EQ(pool.start_max, std::chrono::seconds(900));
    EXPECT_EQ(pool.drain_max, std::chrono::seconds(60));
    EXPECT_THAT(pool.made_from.command, ElementsAre("a", "b c"));
    EXPECT_EQ(pool.made_from.environment.at("A"), "b");
    EXPECT_EQ(pool.made_from.gpus, 2);
    EXPECT_EQ(pool.made_from.per_gpu, 3);
    EXPECT_EQ(pool.made_from.memory_bytes_max, 1'000'000'000U);
    EXPECT_EQ(pool.slots, 4);
    EXPECT_EQ(pool.warm_up, R"({"1":{"class_type":"A","inputs":{}}})");
    ASSERT_THAT(pool.offers, SizeIs(2));
    EXPECT_THAT(pool.offers[0].gpus, ElementsAre("RTX 4090", "L40S"));
    EXPECT_EQ(pool.offers[0].market, fleet::Market::spot);
    EXPECT_EQ(pool.offers[0].usd_per_hour_max, 0.5);
    EXPECT_FALSE(pool.offers[1].usd_per_hour_max);
    EXPECT_TRUE(pools_of(*config).contains("gold"));
    const std::string shown = show_config(*config);
    EXPECT_THAT(shown, HasSubstr("gold"));
    EXPECT_THAT(shown, testing::Not(HasSubstr("sk_secret")));
}

TEST_F(FleetConfigTest, ModelsOfATemplateGoToItsMachines) {
    const auto config = load(
        "providers: {a: {kind: docker}}\n"
        "pools:\n"
        "  - name: x\n"
        "    offers: [{provider: a}]\n"
        "    template:\n"
        "      image: i\n"
        "      env: {COMFYD_MODELS_PICKLES: 1, COMFYD_MODELS_TRUSTED: models.lan}\n"
        "      models:\n"
        "        - {folder: loras, name: a.safetensors, source: 'hf:o/r/a.safetensors'}\n"
        "        - {folder: vae, name: b.pt, source: 'https://models.lan/b', bytes: 5,\n"
        "           sha256: " +
        std::string(64, '1') + ", required: false}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    const auto& environment = config->fleet.pools[0].made_from.environment;
    EXPECT_EQ(
        environment.at("COMFYD_MODELS"),
        R"([{"folder":"loras","name":"a.safetensors","source":"hf:o/r/a.safetensors"},)"
        R"({"folder":"vae","name":"b.pt","source":"https://models.lan/b","bytes":5,"sha256":")" +
            std::string(64, '1') + R"(","required":false}])"
    );
    EXPECT_EQ(environment.at("COMFYD_MODELS_TRUSTED"), "models.lan");
    const auto refused = [&](const std::string& models) {
        return pool_refusal("name: x, offers: [{provider: a}], template: {models: " + models + "}");
    };
    EXPECT_THAT(refused("a"), HasSubstr("'models'"));
    EXPECT_THAT(refused("[a]"), HasSubstr("'models'"));
    EXPECT_THAT(
        refused("[{folder: ../x, name: a.safetensors, source: 'hf:o/r/a.safetensors'}]"),
        HasSubstr("'folder'")
    );
    EXPECT_THAT(
        refused("[{folder: x, name: a.ckpt, source: 'hf:o/r/a.ckpt'}]"),
        HasSubstr("COMFYD_MODELS_PICKLES")
    );
    EXPECT_THAT(
        refused("[{folder: x, name: a.safetensors, source: 'hf:o/r/a.sft', bytes: many}]"),
        testing::Not(testing::IsEmpty())
    );
}

TEST_F(FleetConfigTest, WrongValuesAreRefusedByName) {
    EXPECT_THAT(refusal("fleet: {name: Main}"), HasSubstr("'fleet.name'"));
    EXPECT_THAT(refusal("providers: [a]"), HasSubstr("'providers' must be a map"));
    EXPECT_THAT(refusal("providers: {a: {}}"), HasSubstr("'a' needs 'kind'"));
    EXPECT_THAT(
        refusal("providers: {a: {kind: novita, key_file: /nowhere}}"), HasSubstr("'/nowhere'")
    );
    EXPECT_THAT(pool_refusal("size: 1"), HasSubstr("'name'"));
    EXPECT_THAT(pool_refusal("name: A B, offers: [{provider: a}]"), HasSubstr("small letters"));
    EXPECT_THAT(pool_refusal("name: x"), HasSubstr("'offers'"));
    EXPECT_THAT(pool_refusal("name: x, offers: []"), HasSubstr("'offers'"));
    EXPECT_THAT(pool_refusal("name: x, offers: [{}]"), HasSubstr("'provider'"));
    EXPECT_THAT(pool_refusal("name: x, offers: [{provider: b}]"), HasSubstr("'b'"));
    EXPECT_THAT(pool_refusal("name: x, offers: [{provider: a}]"), HasSubstr("'image'"));
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a, market: cheap}]"), HasSubstr("'market'")
    );
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a, max_usd_per_hour: -1}]"),
        HasSubstr("'max_usd_per_hour'")
    );
    EXPECT_THAT(pool_refusal("name: x, size: -1, offers: [{provider: a}]"), HasSubstr("'size'"));
    EXPECT_THAT(pool_refusal("name: x, size: 1001, offers: [{provider: a}]"), HasSubstr("'size'"));
    EXPECT_THAT(
        pool_refusal("name: x, parked: -1, offers: [{provider: a}]"), HasSubstr("'parked'")
    );
    EXPECT_THAT(pool_refusal("name: x, siez: 1, offers: [{provider: a}]"), HasSubstr("'siez'"));
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a}], template: {images: y}"),
        HasSubstr("'images'")
    );
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a}], template: {warm_up: /nowhere}"),
        HasSubstr("'warm_up'")
    );
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a}], template: {env: {COMFYD_X: y}}"),
        HasSubstr("COMFYD_X")
    );
    EXPECT_THAT(
        refusal("providers: {a: {kind: process}}\n"
                "pools: [{name: x, offers: [{provider: a}]}, {name: x, offers: [{provider: a}]}]\n"
        ),
        HasSubstr("two pools 'x'")
    );
    EXPECT_THAT(refusal("", {{"COMFYD_POOLS", "a"}}), HasSubstr("configuration file alone"));
}

TEST_F(FleetConfigTest, VariablesOfOtherGatewaysMakeOnePool) {
    const auto config = load(
        "",
        {{"WORKER_MANAGER", "novita"},
         {"NOVITA_API_KEY", "sk"},
         {"NOVITA_IMAGE_URL", "img"},
         {"NOVITA_GPU_NUM", "2"},
         {"NOVITA_PRODUCT_ID", "product-1"},
         {"MIN_WORKERS", "3"}}
    );
    ASSERT_TRUE(config) << config.error().message;
    ASSERT_THAT(config->fleet.pools, SizeIs(1));
    const fleet::PoolSettings& pool = config->fleet.pools[0];
    EXPECT_EQ(pool.name, "default");
    ASSERT_TRUE(pool.scaling);
    EXPECT_EQ(pool.scaling->min, 3);
    EXPECT_EQ(pool.made_from.image, "img");
    EXPECT_EQ(pool.made_from.gpus, 2);
    EXPECT_EQ(pool.made_from.disk_gb, 50);
    EXPECT_EQ(pool.start_max, std::chrono::seconds(1800));
    EXPECT_EQ(config->fleet.providers[0].options.at("key"), "sk");
    EXPECT_EQ(config->fleet.providers[0].options.at("base_url"), "https://api.novita.ai");
    EXPECT_THAT(pool.offers[0].gpus, ElementsAre("product-1"));

    const auto docker = load("", {{"WORKER_MANAGER", "docker"}, {"IMAGE", "img"}});
    ASSERT_TRUE(docker) << docker.error().message;
    EXPECT_EQ(docker->fleet.providers[0].options.at("ports"), "8188-8288");
    ASSERT_TRUE(docker->fleet.pools[0].scaling);
    EXPECT_EQ(docker->fleet.pools[0].scaling->min, 1);
    EXPECT_EQ(docker->fleet.pools[0].scaling->max, 10);
    EXPECT_EQ(docker->fleet.pools[0].scaling->idle_timeout, std::chrono::seconds(300));
    EXPECT_EQ(docker->fleet.pools[0].scaling->up_cooldown, std::chrono::seconds(60));

    const auto empty = load(
        "",
        {{"WORKER_MANAGER", "docker"}, {"IMAGE", "img"}, {"MIN_WORKERS", ""}, {"IDLE_TIMEOUT", ""}}
    );
    ASSERT_TRUE(empty) << empty.error().message;
    EXPECT_EQ(empty->fleet.pools[0].scaling->min, 1);

    EXPECT_TRUE(load("", {{"MIN_WORKERS", "nonsense"}})) << "nobody asks for a fleet";
}

TEST_F(FleetConfigTest, WrongVariablesAreRefusedByName) {
    const auto refused = [this](std::map<std::string, std::string> variables) {
        variables.emplace("WORKER_MANAGER", "docker");
        return refusal("", std::move(variables));
    };
    EXPECT_THAT(refused({{"MIN_WORKERS", "x"}}), HasSubstr("MIN_WORKERS"));
    EXPECT_THAT(refused({{"MAX_WORKERS", "0"}}), HasSubstr("MAX_WORKERS"));
    EXPECT_THAT(refused({{"MIN_WORKERS", "5"}, {"MAX_WORKERS", "2"}}), HasSubstr("MAX_WORKERS"));
    EXPECT_THAT(refused({{"IDLE_TIMEOUT", "-1"}}), HasSubstr("IDLE_TIMEOUT"));
    EXPECT_THAT(refused({{"SCALE_UP_COOLDOWN", "1h"}}), HasSubstr("SCALE_UP_COOLDOWN"));
    EXPECT_THAT(
        refused({{"PORT_RANGE_START", "9000"}, {"PORT_RANGE_END", "8000"}}),
        HasSubstr("PORT_RANGE_END")
    );
    EXPECT_THAT(refused({}), HasSubstr("IMAGE is needed"));
    EXPECT_THAT(refused({{"IMAGE", ""}}), HasSubstr("IMAGE is needed"));
    EXPECT_THAT(refusal("", {{"WORKER_MANAGER", "novita"}}), HasSubstr("NOVITA_API_KEY"));
    EXPECT_THAT(
        refusal("", {{"WORKER_MANAGER", "novita"}, {"NOVITA_API_KEY", "sk"}}),
        HasSubstr("NOVITA_IMAGE_URL")
    );
    EXPECT_THAT(
        refusal("", {{"WORKER_MANAGER", "runpod"}, {"IMAGE", "i"}}),
        HasSubstr("WORKER_MANAGER is docker or novita, not 'runpod'")
    );
}

// A list where a text is meant, nothing after the colon: such mistakes are told by the name, too.
TEST_F(FleetConfigTest, ValuesOfAnotherKindAreRefusedByName) {
    const auto of_template = [this](const std::string& members) {
        return pool_refusal(
            "name: x, offers: [{provider: a}], template: {image: i, " + members + "}"
        );
    };
    EXPECT_THAT(of_template("command: {a: b}"), HasSubstr("'command'"));
    EXPECT_THAT(of_template("command: [[a]]"), HasSubstr("'command'"));
    EXPECT_THAT(of_template("disk_gb: [1]"), HasSubstr("'disk_gb'"));
    EXPECT_THAT(of_template("disk_gb:"), HasSubstr("'disk_gb' without a value"));
    EXPECT_THAT(of_template("env: {A: [1]}"), HasSubstr("'env' with 'A'"));
    EXPECT_THAT(of_template("env: {A: }"), HasSubstr("'env' with 'A'"));
    for (const char* name : {"'A B'", "1A", "''", "A-B", "A.B"}) {
        EXPECT_THAT(of_template("env: {" + std::string(name) + ": x}"), HasSubstr("'env'")) << name;
    }
    EXPECT_THAT(of_template("packs: {a: b}"), HasSubstr("'packs'"));
    EXPECT_THAT(of_template("models: [[a]]"), HasSubstr("'models'"));
    EXPECT_THAT(of_template("models: {a: b}"), HasSubstr("'models'"));
    EXPECT_THAT(of_template("models: [{folder: [a]}]"), HasSubstr("'folder'"));
    EXPECT_THAT(of_template("models: [{folder: vae, bytes: many}]"), HasSubstr("'bytes'"));
    EXPECT_THAT(of_template("models: [{folder: vae, required: maybe}]"), HasSubstr("'required'"));
    EXPECT_THAT(of_template("warm_up: [a]"), HasSubstr("'warm_up'"));
    EXPECT_THAT(of_template("registry_user: [a]"), HasSubstr("'registry_user'"));
    EXPECT_THAT(of_template("registry_user: u"), HasSubstr("'registry_password'"));
    EXPECT_THAT(
        pool_refusal("name: x, offers: [{provider: a}], template: {image: 'a b'}"),
        HasSubstr("'image'")
    );
    const auto of_offer = [this](const std::string& members) {
        return pool_refusal(
            "name: x, template: {image: i}, offers: [{provider: a, " + members + "}]"
        );
    };
    EXPECT_THAT(of_offer("gpus: {a: b}"), HasSubstr("'gpus'"));
    EXPECT_THAT(of_offer("gpus: [[a]]"), HasSubstr("'gpus'"));
    EXPECT_THAT(of_offer("region: [a]"), HasSubstr("'region'"));
    EXPECT_THAT(of_offer("region:"), HasSubstr("'region' without a value"));
    EXPECT_THAT(of_offer("market: [spot]"), HasSubstr("'market'"));
    EXPECT_THAT(pool_refusal("name: [x], offers: [{provider: a}]"), HasSubstr("'name'"));
    EXPECT_THAT(
        pool_refusal("name: x, size: , offers: [{provider: a}]"),
        HasSubstr("'size' without a value")
    );
    EXPECT_THAT(refusal("providers: {a: {kind: [x]}}"), HasSubstr("'kind'"));
    EXPECT_THAT(refusal("providers: {a: {kind: docker, gpus: {a: b}}}"), HasSubstr("'gpus'"));
    EXPECT_THAT(refusal("providers: {a: {kind: docker, gpus: [[a]]}}"), HasSubstr("'gpus'"));
    EXPECT_THAT(refusal("providers: {a: {kind: docker, socket: }}"), HasSubstr("'socket'"));
    EXPECT_THAT(refusal("fleet: {packs_allowed: [[a]]}"), HasSubstr("wrong kind"));
}

TEST_F(FleetConfigTest, NothingMayBePaidWhereThatIsWritten) {
    const auto config = load(
        "providers: {a: {kind: docker}}\n"
        "pools:\n"
        "  - {name: x, template: {image: i}, offers: [{provider: a, max_usd_per_hour: 0}]}\n"
    );
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->fleet.pools[0].offers[0].usd_per_hour_max, 0.0);
}

TEST_F(FleetConfigTest, AKindThatThereIsNotIsRefusedByName) {
    const auto config = load("providers: {far: {kind: moon}}\n");
    ASSERT_TRUE(config) << config.error().message;
    boost::asio::io_context io;
    SystemClock clock;
    Pool pool(1);
    const auto made =
        make_machine_providers({io.get_executor(), clock, pool, *config, folder_.path()});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::config_invalid);
    EXPECT_THAT(made.error().message, HasSubstr("'moon'"));
    EXPECT_THAT(made.error().message, HasSubstr("'far'"));
}

TEST_F(FleetConfigTest, WhatIsWrongWithAProviderIsToldByItsName) {
    const auto config = load("providers: {desk: {kind: process, dir: /no/such/folder}}\n");
    ASSERT_TRUE(config) << config.error().message;
    boost::asio::io_context io;
    SystemClock clock;
    Pool pool(1);
    const auto made =
        make_machine_providers({io.get_executor(), clock, pool, *config, folder_.path()});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr("provider 'desk': 'dir' names '/no/such/folder'"));
}

TEST_F(FleetConfigTest, PacksOfATemplateMustBeAllowed) {
    const std::string at(40, 'a');
    const auto with = [](const std::string& allowed, const std::string& packs) {
        return "fleet: {packs_allowed: [" + allowed + "]}\nproviders: {a: {kind: docker}}\n" +
               "pools:\n  - {name: x, offers: [{provider: a}], template: {image: i, packs: [" +
               packs + "]}}\n";
    };
    const std::string url = "https://example.com/nodes/one@" + at;
    const auto config = load(with(
        "https://example.com/nodes/, /srv/",
        url + ", /srv/two, \"image:" + "https://example.com/nodes/three@" + at + "\""
    ));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_THAT(config->fleet.pools[0].made_from.packs, SizeIs(3));
    for (const std::string& pack : {url, "\"image:" + url + "\"", std::string("/srv/two")}) {
        const std::string refused = refusal(with("https://example.org/", pack));
        EXPECT_THAT(refused, HasSubstr("fleet.packs_allowed")) << pack;
        EXPECT_THAT(refused, HasSubstr("the pool 'x'"));
    }
    EXPECT_THAT(
        refusal(with("https://example.com/", "\"https://example.com/nodes/one@main\"")),
        HasSubstr("40 digits")
    );
    EXPECT_THAT(refusal(with("/srv/", "/srv/a b")), HasSubstr("space"));
    EXPECT_THAT(refusal(with("/srv/", "/srv/a, /srv/x/a")), HasSubstr("there already"));
}

TEST_F(FleetConfigTest, AnotherImageOrPackIsOtherSoftware) {
    const auto software = [this](const std::string& more, const std::string& offer = "a") {
        const auto config = load(
            "fleet: {packs_allowed: [/srv/]}\nproviders: {a: {kind: docker}, b: {kind: process, "
            "dir: /opt/ComfyUI}}\npools:\n  - {name: x, offers: [{provider: " +
            offer + "}], template: {" + more + "}}\n"
        );
        EXPECT_TRUE(config) << config.error().message;
        return config ? software_of(config->fleet, config->fleet.pools[0]) : "";
    };
    const std::string first = software("image: one");
    EXPECT_EQ(software("image: one, disk_gb: 7, slots: 2"), first);
    std::set<std::string> all{first};
    for (const char* other :
         {"image: two",
          "image: one, packs: [/srv/a]",
          "image: one, command: [x]",
          "image: one, env: {A: b}"}) {
        EXPECT_TRUE(all.insert(software(other)).second) << other;
    }
    EXPECT_TRUE(all.insert(software("image: one", "b")).second) << "it has its own";
}

std::string scaled_pool(const std::string& members) {
    return "providers: {a: {kind: docker}}\npools:\n  - name: p\n    template: {image: i}\n"
           "    offers: [{provider: a}]\n    " +
           members + "\n";
}

TEST_F(FleetConfigTest, APoolWithoutASizeIsScaled) {
    const auto plain = load(scaled_pool("spare: 0"));
    ASSERT_TRUE(plain) << plain.error().message;
    ASSERT_TRUE(plain->fleet.pools[0].scaling);
    EXPECT_EQ(plain->fleet.pools[0].scaling->min, 0);
    EXPECT_EQ(plain->fleet.pools[0].scaling->max, 10);
    EXPECT_EQ(plain->fleet.pools[0].scaling->idle_timeout, std::chrono::seconds(300));
    const auto full = load(
        "fleet: {usd_per_day: 20}\n" +
        scaled_pool("min: 1\n    max: 5\n    spare: 2\n    idle_timeout: 60\n    up_cooldown: 0\n"
                    "    spot_wait: 9\n    forecast: false\n"
                    "    schedule: [{days: 'mon-wed,sun', from: '08:00', to: '18:30', min: 3}]\n"
                    "    budget: {usd_per_hour: 1.5, usd_per_month: 900}")
    );
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->fleet.budget.usd_per_day, 20);
    const autoscale::Settings& scaling = *full->fleet.pools[0].scaling;
    EXPECT_EQ(scaling.spare, 2);
    EXPECT_EQ(scaling.spot_wait, std::chrono::seconds(9));
    EXPECT_FALSE(scaling.uses_forecast);
    ASSERT_THAT(scaling.schedule, SizeIs(1));
    EXPECT_EQ(scaling.schedule[0].weekdays, 0b1000111U);
    EXPECT_EQ(scaling.schedule[0].to_minute, 18 * 60 + 30);
    EXPECT_EQ(scaling.budget.usd_per_month, 900);
    const auto sized = load(scaled_pool("size: 2"));
    ASSERT_TRUE(sized);
    EXPECT_FALSE(sized->fleet.pools[0].scaling);
    const auto dry = load(scaled_pool("size: 2\n    max: 4\n    dry_run: true"));
    ASSERT_TRUE(dry) << dry.error().message;
    EXPECT_TRUE(dry->fleet.pools[0].scaling && dry->fleet.pools[0].is_dry_run);
}

TEST_F(FleetConfigTest, WrongScalingIsRefusedByName) {
    const std::vector<std::pair<std::string, std::string>> wrong{
        {"size: 2\n    max: 4", "dry_run"},
        {"size: 2\n    budget: {usd_per_day: 1}", "'budget'"},
        {"dry_run: true", "'size'"},
        {"dry_run: maybe", "'dry_run'"},
        {"min: 5\n    max: 2", "'min'"},
        {"min: -1", "'min'"},
        {"max: 0", "'max'"},
        {"max: many", "'max'"},
        {"spare: 1.5", "'spare'"},
        {"idle_timeout: 5m", "'idle_timeout'"},
        {"up_cooldown: -1", "'up_cooldown'"},
        {"spot_wait: x", "'spot_wait'"},
        {"forecast: 1", "'forecast'"},
        {"schedule: {days: mon}", "'schedule'"},
        {"schedule: [mon]", "'schedule'"},
        {"schedule: [{days: monday, min: 1}]", "'days'"},
        {"schedule: [{from: '8', min: 1}]", "'from'"},
        {"schedule: [{from: '08:60', min: 1}]", "'from'"},
        {"schedule: [{to: '24:01', min: 1}]", "'from'"},
        {"schedule: [{min: 11}]", "'min'"},
        {"schedule: [{least: 1}]", "'least'"},
        {"schedule: [{}]", "'min'"},
        {"schedule: [{min: 2}, {days: sat}]", "without 'min'"},
        {"budget: 5", "'budget'"},
        {"budget: {usd_per_day: -5}", "'usd_per_day'"},
        {"budget: {usd_per_day: 1e999}", "'usd_per_day'"},
        {"budget: {usd_per_week: 5}", "'usd_per_week'"},
    };
    for (const auto& [members, named] : wrong) {
        EXPECT_THAT(refusal(scaled_pool(members), {}), HasSubstr(named)) << members;
    }
    EXPECT_THAT(refusal("fleet: {usd_per_day: -1}\n", {}), HasSubstr("fleet.usd_per_day"));
}

}  // namespace
}  // namespace comfyd::app
