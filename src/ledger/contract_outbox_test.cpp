// What the notify and assets rooms rely on, for every storage.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OutboxContract : public Contract {
protected:
    jobs::Job accept_with(std::vector<std::string> events) {
        auto spec = simple_spec();
        spec.webhook.emplace();
        spec.webhook->url = "https://example.com/";
        spec.webhook->events = std::move(events);
        return accept(spec);
    }
    std::vector<std::uint64_t> due_sequences() {
        std::vector<std::uint64_t> found;
        for (const auto& delivery : due()) {
            found.push_back(delivery.sequence);
        }
        return found;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, OutboxContract, testing::ValuesIn(backends()), backend_name);

TEST_P(OutboxContract, WithoutAWebhookNothingIsDue) {
    const auto job = complete(start(accept(simple_spec())));
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_FALSE(await_value(outbox().next_due()));
    EXPECT_FALSE(await_value(ledger().webhook_status(job.id)).any);
    EXPECT_EQ(await_value(outbox().counts()).pending, 0U);
}

TEST_P(OutboxContract, AWebhookWithoutEventsHearsOfTheEndOnly) {
    const auto job = start(accept_with({}));
    EXPECT_THAT(due(), IsEmpty());
    clock_.advance(Millis(1));
    const auto done = complete(job);
    const auto found = due();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].job, job.id);
    EXPECT_EQ(found[0].sequence, done.sequence);
    EXPECT_EQ(found[0].attempts, 0);
    EXPECT_EQ(found[0].created_at, clock_.now());
    EXPECT_EQ(await_value(outbox().next_due()), clock_.now());
}

TEST_P(OutboxContract, QueuedIsDeliveredWhenWanted) {
    accept_with({"execution.queued"});
    EXPECT_THAT(due_sequences(), ElementsAre(1U));
    accept_with({"execution.completed"});
    EXPECT_THAT(due_sequences(), ElementsAre(1U));
}

TEST_P(OutboxContract, OneJobsDeliveriesGoOutInOrder) {
    complete(start(accept_with({"execution.queued", "execution.started", "execution.completed"})));
    for (const std::uint64_t sequence : {1U, 2U, 3U}) {
        storage_->reopen();
        const auto found = due();
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found[0].sequence, sequence);
        await_value(outbox().delivered(found[0], clock_.now()));
        await_value(outbox().delivered(found[0], clock_.now()));
    }
    EXPECT_THAT(due(), IsEmpty());
}

TEST_P(OutboxContract, TheStampOfAJobTellsWhenAllHasArrived) {
    const auto job = complete(start(accept_with({"execution.started", "execution.completed"})));
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(await_value(ledger().stamp(job.id))->webhook_delivered);
        await_value(outbox().delivered(due().at(0), clock_.now()));
    }
    EXPECT_TRUE(await_value(ledger().stamp(job.id))->webhook_delivered);
    EXPECT_TRUE(await_value(ledger().webhook_status(job.id)).delivered);
    const auto silent = complete(start(accept_with({"execution.failed"})));
    EXPECT_FALSE(await_value(ledger().stamp(silent.id))->webhook_delivered) << "there was nothing";
}

