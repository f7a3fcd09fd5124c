// Against a double that keeps to Vast's own document (tests/data/providers/vast.json).
#include "fleet/providers/vast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/providers/cloud_test_support.hpp"
#include "fleet/providers/vast_contracts.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using test::make_order;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class VastTest : public test::CloudTest<support::VastDouble> {
protected:
    VastTest() {
        options_.key = support::CloudDouble::kKey;
        options_.url = cloud_.url();
        options_.create_gap = options_.remove_gap = options_.other_gap = Millis(0);
        options_.log_pause = Millis(1);
        open();
    }
    Result<std::unique_ptr<MachineProvider>> make() override {
        return make_vast(loop_.executor(), options_, clock_);
    }
    std::vector<std::string> ids(OfferWish wish) {
        std::vector<std::string> found;
        for (const Offer& offer : offers(std::move(wish))) {
            found.push_back(offer.id);
        }
        return found;
    }
    Offer best_spot() {
        return offers({.provider = "", .gpus = {"RTX 4090"}, .market = Market::spot}).at(0);
    }

    VastOptions options_;
};

TEST_F(VastTest, OffersTheCheapestOfTheFirstKindThatThereIs) {
    EXPECT_THAT(ids({.provider = ""}), ElementsAre("5006", "5002", "5001", "5005", "5004", "5003"));
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"NVIDIA GeForce RTX 4090"}}),
        ElementsAre("5002", "5001", "5005")
    );
    EXPECT_THAT(ids({.provider = "", .gpus = {"H200", "A100", "RTX 4090"}}), ElementsAre("5004"))
        << "kinds in the order of the wish";
    EXPECT_THAT(ids({.provider = "", .gpus = {"H100"}}), ElementsAre("5003"));
    EXPECT_THAT(ids({.provider = "", .gpus = {"RTX 4090"}, .region = "SE"}), ElementsAre("5001"));
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"RTX 4090"}, .usd_per_hour_max = 0.35}), ElementsAre("5002")
    );
    EXPECT_THAT(ids({.provider = "", .gpus = {"RTX 4090"}, .gpus_each = 2}), ElementsAre());
    const Offer offer = best();
    EXPECT_EQ(offer.usd_per_hour, 0.31);
    EXPECT_EQ(offer.gpu_memory_bytes, 24'564'000'000U);
    EXPECT_EQ(offer.region, "US");
    EXPECT_EQ(offer.available, 1);
    expect_nothing_wrong();
}

TEST_F(VastTest, SpotMachinesAreBidFor) {
    const Offer spot = best_spot();
    EXPECT_EQ(spot.id, "5002@0.198") << "a tenth more than the least that wins";
    EXPECT_EQ(spot.market, Market::spot);
    EXPECT_NEAR(*spot.usd_per_hour, 0.208, 1e-9) << "with its disk";
    ASSERT_TRUE(create(make_order("1", spot)));
    EXPECT_EQ(cloud_.last_create()->at("price"), 0.198);
    EXPECT_EQ(cloud_.last_create()->at("cancel_unavail"), true);
    EXPECT_THAT(
        ids({.provider = "", .gpus = {"RTX 4090"}, .market = Market::spot, .usd_per_hour_max = 0.2}
        ),
        ElementsAre()
    ) << "what the bid comes to is what counts";
    expect_nothing_wrong();
}

