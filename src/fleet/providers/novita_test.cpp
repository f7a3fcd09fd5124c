// Against a double that keeps to what is known of Novita's API (tests/data/providers/novita.json).
#include "fleet/providers/novita.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/providers/cloud_test_support.hpp"
#include "fleet/providers/novita_instances.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using test::make_order;
using testing::ElementsAre;
using testing::HasSubstr;

class NovitaTest : public test::CloudTest<support::NovitaDouble> {
protected:
    NovitaTest() {
        options_.key = support::CloudDouble::kKey;
        options_.url = cloud_.url();
        open();
    }
    Result<std::unique_ptr<MachineProvider>> make() override {
        return make_novita(loop_.executor(), options_, clock_);
    }
    std::vector<std::string> ids(OfferWish wish) {
        std::vector<std::string> found;
        for (const Offer& offer : offers(std::move(wish))) {
            found.push_back(offer.id);
        }
        return found;
    }

    NovitaOptions options_;
};

TEST_F(NovitaTest, OffersOfBothMarkets) {
    EXPECT_THAT(ids({.provider = ""}), ElementsAre("p-4090", "p-h100", "p-l40s"));
    EXPECT_THAT(
        ids({.provider = "", .gpus = {}, .market = Market::spot}), ElementsAre("p-4090", "p-l40s")
    ) << "where there is no price there is no spot";
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"H100", "RTX 4090"}}), ElementsAre("p-h100", "p-4090")
    );
    EXPECT_THAT(ids({.provider = "", .gpus = {}, .usd_per_hour_max = 0.36}), ElementsAre("p-4090"));
    EXPECT_EQ(best().usd_per_hour, 0.35);
    EXPECT_EQ(best().available, 7);
    EXPECT_EQ(best().gpu_memory_bytes, 24'000'000'000U);
    const auto spot = offers({.provider = "", .gpus = {"RTX 4090"}, .market = Market::spot});
    EXPECT_EQ(spot.at(0).usd_per_hour, 0.18);
    EXPECT_EQ(spot.at(0).market, Market::spot);
    const auto two = offers({.provider = "", .gpus = {"RTX 4090"}, .gpus_each = 2});
    EXPECT_EQ(two.at(0).usd_per_hour, 0.70);
    EXPECT_EQ(two.at(0).available, 3);
    close();
    options_.product = "p-h100";
    open();
    EXPECT_THAT(ids({.provider = ""}), ElementsAre("p-h100"));
    expect_nothing_wrong();
}

TEST_F(NovitaTest, LivesFromCreateToRemove) {
    auto order = make_order("1", best());
    order.made_from.command = {"comfyd", "worker"};
    order.made_from.environment["EMPTY"] = "";
    const auto id = create(order);
    ASSERT_TRUE(id) << id.error().message;
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(body.at("billing").at("mode"), "postpaid");
    EXPECT_EQ(json::serialize(body.at("ports")), R"([{"port":18188,"protocol":"http"}])");
    EXPECT_EQ(json::serialize(body.at("resource")), R"({"rootfs_size_gb":60,"gpu_num":1})");
    EXPECT_THAT(
        json::serialize(body.at("envs")),
        HasSubstr(R"({"key":"COMFYD_WORKER_TOKEN","value":"worker-token-1"})")
    );
    EXPECT_EQ(only().state, State::creating);
    EXPECT_EQ(only().state, State::pulling);
    EXPECT_EQ(only().state, State::running);
    const Machine machine = only();
    EXPECT_EQ(machine.id, *id);
    EXPECT_EQ(machine.url, "https://" + *id + "-18188.us-ca-6.gpu-instance.novita.ai");
    EXPECT_EQ(machine.made_at, from_unix_ms(1'763'183'456'000));
    EXPECT_EQ(machine.reclaimed_at, std::nullopt);
    EXPECT_TRUE(loop_.run(provider_->stop(*id)));
    EXPECT_TRUE(becomes(State::stopped));
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(becomes(State::running));
    EXPECT_FALSE(loop_.run(provider_->logs(*id, 5)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id))) << "it is gone already";
    EXPECT_EQ(loop_.run(provider_->start(*id)).error().code, Code::not_found);
    EXPECT_TRUE(list()->empty());
    expect_nothing_wrong();
}

