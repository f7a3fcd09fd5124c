// Against a double that keeps to RunPod's own document (tests/data/providers/runpod.json).
#include "fleet/providers/runpod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/providers/cloud_test_support.hpp"
#include "fleet/providers/runpod_pods.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using test::make_order;
using testing::ElementsAre;
using testing::HasSubstr;

class RunPodTest : public test::CloudTest<support::RunPodDouble> {
protected:
    RunPodTest() {
        options_.key = support::CloudDouble::kKey;
        options_.url = cloud_.url();
        open();
    }
    Result<std::unique_ptr<MachineProvider>> make() override {
        return make_runpod(loop_.executor(), options_, clock_);
    }
    std::vector<std::string> ids(OfferWish wish) {
        std::vector<std::string> found;
        for (const Offer& offer : offers(std::move(wish))) {
            found.push_back(offer.id);
        }
        return found;
    }

    RunPodOptions options_;
};

TEST_F(RunPodTest, OffersTheBestFirst) {
    EXPECT_THAT(
        ids({.provider = ""}),
        ElementsAre(
            "SECURE/NVIDIA GeForce RTX 4090",
            "SECURE/NVIDIA L40S",
            "SECURE/NVIDIA H100 80GB HBM3",
            "SECURE/NVIDIA A40"
        )
    );
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"A40", "H100", "RTX 4090"}}),
        ElementsAre(
            "SECURE/NVIDIA H100 80GB HBM3", "SECURE/NVIDIA GeForce RTX 4090", "SECURE/NVIDIA A40"
        )
    ) << "what is there first, and in the order of the wish";
    EXPECT_THAT(
        ids({.provider = "", .gpus = {}, .usd_per_hour_max = 0.5}),
        ElementsAre("SECURE/NVIDIA GeForce RTX 4090", "SECURE/NVIDIA A40")
    );
    EXPECT_THAT(ids({.provider = "", .gpus = {}, .market = Market::spot}), ElementsAre());
    EXPECT_THAT(ids({.provider = "", .gpus = {"RTX 4090"}, .region = "EU-1"}), ElementsAre());
    EXPECT_EQ(ids({.provider = "", .gpus = {"RTX 4090"}, .region = "US-KS-2"}).size(), 1u);
    const Offer offer = best();
    EXPECT_EQ(offer.usd_per_hour, 0.44);
    EXPECT_EQ(offer.gpu_memory_bytes, 24'000'000'000U);
    EXPECT_EQ(offer.available, -1);
    const auto none = offers({.provider = "", .gpus = {"A40"}});
    EXPECT_EQ(none.at(0).available, 0);
    // All GPUs of a machine are paid for.
    const auto two = offers({.provider = "", .gpus = {"RTX 4090"}, .gpus_each = 2});
    EXPECT_EQ(two.at(0).usd_per_hour, 0.88);
    expect_nothing_wrong();
}

TEST_F(RunPodTest, TwoCloudsInOrderOfPrice) {
    close();
    options_.clouds = {"SECURE", "COMMUNITY"};
    open();
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"RTX 4090"}}),
        ElementsAre("COMMUNITY/NVIDIA GeForce RTX 4090", "SECURE/NVIDIA GeForce RTX 4090")
    );
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"RTX 4090"}, .gpus_each = 3}),
        ElementsAre("SECURE/NVIDIA GeForce RTX 4090")
    ) << "machines of the other are not that large";
    expect_nothing_wrong();
}

TEST_F(RunPodTest, LivesFromCreateToRemove) {
    auto order = make_order("1", best());
    order.made_from.command = {"comfyd", "worker", "--comfyui", "/opt/Comfy UI"};
    order.made_from.disk_gb = 50;
    const auto id = create(order);
    ASSERT_TRUE(id) << id.error().message;
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(body.at("args"), "comfyd worker --comfyui '/opt/Comfy UI'");
    EXPECT_EQ(json::serialize(body.at("ports")), R"(["18188/http"])");
    EXPECT_EQ(body.at("env").at("COMFYD_WORKER_TOKEN"), "worker-token-1");
    EXPECT_EQ(body.at("env").at("COMFYD_INSTANCE"), "1");
    EXPECT_EQ(body.at("disk"), 50);
    EXPECT_EQ(body.at("cloud"), "SECURE");
    EXPECT_EQ(only().state, State::starting);
    EXPECT_EQ(only().state, State::running);
    const Machine machine = only();
    EXPECT_EQ(machine.id, *id);
    EXPECT_EQ(machine.url, "https://" + *id + "-18188.proxy.runpod.net");
    EXPECT_EQ(machine.usd_per_hour, 0.44);
    EXPECT_EQ(machine.made_at, parse_rfc3339("2026-11-15T05:10:56Z"));
    EXPECT_EQ(loop_.run(provider_->logs(*id, 50)), "Model loaded.\nReady.\n");
    EXPECT_TRUE(loop_.run(provider_->stop(*id)));
    EXPECT_TRUE(loop_.run(provider_->stop(*id))) << "it is so already";
    EXPECT_EQ(only().state, State::stopped);
    EXPECT_EQ(only().url, std::nullopt);
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(becomes(State::running));
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id))) << "it is gone already";
    EXPECT_TRUE(list()->empty());
    EXPECT_EQ(loop_.run(provider_->stop(*id)).error().code, Code::not_found);
    expect_nothing_wrong();
}

