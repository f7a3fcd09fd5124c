// Against a double that keeps to Salad's own document (tests/data/providers/salad.json).
#include "fleet/providers/salad.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/providers/cloud_test_support.hpp"
#include "fleet/providers/salad_groups.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using test::make_order;
using testing::ElementsAre;
using testing::HasSubstr;

class SaladTest : public test::CloudTest<support::SaladDouble> {
protected:
    SaladTest() {
        options_.key = support::CloudDouble::kKey;
        options_.organization = "o";
        options_.project = "p";
        options_.url = cloud_.url();
        open();
    }
    Result<std::unique_ptr<MachineProvider>> make() override {
        return make_salad(loop_.executor(), options_, clock_);
    }
    std::vector<std::string> gpus(OfferWish wish) {
        std::vector<std::string> found;
        for (const Offer& offer : offers(std::move(wish))) {
            found.push_back(offer.gpu);
        }
        return found;
    }

    SaladOptions options_;
};

TEST_F(SaladTest, OffersWhatThereIsFirst) {
    EXPECT_THAT(gpus({.provider = ""}), ElementsAre("RTX 4090", "RTX 5090", "RTX 3060"));
    EXPECT_THAT(
        gpus({.provider = "", .gpus = {"RTX 5090", "RTX 4090"}}),
        ElementsAre("RTX 4090", "RTX 5090")
    ) << "the other is not to be had";
    EXPECT_THAT(
        gpus({.provider = "", .gpus = {}, .usd_per_hour_max = 0.1}), ElementsAre("RTX 3060")
    );
    EXPECT_THAT(gpus({.provider = "", .gpus = {}, .gpus_each = 8}), ElementsAre("8x A100"));
    const Offer offer = best();
    EXPECT_EQ(offer.usd_per_hour, 0.30);
    EXPECT_EQ(offer.gpu_memory_bytes, 24'000'000'000U);
    EXPECT_EQ(offer.available, 12);
    EXPECT_EQ(offer.market, Market::spot) << "all of them are";
    EXPECT_EQ(offers({.provider = "", .gpus = {"RTX 3060"}}).at(0).available, 0);
    close();
    options_.priority = "batch";
    open();
    EXPECT_EQ(best().usd_per_hour, 0.01);
    EXPECT_EQ(best().available, 40);
    expect_nothing_wrong();
}

TEST_F(SaladTest, LivesFromCreateToRemoveAsAGroupOfOne) {
    EXPECT_TRUE(provider_->traits().dials_in);
    auto order = make_order("1", best());
    order.made_from.command = {"comfyd", "worker", "--comfyui", "/opt/Comfy UI"};
    order.made_from.environment["EMPTY"] = "";
    const auto id = create(order);
    ASSERT_TRUE(id) << id.error().message;
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(body.at("name"), "comfyd-f-1");
    EXPECT_EQ(body.at("replicas"), 1);
    EXPECT_EQ(body.at("restart_policy"), "never");
    EXPECT_FALSE(body.contains("networking")) << "nothing is opened";
    const json::object& container = body.at("container").as_object();
    EXPECT_EQ(
        json::serialize(container.at("command")),
        R"(["comfyd","worker","--comfyui","/opt/Comfy UI"])"
    );
    EXPECT_EQ(container.at("environment_variables").at("COMFYD_WORKER_TOKEN"), "worker-token-1");
    EXPECT_EQ(
        container.at("environment_variables").at("COMFYD_GATEWAY"), "https://comfyd.example.com"
    );
    EXPECT_FALSE(container.at("environment_variables").as_object().contains("EMPTY"));
    EXPECT_EQ(container.at("resources").at("cpu"), 4);
    EXPECT_EQ(container.at("resources").at("storage_amount"), 50LL << 30);
    EXPECT_EQ(only().state, State::pulling);
    EXPECT_EQ(only().state, State::running);
    const Machine machine = only();
    EXPECT_EQ(machine.id, *id);
    EXPECT_EQ(machine.url, std::nullopt);
    EXPECT_EQ(machine.made_at, parse_rfc3339("2026-11-15T05:10:56Z"));
    EXPECT_EQ(loop_.run(provider_->logs(*id, 50)), "Model loaded.\nReady.\n");
    EXPECT_TRUE(loop_.run(provider_->stop(*id)));
    EXPECT_EQ(only().state, State::stopped);
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(becomes(State::running));
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id))) << "it is gone already";
    EXPECT_TRUE(list()->empty());
    EXPECT_EQ(loop_.run(provider_->stop(*id)).error().code, Code::not_found);
    expect_nothing_wrong();
}