TEST_F(VastTest, LivesFromCreateToRemoveAndCallsByItself) {
    EXPECT_TRUE(provider_->traits().dials_in);
    auto order = make_order("1", best());
    order.made_from.command = {"comfyd", "worker", "--comfyui", "/opt/Comfy UI"};
    order.made_from.disk_gb = 50;
    const auto id = create(order);
    ASSERT_TRUE(id) << id.error().message;
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(body.at("label"), "comfyd-f-1");
    EXPECT_EQ(
        json::serialize(body.at("args")), R"(["comfyd","worker","--comfyui","/opt/Comfy UI"])"
    );
    EXPECT_EQ(body.at("env").at("COMFYD_WORKER_TOKEN"), "worker-token-1");
    EXPECT_FALSE(body.at("env").as_object().contains("-p 18188:18188")) << "nothing is opened";
    EXPECT_EQ(body.at("disk"), 50);
    EXPECT_FALSE(body.contains("price"));
    EXPECT_EQ(only().state, State::pulling);
    EXPECT_EQ(only().state, State::running);
    const Machine machine = only();
    EXPECT_EQ(machine.id, *id);
    EXPECT_EQ(machine.url, std::nullopt);
    EXPECT_EQ(machine.usd_per_hour, 0.31);
    EXPECT_EQ(machine.made_at, from_unix_ms(1'763'183'456'500));
    EXPECT_EQ(loop_.run(provider_->logs(*id, 50)), "Model loaded.\nReady.\n");
    EXPECT_TRUE(loop_.run(provider_->stop(*id)));
    EXPECT_TRUE(becomes(State::stopped));
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(becomes(State::running));
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id))) << "it is gone already";
    EXPECT_TRUE(list()->empty());
    EXPECT_EQ(loop_.run(provider_->stop(*id)).error().code, Code::not_found);
    expect_nothing_wrong();
}

TEST_F(VastTest, IsCalledAtItsMappedPortWhereTheOperatorWantsThat) {
    close();
    options_.dials_in = false;
    open();
    EXPECT_FALSE(provider_->traits().dials_in);
    ASSERT_TRUE(create(make_order("1", best())));
    EXPECT_EQ(cloud_.last_create()->at("env").at("-p 18188:18188"), "1");
    ASSERT_TRUE(becomes(State::running));
    EXPECT_EQ(only().url, "http://203.0.113.7:40123");
    expect_nothing_wrong();
}

TEST_F(VastTest, AllThatCanBeSetIsInItsDocument) {
    close();
    options_.cuda_min = "12.8";
    options_.reliability_min = 0.99;
    open();
    auto order = make_order("1", best());
    order.made_from.registry_user = "me";
    order.made_from.registry_password = "secret-of-the-registry";
    ASSERT_TRUE(create(order));
    EXPECT_EQ(
        cloud_.last_create()->at("image_login"),
        "-u me -p secret-of-the-registry registry.example.com"
    );
    order = make_order("2", best());
    order.made_from.registry_user = "me";
    order.made_from.registry_password = "a b";
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
    expect_nothing_wrong();
}

TEST_F(VastTest, FailuresAreToldApart) {
    failures_are_told_apart();
}

TEST_F(VastTest, AnOfferMakesOneMachine) {
    const Offer offer = best();
    ASSERT_TRUE(create(make_order("1", offer)));
    EXPECT_EQ(create(make_order("2", offer)).error().code, Code::out_of_stock);
    EXPECT_NE(best().id, offer.id);
    expect_nothing_wrong();
}

TEST_F(VastTest, WhatARefusedSpotOrderLeavesIsRemoved) {
    const Offer spot = best_spot();
    cloud_.set({.half_made = 1});
    const auto made = create(make_order("1", spot));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::out_of_stock);
    EXPECT_TRUE(cloud_.machines().empty()) << "it is stopped, and costs";
    // Where that fails it is no clear no: the machine is looked for, and found by its name.
    const Offer again = best_spot();
    cloud_.set({.errors_to_remove = 100, .half_made = 1});
    const auto left = create(make_order("2", again));
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().code, Code::upstream_error);
    EXPECT_THAT(left.error().message, HasSubstr("could not be removed"));
    cloud_.set({});
    EXPECT_EQ(only().name, "comfyd-f-2");
    EXPECT_NE(only().state, State::running);
    EXPECT_TRUE(loop_.run(provider_->remove(only().id)));
    expect_nothing_wrong();
}

TEST_F(VastTest, OneThatWasOutbidIsTakenBack) {
    const auto id = create(make_order("1", best_spot()));
    ASSERT_TRUE(id);
    ASSERT_TRUE(becomes(State::running));
    EXPECT_EQ(only().reclaimed_at, std::nullopt);
    cloud_.change(*id, [](json::object& contract) {
        for (const char* member : {"intended_status", "cur_state", "next_state"}) {
            contract[member] = "stopped";
        }
        contract["actual_status"] = "exited";
    });
    EXPECT_TRUE(only().reclaimed_at);
    EXPECT_THAT(only().reason, HasSubstr("bid more"));
    expect_nothing_wrong();
}

