#include "fleet/providers/provider_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ProviderSettings, OfDocker) {
    const auto read = read_docker(
        "box",
        {{"socket", "/run/x.sock"},
         {"network", "host"},
         {"ports", "8188-8288"},
         {"gpus", "GPU-1, GPU-2"},
         {"per_gpu", "3"},
         {"gpu_kind", "RTX 4090"},
         {"gpu_memory_gb", "24"},
         {"usd_per_hour", "0.25"},
         {"pull", "never"},
         {"volumes", "/models:/models:ro"},
         {"stop_grace_s", "5"}}
    );
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->name, "box");
    EXPECT_EQ(read->port_first, 8188);
    EXPECT_EQ(read->port_last, 8288);
    EXPECT_THAT(read->gpus, ElementsAre("GPU-1", "GPU-2"));
    EXPECT_EQ(read->per_gpu, 3);
    EXPECT_EQ(read->gpu_memory_bytes, 24'000'000'000U);
    EXPECT_EQ(read->usd_per_hour, 0.25);
    EXPECT_EQ(read->pull, DockerOptions::Pull::never);
    EXPECT_EQ(read->stop_grace, std::chrono::seconds(5));
    EXPECT_TRUE(check_docker(*read));
    EXPECT_TRUE(check_docker(*read_docker("d", {})));
}

TEST(ProviderSettings, OfClouds) {
    const auto novita = read_novita(
        "n",
        {{"key", "k"},
         {"base_url", "https://api.ppio.com/"},
         {"regions", "a,b"},
         {"can_park", "true"},
         {"product_id", "p"}}
    );
    ASSERT_TRUE(novita) << novita.error().message;
    EXPECT_EQ(novita->url, "https://api.ppio.com/gpus/v2");
    EXPECT_THAT(novita->regions, ElementsAre("a", "b"));
    EXPECT_TRUE(novita->can_park);
    EXPECT_EQ(novita->product, "p");
    const auto runpod = read_runpod("r", {{"key", "k"}, {"clouds", "COMMUNITY,SECURE"}});
    ASSERT_TRUE(runpod);
    EXPECT_THAT(runpod->clouds, ElementsAre("COMMUNITY", "SECURE"));
    const auto kubernetes = read_kubernetes(
        "k", {{"namespace", "ns"}, {"node_selector", "a=b, c=d=e"}, {"claims", "models=/models"}}
    );
    ASSERT_TRUE(kubernetes);
    EXPECT_EQ(kubernetes->node_selector.at("c"), "d=e");
    EXPECT_EQ(kubernetes->claims.at("models"), "/models");
}

TEST(ProviderSettings, WrongOnesAreRefusedByName) {
    const auto why = [](const ProviderWords& words) {
        const auto read = read_docker("box", words);
        return read ? std::string("good") : read.error().message;
    };
    EXPECT_EQ(
        why({{"sockt", "/x"}}), "provider 'box': sockt is no setting of this kind of provider"
    );
    for (const char* ports : {"8188", "8188-", "-8288", "a-b", "1-2-3"}) {
        EXPECT_THAT(why({{"ports", ports}}), HasSubstr("ports must look like")) << ports;
    }
    for (const char* number : {"0", "-1", "1.5", "x", "1e99", "2x", "nan"}) {
        EXPECT_THAT(why({{"per_gpu", number}}), HasSubstr("per_gpu must be")) << number;
    }
    EXPECT_THAT(why({{"pull", "often"}}), HasSubstr("pull must be"));
    EXPECT_THAT(why({{"usd_per_hour", "free"}}), HasSubstr("usd_per_hour"));
    EXPECT_THAT(read_novita("n", {{"can_park", "maybe"}}).error().message, HasSubstr("can_park"));
    EXPECT_THAT(read_kubernetes("k", {{"claims", "models"}}).error().message, HasSubstr("claims"));
    EXPECT_THAT(read_runpod("r", {{"api_key", "secret"}}).error().message, HasSubstr("api_key"));
    EXPECT_THAT(
        read_runpod("r", {{"api_key", "secret"}}).error().message, testing::Not(HasSubstr("secret"))
    );
    EXPECT_THAT(
        read_runpod("r", {{"key", "k"}, {"ca_file", "/nowhere"}}).error().message,
        HasSubstr("ca_file names '/nowhere'")
    );
    for (const char* version : {"x", "12", "12.", ".8", "12.8.1", "12.x"}) {
        EXPECT_THAT(read_vast("v", {{"cuda_min", version}}).error().message, HasSubstr("cuda_min"))
            << version;
    }
    for (const char* key : {"a b", "secret\nHost: x", "secret\x80"}) {
        const auto read = read_salad("s", {{"key", key}});
        ASSERT_FALSE(read) << key;
        EXPECT_THAT(read.error().message, HasSubstr("key has a space"));
        EXPECT_THAT(read.error().message, testing::Not(HasSubstr("secret")));
    }
}

}  // namespace
}  // namespace comfyd::fleet