TEST_F(SaladTest, AllThatCanBeSetIsInItsDocument) {
    close();
    options_.countries = {"us", "de"};
    options_.cpus = 8;
    options_.memory_mb = 30'000;
    options_.disk_gb = 200;
    open();
    auto order = make_order("1", best());
    order.made_from.registry_user = "me";
    order.made_from.registry_password = "secret-of-the-registry";
    order.made_from.cpus_max = 2.5;
    order.made_from.memory_bytes_max = 500'000'000;
    ASSERT_TRUE(create(order));
    const json::object body = *cloud_.last_create();
    EXPECT_EQ(json::serialize(body.at("country_codes")), R"(["us","de"])");
    EXPECT_EQ(body.at("container").at("resources").at("cpu"), 3);
    EXPECT_EQ(body.at("container").at("resources").at("memory"), 1024) << "it gives no less";
    EXPECT_EQ(body.at("container").at("registry_authentication").at("basic").at("username"), "me");
    order = make_order("2", best());
    order.offer.region = "FR";
    ASSERT_TRUE(create(order));
    EXPECT_EQ(json::serialize(cloud_.last_create()->at("country_codes")), R"(["fr"])");
    expect_nothing_wrong();
}

TEST_F(SaladTest, FailuresAreToldApart) {
    failures_are_told_apart();
}

TEST_F(SaladTest, AnUnclearCreateIsFoundAgain) {
    an_unclear_create_is_found_again();
}

TEST_F(SaladTest, PagesErrorsAndLimitsAreSurvived) {
    pages_errors_and_limits_are_survived();
}

TEST_F(SaladTest, OthersAreNotTouched) {
    others_are_not_touched();
}

TEST_F(SaladTest, SecretsStaySecret) {
    secrets_stay_secret();
}

// What its list does not show would be taken for gone.
TEST_F(SaladTest, AProjectThatIsFullIsNotFilledFurther) {
    for (int i = 0; i < 99; ++i) {
        cloud_.add("group-" + std::to_string(i));
    }
    EXPECT_TRUE(list()->empty());
    const auto full = create(make_order("1", best()));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::out_of_stock);
    EXPECT_EQ(cloud_.asked("create"), 0);
    cloud_.add("group-99");
    const auto cut = list();
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Code::protocol_error);
}

TEST_F(SaladTest, OneThatNeverStartsOrLosesItsComputerIsSeenToStart) {
    cloud_.set({.starts_never = true});
    const auto id = create(make_order("1", best()));
    ASSERT_TRUE(id);
    for (int looks = 0; looks < 5; ++looks) {
        EXPECT_EQ(only().state, State::creating);
    }
    cloud_.set({});
    ASSERT_TRUE(becomes(State::running));
    cloud_.change(*id, [](json::object& group) {
        json::object& counts =
            group["current_state"].as_object()["instance_status_counts"].as_object();
        counts["running_count"] = 0;
        counts["allocating_count"] = 1;
    });
    EXPECT_EQ(only().state, State::creating) << "another computer is looked for";
    for (const char* status : {"succeeded", "stopped"}) {
        cloud_.change(*id, [status](json::object& group) {
            group["current_state"].as_object()["status"] = status;
        });
        EXPECT_EQ(only().state, State::stopped);
    }
    cloud_.change(*id, [](json::object& group) {
        group["current_state"].as_object()["status"] = "failed";
        group["current_state"].as_object()["description"] = "the image cannot be pulled";
    });
    EXPECT_EQ(only().state, State::failed);
    EXPECT_EQ(only().reason, "the image cannot be pulled");
}

TEST_F(SaladTest, AWrongKeyIsAWrongKey) {
    close();
    options_.key = "another-key";
    open();
    EXPECT_EQ(list().error().code, Code::unauthorized);
    EXPECT_EQ(loop_.run(provider_->offers({.provider = ""})).error().code, Code::unauthorized);
}

TEST_F(SaladTest, OrdersThatCannotBeAreNotSent) {
    const Offer offer = best();
    const auto refused = [&](const std::function<void(MachineOrder&)>& change) {
        auto order = make_order("1", offer);
        change(order);
        const auto made = create(order);
        return made ? std::string("made") : made.error().message;
    };
    EXPECT_THAT(refused([](auto& order) { order.made_from.gpus = 0; }), HasSubstr("GPU"));
    EXPECT_THAT(refused([](auto& order) { order.offer.id = ""; }), HasSubstr("kinds"));
    EXPECT_THAT(
        refused([](auto& order) { order.secrets.erase("COMFYD_GATEWAY"); }), HasSubstr("call")
    );
    EXPECT_THAT(
        refused([](auto& order) { order.made_from.environment["LONG"] = std::string(1001, 'x'); }),
        HasSubstr("LONG")
    );
    EXPECT_THAT(
        refused([](auto& order) { order.made_from.environment["LINES"] = "a\nb"; }),
        HasSubstr("LINES")
    );
    EXPECT_THAT(
        refused([](auto& order) { order.made_from.command = {"a", ""}; }), HasSubstr("command")
    );
    EXPECT_THAT(
        refused([](auto& order) { order.made_from.command.assign(101, "x"); }), HasSubstr("command")
    );
    EXPECT_EQ(cloud_.asked("create"), 0);
}