TEST_F(VastTest, AnUnclearCreateIsFoundAgain) {
    an_unclear_create_is_found_again();
}

TEST_F(VastTest, PagesErrorsAndLimitsAreSurvived) {
    pages_errors_and_limits_are_survived();
}

// It refuses what comes too soon, and does not say how long that is.
TEST_F(VastTest, ALimitWithoutATimeIsWaitedFor) {
    const Offer offer = best();
    ASSERT_TRUE(list());
    cloud_.set({.too_many_creates = 1, .retry_after_s = -1});
    const auto refused = create(make_order("1", offer));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::rate_limited);
    EXPECT_GE(refused.error().details.at("retry_after").as_int64(), 1);
    EXPECT_TRUE(cloud_.machines().empty());
}

TEST_F(VastTest, RequestsOfOneKindKeepTheirDistance) {
    close();
    options_.create_gap = Millis(150);
    open();
    const auto begun = std::chrono::steady_clock::now();
    for (const char* instance : {"1", "2", "3"}) {
        ASSERT_TRUE(create(make_order(instance, best())));
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begun, Millis(300));
}

TEST_F(VastTest, OthersAreNotTouched) {
    others_are_not_touched();
}

TEST_F(VastTest, SecretsStaySecret) {
    secrets_stay_secret();
}

TEST_F(VastTest, OneThatNeverStartsIsSeenToStart) {
    cloud_.set({.starts_never = true});
    const auto id = create(make_order("1", best()));
    ASSERT_TRUE(id);
    for (int looks = 0; looks < 5; ++looks) {
        EXPECT_EQ(only().state, State::creating);
    }
    cloud_.change(*id, [](json::object& contract) {
        contract["status_msg"] = "Error: OCI runtime create failed: no such device";
    });
    EXPECT_EQ(only().state, State::failed);
    EXPECT_THAT(only().reason, HasSubstr("no such device"));
    for (const char* status : {"exited", "offline", "unknown"}) {
        cloud_.change(*id, [status](json::object& contract) {
            contract["actual_status"] = status;
            contract["status_msg"] = nullptr;
        });
        EXPECT_EQ(only().state, State::failed);
        EXPECT_THAT(only().reason, HasSubstr(status));
    }
}

TEST_F(VastTest, AWrongKeyIsAWrongKey) {
    close();
    options_.key = "another-key";
    open();
    EXPECT_EQ(list().error().code, Code::unauthorized);
    EXPECT_EQ(loop_.run(provider_->offers({.provider = ""})).error().code, Code::unauthorized);
}