TEST_F(RunPodTest, AllThatCanBeSetIsInItsDocument) {
    close();
    options_.data_centers = {"US-KS-2", "EU-RO-1"};
    options_.registry = "reg1";
    options_.volume = "vol1";
    options_.volume_path = "/models";
    options_.cuda_min = "12.8";
    open();
    ASSERT_TRUE(create(make_order("1", best())));
    EXPECT_EQ(
        json::serialize(cloud_.last_create()->at("mounts")),
        R"({"network":[{"volumeId":"vol1","path":"/models"}]})"
    );
    EXPECT_EQ(cloud_.last_create()->at("gpu").at("minCudaVersion"), "12.8");
    expect_nothing_wrong();
}

TEST_F(RunPodTest, FailuresAreToldApart) {
    failures_are_told_apart();
}

// Only its text says whether a 400 is a broken rule or no stock.
TEST_F(RunPodTest, ARefusalMayMeanEither) {
    const Offer offer = best();
    cloud_.set({.out_of_stock = 1});
    const auto gone = create(make_order("1", offer));
    EXPECT_EQ(gone.error().code, Code::out_of_stock);
    EXPECT_EQ(gone.error().details.at("may_be_wrong"), false);
    EXPECT_FALSE(speaks_of_capacity("mounts.network and mounts.persistent exclude each other"));
    EXPECT_EQ(meaning_of_create({.status = 403}), Code::out_of_stock) << "the next may do";
    EXPECT_EQ(meaning_of_create({.status = 401}), Code::unauthorized);
    EXPECT_EQ(meaning_of_create({.status = 422}), Code::invalid_argument);
    EXPECT_EQ(meaning_of_create({.status = 503}), Code::upstream_error);
}

TEST_F(RunPodTest, AnUnclearCreateIsFoundAgain) {
    an_unclear_create_is_found_again();
}

TEST_F(RunPodTest, PagesErrorsAndLimitsAreSurvived) {
    pages_errors_and_limits_are_survived();
}

TEST_F(RunPodTest, OthersAreNotTouched) {
    others_are_not_touched();
}

TEST_F(RunPodTest, SecretsStaySecret) {
    secrets_stay_secret();
}

TEST_F(RunPodTest, OneThatNeverStartsIsSeenToStart) {
    cloud_.set({.starts_never = true});
    const auto id = create(make_order("1", best()));
    ASSERT_TRUE(id);
    for (int looks = 0; looks < 5; ++looks) {
        EXPECT_EQ(only().state, State::creating);
        EXPECT_EQ(only().url, std::nullopt);
    }
    cloud_.change(*id, [](json::object& pod) { pod["status"] = "ERROR"; });
    EXPECT_EQ(only().state, State::failed);
    EXPECT_THAT(only().reason, HasSubstr("ERROR"));
}

TEST_F(RunPodTest, AWrongKeyIsAWrongKey) {
    close();
    options_.key = "another-key";
    open();
    EXPECT_EQ(list().error().code, Code::unauthorized);
    EXPECT_EQ(loop_.run(provider_->offers({.provider = ""})).error().code, Code::unauthorized);
}

TEST_F(RunPodTest, OrdersThatCannotBeAreNotSent) {
    const Offer offer = best();
    auto order = make_order("1", offer);
    order.made_from.gpus = 0;
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
    order = make_order("1", offer);
    order.offer.id = "something";
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
    order = make_order("1", offer);
    order.made_from.registry_user = "me";
    EXPECT_THAT(create(order).error().message, HasSubstr("'registry'"));
    order = make_order("1", offer);
    for (int i = 0; i < 50; ++i) {
        order.made_from.environment["V" + std::to_string(i)] = "x";
    }
    EXPECT_THAT(create(order).error().message, HasSubstr("at most 50"));
    EXPECT_EQ(cloud_.asked("create"), 0);
}

TEST(RunPodPods, AnswersOfAnyKindAreSurvived) {
    for (const char* text :
         {"null",
          "[]",
          "{}",
          R"({"gpus":7})",
          R"({"gpus":[null,7,{},{"id":7},{"id":"x","secure":1}]})"}) {
        EXPECT_TRUE(read_catalog(*json::parse(text), {.provider = ""}, "SECURE").empty()) << text;
    }
    EXPECT_FALSE(read_pod({}, *json::parse("[]")));
    EXPECT_FALSE(read_pod({}, *json::parse(R"({"id":7})")));
    const auto odd = read_pod(
        {}, *json::parse(R"({"id":"a.evil.com/","status":"RUNNING","ports":["18188/http"]})")
    );
    ASSERT_TRUE(odd);
    EXPECT_EQ(odd->url, std::nullopt) << "a token goes to no other host";
    EXPECT_EQ(
        read_log_events("data: {\"line\":\"a\"}\r\n\ndata: x\n:ping\ndata:{\"line\":\"b\"}"),
        "a\nb\n"
    );
}

TEST(RunPodSettings, WrongOnesAreRefusedByName) {
    RunPodOptions good;
    good.key = "k";
    EXPECT_TRUE(check_runpod(good));
    const auto why = [&](const std::function<void(RunPodOptions&)>& change) {
        RunPodOptions options = good;
        change(options);
        const auto checked = check_runpod(options);
        return checked ? std::string("good") : checked.error().message;
    };
    EXPECT_THAT(why([](RunPodOptions& o) { o.key = ""; }), HasSubstr("key"));
    EXPECT_THAT(why([](RunPodOptions& o) { o.url = "http://x.com"; }), HasSubstr("url"));
    EXPECT_THAT(
        why([](RunPodOptions& o) { o.agent_url = "http://x.com"; }), HasSubstr("agent_url")
    );
    EXPECT_THAT(why([](RunPodOptions& o) { o.clouds = {"any"}; }), HasSubstr("clouds"));
    EXPECT_THAT(why([](RunPodOptions& o) { o.volume = "v"; }), HasSubstr("volume_path"));
}

}  // namespace
}  // namespace comfyd::fleet