TEST(SaladGroups, AnswersOfAnyKindAreSurvived) {
    for (const char* text :
         {"null",
          "[]",
          "{}",
          R"({"items":7})",
          R"({"items":[null,7,{},{"id":"x"},{"id":"x","name":"RTX (","prices":[]},
              {"id":"x","name":"X","prices":[null,{"priority":"high","price":"free"}]},
              {"id":"x","name":"X","prices":[{"priority":"high","price":"-1"}]},
              {"id":"x","name":"X","prices":[{"priority":"low","price":"1"}]}]})"}) {
        EXPECT_TRUE(read_gpu_classes({}, *json::parse(text), {.provider = ""}).empty()) << text;
        EXPECT_EQ(read_availability({}, *json::parse(text)), -1) << text;
    }
    const auto odd = read_gpu_classes(
        {},
        *json::parse(
            R"({"items":[{"id":"x","name":"X (1e99 GB","prices":[{"priority":"high","price":1}]}]})"
        ),
        {.provider = ""}
    );
    ASSERT_EQ(odd.size(), 1U);
    EXPECT_EQ(odd[0].gpu_memory_bytes, 0U);
    EXPECT_EQ(read_availability({}, *json::parse(R"({"available_gpu_high":-5})")), 0);
    EXPECT_FALSE(read_group(*json::parse("7")));
    EXPECT_FALSE(read_group(*json::parse(R"({"name":7})")));
    const auto group =
        read_group(*json::parse(R"({"name":"a","current_state":{"status":"dreaming"}})"));
    ASSERT_TRUE(group);
    EXPECT_EQ(group->state, State::failed);
    EXPECT_EQ(group->reason, "Salad calls it dreaming");
    EXPECT_EQ(read_group(*json::parse(R"({"name":"a"})"))->state, State::failed);
    EXPECT_EQ(
        read_log_entries(*json::parse(R"({"items":[{"json_log":{"a":1}},7,{"text_log":"b"},{}]})")),
        "\nb\n{\"a\":1}\n"
    );
    EXPECT_EQ(read_log_entries(*json::parse("7")), "");
}

TEST(SaladGroups, RefusalsMeanWhatTheySay) {
    const auto code = [](int status, const char* words) {
        return meaning_of_salad({.status = status, .words = words});
    };
    EXPECT_EQ(code(403, "not enough credits"), Code::balance_empty);
    EXPECT_EQ(code(400, "replica quota exceeded"), Code::out_of_stock);
    EXPECT_EQ(code(400, "it already exists"), Code::conflict);
    EXPECT_EQ(code(403, "no right"), Code::forbidden);
    EXPECT_EQ(code(400, "bad name"), Code::invalid_argument);
    EXPECT_EQ(code(500, "the balance is down"), Code::upstream_error);
    EXPECT_EQ(code(429, "quota"), Code::rate_limited);
}

TEST(SaladSettings, WrongOnesAreRefusedByName) {
    SaladOptions good;
    good.key = "k";
    good.organization = "acme";
    good.project = "gpu-1";
    EXPECT_TRUE(check_salad(good));
    const auto why = [&](const std::function<void(SaladOptions&)>& change) {
        SaladOptions options = good;
        change(options);
        const auto checked = check_salad(options);
        return checked ? std::string("good") : checked.error().message;
    };
    EXPECT_THAT(why([](SaladOptions& o) { o.key = ""; }), HasSubstr("key"));
    EXPECT_THAT(why([](SaladOptions& o) { o.url = "http://x.com"; }), HasSubstr("url"));
    EXPECT_THAT(why([](SaladOptions& o) { o.organization = ""; }), HasSubstr("organization"));
    EXPECT_THAT(why([](SaladOptions& o) { o.project = "a/../b"; }), HasSubstr("project"));
    EXPECT_THAT(why([](SaladOptions& o) { o.priority = "urgent"; }), HasSubstr("priority"));
    EXPECT_THAT(why([](SaladOptions& o) { o.countries = {"USA"}; }), HasSubstr("countries"));
    EXPECT_THAT(why([](SaladOptions& o) { o.memory_mb = 1; }), HasSubstr("memory"));
}

}  // namespace
}  // namespace comfyd::fleet