TEST_F(VastTest, OrdersThatCannotBeAreNotSent) {
    const Offer offer = best();
    auto order = make_order("1", offer);
    order.made_from.gpus = 0;
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
    for (const char* id : {"", "x", "1/../2", "5002@0.2", "99999999999999999999"}) {
        order = make_order("1", offer);
        order.offer.id = id;
        EXPECT_EQ(create(order).error().code, Code::invalid_argument) << id;
    }
    order = make_order("1", offer);
    order.made_from.environment["LONG"] = std::string(40'000, 'x');
    EXPECT_THAT(create(order).error().message, HasSubstr("32 kB"));
    EXPECT_EQ(cloud_.asked("create"), 0);
}

TEST(VastContracts, RefusalsMeanWhatTheySay) {
    const auto code = [](int status, const char* words) {
        return meaning_of_vast({.status = status, .words = words});
    };
    EXPECT_EQ(code(404, "invalid_args: error 404/3603: no_such_ask"), Code::out_of_stock);
    EXPECT_EQ(code(410, "no_such_ask"), Code::out_of_stock);
    EXPECT_EQ(code(400, "invalid_price"), Code::out_of_stock);
    EXPECT_EQ(code(403, "Offer 1 is not your own."), Code::out_of_stock);
    EXPECT_EQ(code(403, "no permission"), Code::forbidden);
    EXPECT_EQ(code(411, "Insufficient credit"), Code::balance_empty);
    EXPECT_EQ(code(400, "missing_billing"), Code::balance_empty);
    EXPECT_EQ(code(400, "invalid_args: image"), Code::invalid_argument);
    EXPECT_EQ(code(400, "no_such_instance"), Code::not_found);
    EXPECT_EQ(code(429, "API requests too frequent"), Code::rate_limited);
    EXPECT_EQ(code(502, "<html> credit"), Code::upstream_error);
}

TEST(VastContracts, AnswersOfAnyKindAreSurvived) {
    const OfferWish any{.provider = ""};
    for (const char* text :
         {"null",
          "[]",
          "{}",
          R"({"offers":7})",
          R"({"offers":[null,7,{},{"id":"7"},{"id":-1,"dph_total":1},{"id":1},
              {"id":1,"dph_total":"x"},{"id":1,"dph_total":-1},{"id":1e300,"dph_total":1}]})"}) {
        EXPECT_TRUE(read_offers({}, *json::parse(text), any, "").empty()) << text;
    }
    const OfferWish spot{.provider = "", .gpus = {}, .market = Market::spot};
    for (const char* text :
         {R"({"offers":[{"id":1,"dph_total":1}]})",
          R"({"offers":[{"id":1,"dph_total":1,"min_bid":-1}]})",
          R"({"offers":[{"id":1,"dph_total":1,"min_bid":1e9}]})"}) {
        EXPECT_TRUE(read_offers({}, *json::parse(text), spot, "").empty()) << text;
    }
    EXPECT_FALSE(read_contract({}, *json::parse("[]"), Time()));
    EXPECT_FALSE(read_contract({}, *json::parse(R"({"id":"7"})"), Time()));
    const auto odd =
        read_contract({}, *json::parse(R"({"id":7,"label":[],"actual_status":7})"), Time());
    ASSERT_TRUE(odd);
    EXPECT_EQ(odd->name, "");
    VastOptions called;
    called.dials_in = false;
    for (const char* where :
         {R"("public_ipaddr":"evil.example.com/","ports":{"18188/tcp":[{"HostPort":"1"}]})",
          R"("public_ipaddr":"1.2.3.4","ports":{"18188/tcp":[{"HostPort":"1/../x"}]})",
          R"("public_ipaddr":"1.2.3.4","ports":{"18188/tcp":[null,7,{}]})",
          R"("public_ipaddr":"1.2.3.4","ports":[1])",
          R"("public_ipaddr":"","ports":{"18188/tcp":[{"HostPort":"1"}]})"}) {
        const auto machine = read_contract(
            called,
            *json::parse(std::string(R"({"id":7,"actual_status":"running",)") + where + "}"),
            Time()
        );
        ASSERT_TRUE(machine) << where;
        EXPECT_EQ(machine->url, std::nullopt) << "a token goes nowhere else: " << where;
    }
    EXPECT_EQ(contract_in(*json::parse(R"({"new_contract":"7"})")), "");
    EXPECT_EQ(contract_in(*json::parse(R"({"new_contract":7})")), "7");
}

TEST(VastSettings, WrongOnesAreRefusedByName) {
    VastOptions good;
    good.key = "k";
    EXPECT_TRUE(check_vast(good));
    const auto why = [&](const std::function<void(VastOptions&)>& change) {
        VastOptions options = good;
        change(options);
        const auto checked = check_vast(options);
        return checked ? std::string("good") : checked.error().message;
    };
    EXPECT_THAT(why([](VastOptions& o) { o.key = ""; }), HasSubstr("key"));
    EXPECT_THAT(why([](VastOptions& o) { o.url = "http://x.com"; }), HasSubstr("url"));
    EXPECT_THAT(why([](VastOptions& o) { o.disk_gb = 7; }), HasSubstr("disk_gb"));
    EXPECT_THAT(why([](VastOptions& o) { o.reliability_min = 2; }), HasSubstr("reliability_min"));
    EXPECT_THAT(why([](VastOptions& o) { o.bid_factor = 0.5; }), HasSubstr("bid_factor"));
    EXPECT_THAT(why([](VastOptions& o) { o.cuda_min = "new"; }), HasSubstr("cuda_min"));
}

}  // namespace
}  // namespace comfyd::fleet
