// What tests of providers are written with: a loop for them, orders, and what all clouds must do
// alike whichever of their doubles answers. Test code only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fleet/providers/machines.hpp"
#include "net/test_support.hpp"
#include "support/cloud_double.hpp"

namespace comfyd::fleet::test {

inline MachineOrder make_order(
    const std::string& instance, Offer offer, const std::string& fleet = "f"
) {
    MachineOrder order{
        .name = "comfyd-" + fleet + "-" + instance,
        .fleet = fleet,
        .instance = instance,
        .pool = "p"
    };
    order.made_from.image = "registry.example.com/comfyui:1";
    order.made_from.environment = {{"HF_TOKEN", "hf_very-secret"}};
    order.secrets = {
        {"COMFYD_WORKER_TOKEN", "worker-token-1"}, {"COMFYD_GATEWAY", "https://comfyd.example.com"}
    };
    order.offer = std::move(offer);
    return order;
}

// A provider over its double.
template <class Double>
class CloudTest : public testing::Test {
protected:
    ~CloudTest() override { close(); }

    virtual Result<std::unique_ptr<MachineProvider>> make() = 0;
    void open() {
        auto made = make();
        ASSERT_TRUE(made) << made.error().message;
        provider_ = std::move(*made);
    }
    void close() {
        if (!provider_) {
            return;
        }
        loop_.run(provider_->end());
        std::promise<void> done;
        boost::asio::post(loop_.executor(), [&] {
            provider_.reset();
            done.set_value();
        });
        done.get_future().get();
    }
    std::vector<Offer> offers(OfferWish wish) {
        auto found = loop_.run(provider_->offers(std::move(wish)));
        EXPECT_TRUE(found) << found.error().message;
        return found.value_or(std::vector<Offer>());
    }
    Offer best() { return offers({.provider = "", .gpus = {"RTX 4090"}}).at(0); }
    Result<std::string> create(MachineOrder order) {
        return loop_.run(provider_->create(std::move(order)));
    }
    Result<std::vector<Machine>> list(const std::string& fleet = "f") {
        return loop_.run(provider_->list(fleet));
    }
    Machine only() {
        const auto machines = list();
        EXPECT_TRUE(machines) << machines.error().message;
        EXPECT_EQ(machines->size(), 1u);
        return machines && !machines->empty() ? machines->front() : Machine();
    }
    bool becomes(Machine::State state) {
        for (int looks = 0; looks < 10; ++looks) {
            if (only().state == state) {
                return true;
            }
        }
        return false;
    }
    // The contract was kept, by both sides.
    void expect_nothing_wrong() { EXPECT_THAT(cloud_.wrong(), testing::IsEmpty()); }

    // What must hold of any cloud.

    void failures_are_told_apart() {
        const Offer offer = best();
        cloud_.set({.out_of_stock = 1});
        EXPECT_EQ(create(make_order("1", offer)).error().code, Code::out_of_stock);
        cloud_.set({.is_broke = true});
        EXPECT_EQ(create(make_order("1", offer)).error().code, Code::balance_empty);
        cloud_.set({});
        EXPECT_TRUE(cloud_.machines().empty());
        EXPECT_TRUE(create(make_order("1", offer)));
        expect_nothing_wrong();
    }
    void an_unclear_create_is_found_again() {
        for (const CloudFaults& faults :
             {CloudFaults{.errors_after = 1}, CloudFaults{.lost_after = 1}}) {
            const Offer offer = best();
            cloud_.set(faults);
            const std::string instance = faults.errors_after > 0 ? "1" : "2";
            const int asked = cloud_.asked("create");
            const auto made = create(make_order(instance, offer));
            ASSERT_FALSE(made);
            EXPECT_THAT(
                made.error().code, testing::AnyOf(Code::upstream_error, Code::connection_failed)
            );
            EXPECT_EQ(cloud_.asked("create"), asked + 1) << "never twice";
            const auto again = create(make_order(instance, offer));
            ASSERT_TRUE(again) << again.error().message;
            EXPECT_EQ(cloud_.asked("create"), asked + 1) << "it is the one that is there";
        }
        EXPECT_EQ(cloud_.machines().size(), 2u);
        EXPECT_EQ(list()->size(), 2u);
        expect_nothing_wrong();
    }
    void pages_errors_and_limits_are_survived() {
        const Offer offer = best();
        ASSERT_TRUE(create(make_order("1", offer)));
        cloud_.set({.pages = 1});
        EXPECT_EQ(list()->size(), 1u);
        cloud_.set({.errors = 2});
        EXPECT_EQ(list()->size(), 1u);
        // What is no list is never an empty one: all machines would seem to be gone.
        cloud_.set({.pages = 100});
        EXPECT_EQ(list().error().code, Code::protocol_error);
        cloud_.set({.too_many = 1, .retry_after_s = 1});
        EXPECT_EQ(list()->size(), 1u);
        cloud_.set({.too_many = 1, .retry_after_s = 600});
        const auto limited = list();
        ASSERT_FALSE(limited);
        EXPECT_EQ(limited.error().code, Code::rate_limited);
        EXPECT_GT(limited.error().details.at("retry_after").as_int64(), 500);
        expect_nothing_wrong();
    }
    void others_are_not_touched() {
        const Offer offer = best();
        cloud_.add("somebody-elses");
        cloud_.add("comfyd-f-g-1");
        cloud_.add("comfyd-g-1");
        ASSERT_TRUE(create(make_order("1", offer)));
        EXPECT_EQ(only().name, "comfyd-f-1");
        EXPECT_EQ(list("f-g")->size(), 1u);
        EXPECT_TRUE(list("other")->empty());
        EXPECT_TRUE(loop_.run(provider_->remove(only().id)));
        EXPECT_EQ(cloud_.machines().size(), 3u);
        expect_nothing_wrong();
    }
    void secrets_stay_secret() {
        const Offer offer = best();
        cloud_.set({.errors_after = 1, .echoes = true});
        auto order = make_order("1", offer);
        const auto made = create(order);
        ASSERT_FALSE(made);
        for (const char* secret : {"worker-token-1", "hf_very-secret", CloudDouble::kKey}) {
            EXPECT_THAT(made.error().message, testing::Not(testing::HasSubstr(secret)));
        }
        order = make_order("2", offer);
        order.secrets.clear();
        EXPECT_EQ(create(order).error().code, Code::invalid_argument)
            << "nothing open to strangers";
        order = make_order("2", offer);
        order.port = 8188;
        EXPECT_EQ(create(order).error().code, Code::invalid_argument);
        EXPECT_EQ(cloud_.machines().size(), 1u);
    }

    using CloudFaults = support::CloudFaults;
    using CloudDouble = support::CloudDouble;

    Double cloud_;
    SystemClock clock_;
    net::test::Loop loop_;
    std::unique_ptr<MachineProvider> provider_;
};

}  // namespace comfyd::fleet::test
