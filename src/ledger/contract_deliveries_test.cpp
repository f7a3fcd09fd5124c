// What people see of deliveries and do with dead letters, and tenants' endpoints: for every
// storage.
#include <gmock/gmock.h>

#include <algorithm>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using notify::DeliveryState;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class DeliveriesContract : public Contract {
protected:
    // A job that tells of its start and its end, and has ended.
    jobs::Job told_job(const std::string& tenant = "local") {
        auto spec = simple_spec(tenant);
        spec.webhook.emplace();
        spec.webhook->url = "https://example.com/hook";
        spec.webhook->secret = "s";
        spec.webhook->events = {"execution.started", "execution.completed"};
        return complete(start(accept(spec)));
    }
    void give_up_all() {
        for (auto found = due(); !found.empty(); found = due()) {
            for (auto& delivery : found) {
                delivery.log.push_back({clock_.now(), 503, Millis(12), "HTTP 503"});
                await_value(outbox().give_up(delivery, clock_.now(), "HTTP 503"));
            }
        }
    }
    std::vector<notify::DeliveryView> list(notify::DeliveryQuery query = {}) {
        std::vector<notify::DeliveryView> all;
        do {
            auto page = await_value(deliveries().list_deliveries(query));
            EXPECT_LE(page.deliveries.size(), static_cast<std::size_t>(query.limit));
            for (auto& view : page.deliveries) {
                all.push_back(std::move(view));
            }
            query.cursor = page.next_cursor;
        } while (query.cursor);
        return all;
    }
    std::vector<notify::DeliveryView> in_state(DeliveryState state) {
        notify::DeliveryQuery query;
        query.tenant = "local";
        query.state = state;
        return list(query);
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, DeliveriesContract, testing::ValuesIn(backends()), backend_name);