TEST_F(NovitaTest, AllThatCanBeSetIsInItsContract) {
    close();
    options_.regions = {"us-ca-6"};
    options_.registry = "reg1";
    options_.volume = "vol1";
    options_.volume_path = "/models";
    options_.cuda_min = "12.8";
    open();
    auto spot = offers({.provider = "", .gpus = {"RTX 4090"}, .market = Market::spot}).at(0);
    spot.region = "eu-1";
    auto order = make_order("1", spot);
    order.made_from.disk_gb = 100;
    ASSERT_TRUE(create(order));
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(body.at("billing").at("mode"), "spot");
    EXPECT_EQ(json::serialize(body.at("candidate_regions")), R"(["eu-1"])");
    EXPECT_EQ(
        json::serialize(body.at("volumes")),
        R"([{"type":"network","id":"vol1","mount_point":"/models"}])"
    );
    EXPECT_EQ(body.at("resource").at("rootfs_size_gb"), 100);
    expect_nothing_wrong();
}

TEST_F(NovitaTest, ASpotMachinesEndIsAnnounced) {
    const auto id = create(make_order("1", best()));
    ASSERT_TRUE(id);
    ASSERT_TRUE(becomes(State::running));
    cloud_.change(*id, [](json::object& instance) {
        instance["spot_status"] = "running";
        instance["spot_reclaim_time"] = "0";
    });
    EXPECT_EQ(only().reclaimed_at, std::nullopt);
    cloud_.change(*id, [](json::object& instance) {
        instance["spot_status"] = "notified";
        instance["spot_reclaim_time"] = "1763190000";
    });
    EXPECT_EQ(only().state, State::running);
    EXPECT_EQ(only().reclaimed_at, from_unix_ms(1'763'190'000'000));
    cloud_.change(*id, [](json::object& instance) { instance["spot_reclaim_time"] = "0"; });
    EXPECT_TRUE(only().reclaimed_at) << "now, where no time is told";
}

TEST_F(NovitaTest, AListOfManyPages) {
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(create(make_order(std::to_string(i), best())));
    }
    EXPECT_EQ(list()->size(), 5u);
    expect_nothing_wrong();
}

TEST_F(NovitaTest, OneThatFailsToStartSaysWhy) {
    cloud_.set({.starts_never = true});
    const auto id = create(make_order("1", best()));
    ASSERT_TRUE(id);
    EXPECT_TRUE(becomes(State::pulling));
    EXPECT_EQ(only().state, State::pulling);
    cloud_.change(*id, [](json::object& instance) {
        instance["status"] = {
            {"status", "exited"}, {"error", "ErrImagePull"}, {"message", "manifest unknown"}
        };
    });
    EXPECT_EQ(only().state, State::failed);
    EXPECT_EQ(only().reason, "ErrImagePull: manifest unknown");
}

TEST_F(NovitaTest, FailuresAreToldApart) {
    for (int form = 0; form < 4; ++form) {  // of its errors
        failures_are_told_apart();
        EXPECT_TRUE(loop_.run(provider_->remove(only().id)));
        cloud_.set({.errors = 1});
        EXPECT_TRUE(list());
    }
}

TEST_F(NovitaTest, AnUnclearCreateIsFoundAgain) {
    an_unclear_create_is_found_again();
}

TEST_F(NovitaTest, PagesErrorsAndLimitsAreSurvived) {
    pages_errors_and_limits_are_survived();
}

TEST_F(NovitaTest, OthersAreNotTouched) {
    others_are_not_touched();
}

TEST_F(NovitaTest, SecretsStaySecret) {
    secrets_stay_secret();
}