TEST_P(OutboxContract, WhatWaitsIsHastenedWhenTheClockWasSetBack) {
    constexpr Millis kBack{300'000};
    accept_with({"execution.queued"});
    const auto first = due();
    ASSERT_EQ(first.size(), 1U);
    const Time later = clock_.now() + Millis(3'600'000);
    await_value(outbox().retry_at(first[0], later, "connection refused"));
    complete(start(accept_with({"execution.queued", "execution.completed"})));
    clock_.advance(-kBack);
    EXPECT_THAT(due(), IsEmpty()) << "it is of the future";
    await_value(outbox().hasten(clock_.now(), kBack));
    const auto found = due();
    ASSERT_EQ(found.size(), 1U);
    await_value(outbox().delivered(found[0], clock_.now()));
    const auto behind = due();
    ASSERT_EQ(behind.size(), 1U) << "what came behind it, too";
    await_value(outbox().delivered(behind[0], clock_.now()));
    EXPECT_EQ(await_value(outbox().next_due()), later - kBack);
}

TEST_P(OutboxContract, AFailedAttemptHoldsBackItsOwnJobOnly) {
    const auto slow = start(accept_with({"execution.queued", "execution.started"}));
    const auto first = due();
    ASSERT_EQ(first.size(), 1U);
    const Time later = clock_.now() + Millis(5'000);
    await_value(outbox().retry_at(first[0], later, "connection refused"));
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(await_value(outbox().next_due()), later);

    const auto other = accept_with({"execution.queued"});
    ASSERT_EQ(due().size(), 1U);
    EXPECT_EQ(due()[0].job, other.id);

    clock_.advance(Millis(5'000));
    const auto again = due();
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(again[0].job, other.id) << "soonest first";
    EXPECT_EQ(again[1].job, slow.id);
    EXPECT_EQ(again[1].attempts, 1);
    EXPECT_EQ(due(1).size(), 1U);
}

TEST_P(OutboxContract, WhatIsPutAsideWasNotTried) {
    accept_with({"execution.queued"});
    const Time later = clock_.now() + Millis(5'000);
    await_value(outbox().put_aside(due().at(0), later, "the receiver is far behind"));
    EXPECT_THAT(due(), IsEmpty());
    clock_.advance(Millis(5'000));
    ASSERT_EQ(due().size(), 1U);
    EXPECT_EQ(due()[0].attempts, 0);
}

TEST_P(OutboxContract, WarningsOfAnAcceptedJobAreStoredAndDelivered) {
    auto spec = simple_spec();
    spec.webhook.emplace();
    spec.webhook->url = "https://example.com/";
    spec.webhook->events = {"execution.queued", "execution.warning", "execution.started"};
    spec.warnings = {"one", json::object{{"field", "seed"}}};
    start(accept(spec));
    for (const std::uint64_t sequence : {1U, 2U, 3U}) {
        storage_->reopen();
        const auto found = due();
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found[0].sequence, sequence);
        const auto events = await_value(ledger().events(found[0].job, 0));
        ASSERT_EQ(events.size(), 3U);
        EXPECT_EQ(events[1].type, jobs::EventType::warning);
        EXPECT_EQ(events[1].state, jobs::State::queued);
        EXPECT_EQ(events[1].data.at("warnings"), json::value(spec.warnings));
        await_value(outbox().delivered(found[0], clock_.now()));
    }
}

TEST_P(OutboxContract, GivingUpLetsTheNextOneGo) {
    const auto job = start(accept_with({"execution.queued", "execution.started"}));
    await_value(outbox().give_up(due().at(0), clock_.now(), "410 Gone"));
    EXPECT_THAT(due_sequences(), ElementsAre(2U));
    auto counts = await_value(outbox().counts());
    EXPECT_EQ(counts.pending, 1U);
    EXPECT_EQ(counts.dead, 1U);
    await_value(outbox().delivered(due().at(0), clock_.now()));
    const auto status = await_value(ledger().webhook_status(job.id));
    EXPECT_TRUE(status.any);
    EXPECT_TRUE(status.dead);
    EXPECT_FALSE(status.delivered);
    storage_->reopen();
    counts = await_value(outbox().counts());
    EXPECT_EQ(counts.pending, 0U);
    EXPECT_EQ(counts.dead, 1U);
}

TEST_P(OutboxContract, StatusTellsWhenAllIsDelivered) {
    const auto job = start(accept_with({"execution.queued", "execution.started"}));
    await_value(outbox().delivered(due().at(0), clock_.now()));
    EXPECT_FALSE(await_value(ledger().webhook_status(job.id)).delivered);
    await_value(outbox().delivered(due().at(0), clock_.now()));
    const auto status = await_value(ledger().webhook_status(job.id));
    EXPECT_TRUE(status.delivered);
    EXPECT_FALSE(status.dead);
}

TEST_P(OutboxContract, AnUnknownDeliveryIsNotFound) {
    notify::Delivery delivery;
    delivery.job = JobId::make(clock_.now());
    EXPECT_EQ(await_code(outbox().delivered(delivery, clock_.now())), Code::not_found);
    EXPECT_EQ(await_code(outbox().retry_at(delivery, clock_.now(), "")), Code::not_found);
    EXPECT_EQ(await_code(outbox().give_up(delivery, clock_.now(), "")), Code::not_found);
}

class ReceiversContract : public OutboxContract {
protected:
    static notify::Route route(std::string name, std::vector<std::string> events = {}) {
        notify::Route route;
        jobs::Webhook webhook;
        webhook.url = "https://example.com/" + name;
        webhook.secret = "secret of " + name;
        route.to = {std::move(name), std::move(webhook)};
        route.events = std::move(events);
        return route;
    }
    // Whom what is due goes to, by name and event.
    std::vector<std::string> due_names() {
        std::vector<std::string> names;
        for (const auto& delivery : due()) {
            names.push_back(delivery.endpoint + "/" + std::to_string(delivery.sequence));
        }
        std::sort(names.begin(), names.end());
        return names;
    }
    notify::Delivery due_to(const std::string& endpoint) {
        for (auto& delivery : due()) {
            if (delivery.endpoint == endpoint) {
                return delivery;
            }
        }
        throw std::runtime_error("nothing is due to " + endpoint);
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, ReceiversContract, testing::ValuesIn(backends()), backend_name);

TEST_P(ReceiversContract, AnEventGoesToEverybodyWhoWantsIt) {
    auto of_others = route("others");
    of_others.tenant = "somebody else";
    auto of_workflow = route("workflow");
    of_workflow.workflow_id = "portrait";
    storage_->routing.set_endpoints(
        {route("all", {"execution.queued", "execution.completed"}),
         route("ends"),
         of_others,
         of_workflow}
    );
    auto spec = simple_spec();
    spec.workflow_id = "portrait";
    const auto running = start(accept(spec));
    EXPECT_THAT(due_names(), ElementsAre("all/1"));
    complete(running);
    EXPECT_THAT(due_names(), ElementsAre("all/1", "ends/3", "workflow/3"));
    accept_with({"execution.queued"});
    EXPECT_THAT(due_names(), ElementsAre("/1", "all/1", "all/1", "ends/3", "workflow/3"));
}

TEST_P(ReceiversContract, EachReceiverHasItsOwnOrder) {
    storage_->routing.set_endpoints(
        {route("a", {"execution.queued", "execution.started"}),
         route("b", {"execution.queued", "execution.started"})}
    );
    start(accept(simple_spec()));
    EXPECT_THAT(due_names(), ElementsAre("a/1", "b/1"));
    await_value(outbox().delivered(due_to("a"), clock_.now()));
    await_value(outbox().retry_at(due_to("b"), clock_.now() + Millis(1'000), "down"));
    EXPECT_THAT(due_names(), ElementsAre("a/2"));
    await_value(outbox().give_up(due_to("a"), clock_.now(), "gone"));
    EXPECT_THAT(due_names(), IsEmpty());
    clock_.advance(Millis(1'000));
    EXPECT_THAT(due_names(), ElementsAre("b/1"));
    await_value(outbox().delivered(due_to("b"), clock_.now()));
    EXPECT_THAT(due_names(), ElementsAre("b/2"));
}

TEST_P(ReceiversContract, ATargetIsKeptWithItsDeliveries) {
    storage_->routing.set_endpoints({route("a")});
    auto spec = full_spec();
    spec.webhook->events = {"execution.completed"};
    const auto running = start(accept(spec));
    complete(running);
    storage_->routing.set_endpoints({});
    storage_->reopen();
    const auto kept = std::get<jobs::Webhook>(due_to("a").target.value());
    EXPECT_EQ(kept.url, "https://example.com/a");
    EXPECT_EQ(kept.secret, "secret of a");
    const auto own = std::get<jobs::Webhook>(due_to("").target.value());
    EXPECT_EQ(json::serialize(own.to_json()), json::serialize(spec.webhook->to_json()));
}

TEST_P(ReceiversContract, RulesAskForTheLengthOfTheRun) {
    auto patient = route("patient");
    patient.ran_at_least = Millis(60'000);
    storage_->routing.set_endpoints({patient});
    complete(start(accept(simple_spec())));
    const auto lasting = start(accept(simple_spec()));
    clock_.advance(Millis(60'000));
    complete(lasting);
    ASSERT_EQ(due().size(), 1U);
    EXPECT_EQ(due()[0].job, lasting.id);
}

class CatalogueContract : public Contract {
protected:
    assets::Asset make_asset(std::string hash) {
        assets::Asset asset;
        asset.id = AssetId::make(clock_.now());
        asset.tenant = "acme";
        asset.hash = std::move(hash);
        asset.size_bytes = 5'000'000'000;
        asset.content_type = "image/png";
        asset.file_path = "in/put.png";
        asset.tags = {"a", "b c"};
        asset.created_at = clock_.now();
        return asset;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, CatalogueContract, testing::ValuesIn(backends()), backend_name);

TEST_P(CatalogueContract, EveryFieldComesBack) {
    auto plain = make_asset("blake3:1");
    plain.tags.clear();
    auto full = make_asset("blake3:2");
    full.expires_at = clock_.now() + Millis(1);
    full.job = JobId::make(clock_.now());
    full.crc32 = 0xFFFF'FFFF;
    full.store = "main/renders";
    full.retention = assets::RetentionClass::glacier;
    full.moves_at = clock_.now() + Millis(2);
    await_value(catalogue().add(plain));
    await_value(catalogue().add(full));
    storage_->reopen();
    EXPECT_EQ(describe(await_value(catalogue().find(plain.id)).value()), describe(plain));
    EXPECT_EQ(describe(await_value(catalogue().find(full.id)).value()), describe(full));
    EXPECT_FALSE(await_value(catalogue().find(AssetId::make(clock_.now()))));
    EXPECT_EQ(await_code(catalogue().add(plain)), Code::conflict);
}

TEST_P(CatalogueContract, BlobsAreFoundByTenantAndHash) {
    const auto asset = make_asset("blake3:1");
    await_value(catalogue().add(asset));
    EXPECT_EQ(await_value(catalogue().find_by_hash("acme", "blake3:1"))->id, asset.id);
    EXPECT_FALSE(await_value(catalogue().find_by_hash("other", "blake3:1")));
}

TEST_P(CatalogueContract, RemovingKeepsOutputsOfUnfinishedJobsAndSharedBlobs) {
    const auto one = make_asset("blake3:1");
    const auto two = make_asset("blake3:1");
    auto output = make_asset("blake3:2");
    output.job = start(accept(simple_spec())).id;
    for (const auto& asset : {one, two, output}) {
        await_value(catalogue().add(asset));
    }
    EXPECT_TRUE(await_value(catalogue().remove(one.id)));
    EXPECT_FALSE(await_value(catalogue().remove(one.id)));
    EXPECT_TRUE(await_value(catalogue().remove(two.id)));
    EXPECT_EQ(await_code(catalogue().remove(output.id)), Code::asset_in_use);
    EXPECT_TRUE(await_value(catalogue().find(output.id)));
}

TEST_P(CatalogueContract, SmallBytesStayAsLongAsARecordRefersToThem) {
    const std::string bytes("\x89PNG\0\xff", 6);
    auto one = make_asset("blake3:1");
    one.bytes = std::make_shared<const std::string>(bytes);
    const auto two = make_asset("blake3:1");
    auto empty = make_asset("blake3:2");
    empty.bytes = std::make_shared<const std::string>();
    for (const auto& asset : {one, two, empty, make_asset("blake3:3")}) {
        await_value(catalogue().add(asset));
    }
    storage_->reopen();
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:1")), bytes);
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:2")), "");
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:3")), std::nullopt);
    EXPECT_TRUE(await_value(catalogue().remove(one.id)));
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:1")), bytes) << "the second has them too";
    EXPECT_TRUE(await_value(catalogue().remove(two.id)));
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:1")), std::nullopt);
    await_value(catalogue().add(make_asset("blake3:1")));
    EXPECT_EQ(await_value(catalogue().kept_bytes("blake3:1")), std::nullopt) << "they are gone";
}

TEST_P(CatalogueContract, ExpiredAreThoseWhoseTimePassed) {
    const auto stays = make_asset("blake3:1");
    auto soon = make_asset("blake3:2");
    soon.expires_at = clock_.now() + Millis(10);
    auto later = make_asset("blake3:3");
    later.expires_at = clock_.now() + Millis(20);
    auto output = make_asset("blake3:4");
    output.expires_at = clock_.now() + Millis(10);
    output.job = JobId::make(clock_.now());
    for (const auto& asset : {stays, soon, later, output}) {
        await_value(catalogue().add(asset));
    }
    EXPECT_THAT(await_value(catalogue().expired(clock_.now(), std::nullopt, 10)), IsEmpty());
    clock_.advance(Millis(10));
    const auto expired = await_value(catalogue().expired(clock_.now(), std::nullopt, 10));
    ASSERT_EQ(expired.size(), 2U);
    EXPECT_EQ(describe(expired[0]), describe(soon));
    EXPECT_EQ(describe(expired[1]), describe(output));
    clock_.advance(Millis(10));
    EXPECT_EQ(await_value(catalogue().expired(clock_.now(), std::nullopt, 10)).size(), 3U);
    EXPECT_EQ(await_value(catalogue().expired(clock_.now(), std::nullopt, 1)).size(), 1U);
    const auto rest = await_value(catalogue().expired(clock_.now(), expired[1], 10));
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].id, later.id);
}

}  // namespace
}  // namespace comfyd::ledger::test