TEST_P(DeliveriesContract, AreListedWithWhatBecameOfThem) {
    const auto job = told_job();
    auto first = due().at(0);
    first.log.push_back({clock_.now(), 500, Millis(7), "HTTP 500"});
    await_value(outbox().retry_at(first, clock_.now() + Millis(1'000), "HTTP 500"));
    storage_->reopen();
    const auto all = list();
    ASSERT_THAT(all, SizeIs(2));
    EXPECT_EQ(all[0].event, jobs::EventType::completed) << "the newest first";
    const auto& waiting = all[1];
    EXPECT_EQ(waiting.event, jobs::EventType::started);
    EXPECT_EQ(waiting.state, DeliveryState::pending);
    EXPECT_EQ(waiting.tenant, "local");
    EXPECT_EQ(waiting.error, "HTTP 500");
    EXPECT_EQ(waiting.delivery.attempts, 1);
    EXPECT_EQ(waiting.delivery.next_attempt_at, clock_.now() + Millis(1'000));
    EXPECT_EQ(
        std::get<jobs::Webhook>(waiting.delivery.target.value()).url, "https://example.com/hook"
    );
    ASSERT_THAT(waiting.delivery.log, SizeIs(1));
    EXPECT_EQ(waiting.delivery.log[0].status, 500);
    EXPECT_EQ(waiting.delivery.log[0].took, Millis(7));
    EXPECT_EQ(waiting.delivery.log[0].error, "HTTP 500");
    const auto found = await_value(deliveries().find_delivery(waiting.key()));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->key(), waiting.key());
    EXPECT_FALSE(await_value(deliveries().find_delivery({job.id, "nobody", 2})));
}

TEST_P(DeliveriesContract, ListsAreFilteredAndPaged) {
    const auto one = told_job();
    const auto two = told_job();
    told_job("other");
    const auto first = due().at(0);
    await_value(outbox().delivered(first, clock_.now()));
    EXPECT_THAT(list(), SizeIs(6));
    for (const int limit : {1, 2, 3, 200}) {
        notify::DeliveryQuery query;
        query.tenant = "local";
        query.limit = limit;
        const auto found = list(query);
        ASSERT_THAT(found, SizeIs(4)) << limit;
        EXPECT_TRUE(std::is_sorted(found.rbegin(), found.rend(), [](const auto& a, const auto& b) {
            return a.key() < b.key();
        }));
    }
    notify::DeliveryQuery of_job;
    of_job.tenant = "local";
    of_job.job = one.id;
    EXPECT_THAT(list(of_job), SizeIs(2));
    of_job.tenant = "other";
    EXPECT_THAT(list(of_job), IsEmpty());
    EXPECT_THAT(in_state(DeliveryState::delivered), SizeIs(1));
    EXPECT_THAT(in_state(DeliveryState::pending), SizeIs(3));
    EXPECT_THAT(in_state(DeliveryState::dead), IsEmpty());
    notify::DeliveryQuery to_nobody;
    to_nobody.endpoint = "nobody";
    EXPECT_THAT(list(to_nobody), IsEmpty());
}

TEST_P(DeliveriesContract, DeadLettersAreReplayedInOrder) {
    const auto job = told_job();
    told_job("other");
    give_up_all();
    EXPECT_EQ(await_value(outbox().counts()).dead, 4U);
    clock_.advance(std::chrono::hours(30));
    notify::DeadFilter mine;
    mine.tenant = "local";
    EXPECT_EQ(await_value(deliveries().replay_dead(mine, clock_.now(), 100)), 2);
    EXPECT_EQ(await_value(deliveries().replay_dead(mine, clock_.now(), 100)), 0);
    storage_->reopen();
    const auto counts = await_value(outbox().counts());
    EXPECT_EQ(counts.pending, 2U);
    EXPECT_EQ(counts.dead, 2U);
    for (const std::uint64_t sequence : {2U, 3U}) {
        const auto found = due();
        ASSERT_THAT(found, SizeIs(1));
        EXPECT_EQ(found[0].job, job.id);
        EXPECT_EQ(found[0].sequence, sequence);
        EXPECT_EQ(found[0].attempts, 0);
        EXPECT_EQ(found[0].created_at, clock_.now()) << "with all of its time to go";
        EXPECT_THAT(found[0].log, SizeIs(1)) << "what was before is not forgotten";
        await_value(outbox().delivered(found[0], clock_.now()));
    }
    EXPECT_THAT(due(), IsEmpty());
}

TEST_P(DeliveriesContract, DeadLettersAreCountedAndChosenByTheirJob) {
    const auto one = told_job();
    told_job();
    told_job("other");
    EXPECT_EQ(await_value(deliveries().count_dead({}, 100)), 0);
    give_up_all();
    EXPECT_EQ(await_value(deliveries().count_dead({}, 100)), 6);
    EXPECT_EQ(await_value(deliveries().count_dead({}, 5)), 5) << "no more than it is asked for";
    notify::DeadFilter filter;
    filter.tenant = "local";
    EXPECT_EQ(await_value(deliveries().count_dead(filter, 100)), 4);
    filter.job = one.id;
    EXPECT_EQ(await_value(deliveries().count_dead(filter, 100)), 2);
    filter.endpoint = "nobody";
    EXPECT_EQ(await_value(deliveries().count_dead(filter, 100)), 0);
    filter.endpoint.reset();
    filter.tenant = "other";
    EXPECT_EQ(await_value(deliveries().purge_dead(filter, 100)), 0) << "it is not theirs";
    filter.tenant = "local";
    EXPECT_EQ(await_value(deliveries().purge_dead(filter, 100)), 2);
    EXPECT_EQ(await_value(deliveries().count_dead({}, 100)), 4);
}

TEST_P(DeliveriesContract, AnOlderOneThatIsReplayedGoesBeforeWhatWaits) {
    told_job();
    const auto first = due().at(0);
    await_value(outbox().give_up(first, clock_.now(), "gone"));
    notify::DeadFilter filter;
    filter.one = notify::DeliveryKey{first.job, first.endpoint, first.sequence};
    EXPECT_EQ(await_value(deliveries().replay_dead(filter, clock_.now(), 10)), 1);
    ASSERT_THAT(due(), SizeIs(1));
    EXPECT_EQ(due()[0].sequence, first.sequence);
    await_value(outbox().delivered(due()[0], clock_.now()));
    ASSERT_THAT(due(), SizeIs(1));
    EXPECT_EQ(due()[0].sequence, first.sequence + 1);
}

TEST_P(DeliveriesContract, OnlyDeadOnesAreReplayedOrThrownAway) {
    told_job();
    const auto first = due().at(0);
    notify::DeadFilter filter;
    filter.one = notify::DeliveryKey{first.job, first.endpoint, first.sequence};
    EXPECT_EQ(await_value(deliveries().replay_dead(filter, clock_.now(), 10)), 0);
    EXPECT_EQ(await_value(deliveries().purge_dead(filter, 10)), 0);
    give_up_all();
    filter.tenant = "somebody else";
    EXPECT_EQ(await_value(deliveries().purge_dead(filter, 10)), 0);
    filter.tenant = "local";
    EXPECT_EQ(await_value(deliveries().purge_dead(filter, 10)), 1);
    EXPECT_THAT(in_state(DeliveryState::dead), SizeIs(1));
    EXPECT_EQ(await_value(deliveries().purge_dead({}, 10)), 1);
    EXPECT_THAT(list(), IsEmpty());
    const auto counts = await_value(outbox().counts());
    EXPECT_EQ(counts.pending, 0U);
    EXPECT_EQ(counts.dead, 0U);
}

TEST_P(DeliveriesContract, WhatWaitsForAReceiverIsGivenUpTogether) {
    notify::Route route;
    route.to = {"endpoint:a", notify::EndpointTarget{notify::EndpointId::make(clock_.now())}};
    route.events = {"execution.started", "execution.completed"};
    storage_->routing.set_endpoints({route});
    for (int i = 0; i < 3; ++i) {
        told_job();
    }
    int given_up = 0;
    for (int done = 1; done > 0; given_up += done) {
        done = await_value(outbox().give_up_waiting("endpoint:a", clock_.now(), "410", 2));
        EXPECT_LE(done, 2);
    }
    EXPECT_EQ(given_up, 6);
    notify::DeliveryQuery query;
    query.endpoint = "endpoint:a";
    for (const auto& view : list(query)) {
        EXPECT_EQ(view.state, DeliveryState::dead);
        EXPECT_EQ(view.error, "410");
        EXPECT_TRUE(std::holds_alternative<notify::EndpointTarget>(view.delivery.target.value()));
    }
    EXPECT_THAT(due(), SizeIs(3)) << "to the webhooks that came with the jobs";
    EXPECT_EQ(await_value(outbox().counts()).dead, 6U);
}

class EndpointsContract : public Contract {
protected:
    notify::Endpoint endpoint(const std::string& tenant = "local") {
        notify::Endpoint made;
        made.id = notify::EndpointId::make(clock_.now());
        made.tenant = tenant;
        made.revision = 1;
        made.webhook.url = "https://example.com/" + tenant;
        made.webhook.secret = notify::make_endpoint_secret();
        made.created_at = made.updated_at = clock_.now();
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, EndpointsContract, testing::ValuesIn(backends()), backend_name);

TEST_P(EndpointsContract, AreKeptAndCounted) {
    EXPECT_EQ(await_value(endpoints().endpoint_changes()), 0U);
    auto one = endpoint();
    const auto two = endpoint("other");
    await_value(endpoints().save_endpoint(one));
    await_value(endpoints().save_endpoint(two));
    one.revision = 2;
    one.disabled = "it answered 410";
    one.previous_secret = std::exchange(one.webhook.secret, "new");
    one.previous_until = clock_.now() + Millis(5);
    await_value(endpoints().save_endpoint(one));
    storage_->reopen();
    EXPECT_EQ(await_value(endpoints().endpoint_changes()), 3U);
    auto all = await_value(endpoints().all_endpoints());
    EXPECT_EQ(all.changes, 3U);
    ASSERT_THAT(all.endpoints, SizeIs(2));
    std::ranges::sort(all.endpoints, {}, &notify::Endpoint::id);
    EXPECT_EQ(all.endpoints[0].about(), one.about());
    EXPECT_EQ(all.endpoints[0].secrets(), one.secrets());
    EXPECT_EQ(all.endpoints[0].revision, 2U);
    EXPECT_EQ(all.endpoints[1].tenant, "other");
    EXPECT_TRUE(await_value(endpoints().remove_endpoint(one.id)));
    EXPECT_FALSE(await_value(endpoints().remove_endpoint(one.id)));
    EXPECT_EQ(await_value(endpoints().endpoint_changes()), 4U);
    EXPECT_THAT(await_value(endpoints().all_endpoints()).endpoints, SizeIs(1));
}

TEST_P(EndpointsContract, WhoeverIsSlowerIsRefused) {
    auto one = endpoint();
    await_value(endpoints().save_endpoint(one));
    auto stale = one;
    stale.description = "other";
    EXPECT_EQ(await_code(endpoints().save_endpoint(stale)), Code::conflict);
    one.revision = 3;
    EXPECT_EQ(await_code(endpoints().save_endpoint(one)), Code::conflict);
    one.id = notify::EndpointId::make(clock_.now());
    one.revision = 2;
    EXPECT_EQ(await_code(endpoints().save_endpoint(one)), Code::conflict) << "there is none";
    EXPECT_EQ(await_value(endpoints().endpoint_changes()), 1U);
}

}  // namespace
}  // namespace comfyd::ledger::test