TEST(NovitaWords, FourFormsOfAnError) {
    const auto words = [](const char* text) { return words_of_novita(*json::parse_object(text)); };
    EXPECT_EQ(words(R"({"message":"m"})"), "m");
    EXPECT_EQ(words(R"({"code":400,"reason":"R","message":"m","metadata":{}})"), "R: m");
    EXPECT_EQ(words(R"({"error":"e"})"), "e");
    EXPECT_EQ(words(R"({"error":{"message":"e"}})"), "e");
    EXPECT_EQ(words(R"({"error":7,"message":[]})"), "");
    const auto code = [](int status, std::string said) {
        return meaning_of_novita({.status = status, .body = nullptr, .words = std::move(said)});
    };
    EXPECT_EQ(code(400, "RESOURCE_NOT_FOUND: x"), Code::not_found);
    EXPECT_EQ(code(400, "INSUFFICIENT_RESOURCE: x"), Code::out_of_stock);
    EXPECT_EQ(code(400, "Insufficient balance"), Code::balance_empty);
    EXPECT_EQ(code(402, ""), Code::balance_empty);
    EXPECT_EQ(code(403, "quota exceeded"), Code::out_of_stock);
    EXPECT_EQ(code(403, "no right"), Code::forbidden);
    EXPECT_EQ(code(400, "bad name"), Code::invalid_argument);
    EXPECT_EQ(code(500, "balance service is down"), Code::upstream_error);
}

TEST(NovitaInstances, RegionsAsHostsHaveThem) {
    EXPECT_EQ(region_in_hosts("US-CA-06 (California)"), "us-ca-6");
    EXPECT_EQ(region_in_hosts("us-ca-6"), "us-ca-6");
    EXPECT_EQ(region_in_hosts("eu-10"), "eu-10");
    EXPECT_EQ(region_in_hosts("x-0"), "x-0");
    EXPECT_EQ(region_in_hosts("evil.com/"), "");
    EXPECT_EQ(region_in_hosts(""), "");
}

TEST(NovitaInstances, AnswersOfAnyKindAreSurvived) {
    for (const char* text :
         {"null", "[]", "{}", R"({"data":{}})", R"({"data":[null,7,{},{"id":7}]})"}) {
        EXPECT_TRUE(read_products(*json::parse(text), {.provider = ""}).empty()) << text;
    }
    const auto odd = read_products(
        *json::parse(
            R"({"data":[{"id":"a","name":"X","pricing":{"precision":1e9,"postpaid":{"final_price":"5"}},
            "resource_spec":{"gpu":{"memory_gb":-1,"available":true}}}]})"
        ),
        {.provider = ""}
    );
    ASSERT_EQ(odd.size(), 1u);
    EXPECT_EQ(odd[0].usd_per_hour, std::nullopt);
    EXPECT_EQ(odd[0].available, -1);
    EXPECT_FALSE(read_instance({}, *json::parse(R"({"id":[]})"), Time()));
    const auto plain = read_instance(
        {}, *json::parse(R"({"id":"a","status":"running","created_at":"x","region":7})"), Time()
    );
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->state, State::running);
    EXPECT_EQ(plain->url, std::nullopt);
    EXPECT_EQ(
        read_instance({}, *json::parse(R"({"id":"a","status":{"status":"melting"}})"), Time())
            ->reason,
        "Novita calls it 'melting'"
    );
}

TEST(NovitaSettings, WrongOnesAreRefusedByName) {
    NovitaOptions good;
    good.key = "k";
    EXPECT_TRUE(check_novita(good));
    const auto why = [&](const std::function<void(NovitaOptions&)>& change) {
        NovitaOptions options = good;
        change(options);
        const auto checked = check_novita(options);
        return checked ? std::string("good") : checked.error().message;
    };
    EXPECT_THAT(why([](NovitaOptions& o) { o.key = ""; }), HasSubstr("key"));
    EXPECT_THAT(why([](NovitaOptions& o) { o.url = "http://x.com"; }), HasSubstr("url"));
    EXPECT_THAT(why([](NovitaOptions& o) { o.disk_gb = 1; }), HasSubstr("disk_gb"));
    EXPECT_THAT(why([](NovitaOptions& o) { o.volume_path = "/m"; }), HasSubstr("volume"));
}

}  // namespace
}  // namespace comfyd::fleet
