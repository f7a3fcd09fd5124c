// Machines of the fleet, its pools and events, for every storage.
#include <gmock/gmock.h>

#include "fleet/instances/store.hpp"
#include "ledger/postgres_ledger.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"

namespace comfyd::ledger::test {
namespace {

using fleet::FleetEvent;
using fleet::Instance;
using fleet::InstanceState;
using fleet::PoolRecord;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class InstancesContract : public Contract {
protected:
    Instance make(std::string id, std::string of = "main") {
        Instance instance;
        instance.id = std::move(id);
        instance.fleet = std::move(of);
        instance.pool = "gpu";
        instance.revision = 1;
        instance.since[InstanceState::requested] = clock_.now();
        return instance;
    }
    FleetEvent event(std::string what, std::string instance = "", std::string pool = "gpu") {
        FleetEvent made;
        made.at = clock_.now();
        made.fleet = "main";
        made.what = std::move(what);
        made.why = "because \xC3\xA9";
        made.pool = std::move(pool);
        made.instance = std::move(instance);
        return made;
    }
    std::optional<Code> save(const Instance& instance, std::optional<FleetEvent> told = {}) {
        return await_code(instances().save_instance(instance, std::move(told), std::nullopt));
    }
    Instance move(const Instance& instance, InstanceState to) {
        Instance next = get(fleet::moved(instance, to, clock_.now(), "for a test"));
        EXPECT_FALSE(save(next));
        return next;
    }
    std::vector<std::string> open(const std::string& of = "main") {
        return ids(await_value(instances().open_instances(of)));
    }
    std::vector<std::string> ended(int limit = 1000) {
        return ids(await_value(instances().ended_instances("main", limit)));
    }
    std::vector<std::string> told(fleet::FleetEventQuery query) {
        query.fleet = "main";
        std::vector<std::string> all;
        for (const FleetEvent& one : await_value(instances().fleet_events(query))) {
            all.push_back(one.what);
        }
        return all;
    }

private:
    static std::vector<std::string> ids(const std::vector<Instance>& of) {
        std::vector<std::string> all;
        for (const Instance& instance : of) {
            all.push_back(instance.id);
        }
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(
    Ledger, InstancesContract, testing::ValuesIn(job_backends()), backend_name
);

TEST_P(InstancesContract, AreKeptAsTheyWere) {
    Instance saved = make("0123456789ab");
    saved.domain = "east";
    saved.token = "secret";
    saved.offer = {"offer-1", "RTX 4090", 24ULL << 30, "eu", fleet::Market::spot, 0.35, 4};
    ASSERT_FALSE(save(saved));
    saved = get(fleet::moved(saved, InstanceState::creating, clock_.now(), "asked"));
    saved.provider = "cloud";
    saved.machine = "m-\xE7\x8C\xAB";
    saved.url = "http://one";
    saved.gpu = "GPU-1";
    saved.has_failed = true;
    saved.refusals = 2;
    ASSERT_FALSE(save(saved));
    storage_->reopen();
    const auto found = await_value(instances().open_instances("main"));
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].to_json(), saved.to_json());
    EXPECT_EQ(found[0].token, "secret");
    EXPECT_EQ(found[0].offer.usd_per_hour, 0.35);
    EXPECT_EQ(found[0].offer.market, fleet::Market::spot);
}

TEST_P(InstancesContract, AStaleRevisionIsRefusedWithItsEvent) {
    const Instance first = make("a");
    ASSERT_FALSE(save(first, event("requested", "a")));
    EXPECT_EQ(
        save(first, event("again", "a")),
        GetParam().name == "postgres" ? std::optional<Code>() : std::optional(Code::conflict)
    ) << "over PostgreSQL the same write may come twice";
    Instance other = first;
    other.machine = "another";
    EXPECT_EQ(save(other, event("another", "a")), Code::conflict);
    other.revision = 3;
    EXPECT_EQ(save(other), Code::conflict);
    Instance unknown = make("b");
    unknown.revision = 2;
    EXPECT_EQ(save(unknown), Code::conflict) << "there is none";
    EXPECT_THAT(told({}), ElementsAre("requested"));
    EXPECT_THAT(open(), ElementsAre("a"));
}

TEST_P(InstancesContract, OpenOnesAreOfOneFleetAndInOrder) {
    for (const char* id : {"c", "a", "b"}) {
        ASSERT_FALSE(save(make(id)));
    }
    ASSERT_FALSE(save(make("d", "other")));
    EXPECT_THAT(open(), ElementsAre("a", "b", "c"));
    EXPECT_THAT(open("other"), ElementsAre("d"));
    EXPECT_THAT(open("nobody"), IsEmpty());
    move(await_value(instances().open_instances("main"))[1], InstanceState::gone);
    EXPECT_THAT(open(), ElementsAre("a", "c"));
    EXPECT_THAT(ended(), ElementsAre("b"));
}

TEST_P(InstancesContract, OfThoseThatEndedTheLatestStayWithoutTheirTokens) {
    for (int i = 0; i < fleet::InstanceStore::kEndedKept + 3; ++i) {
        Instance instance = make("i" + std::to_string(1000 + i));
        instance.token = "secret";
        ASSERT_FALSE(save(instance));
        clock_.advance(Millis(1));
        move(instance, InstanceState::failed);
    }
    EXPECT_THAT(ended(2), ElementsAre("i1502", "i1501"));
    EXPECT_THAT(ended(), SizeIs(fleet::InstanceStore::kEndedKept));
    EXPECT_EQ(await_value(instances().ended_instances("main", 1))[0].token, "");
}

TEST_P(InstancesContract, EventsAreToldNewestFirstByPoolAndInstance) {
    for (const char* what : {"one", "two", "three"}) {
        await_value(instances().note_fleet_event(event(what)));
    }
    await_value(instances().note_fleet_event(event("four", "x", "other")));
    EXPECT_THAT(told({}), ElementsAre("four", "three", "two", "one"));
    EXPECT_THAT(told({.fleet = "", .pool = "gpu", .limit = 2}), ElementsAre("three", "two"));
    EXPECT_THAT(told({.fleet = "", .instance = "x"}), ElementsAre("four"));
    const auto two = await_value(instances().fleet_events({.fleet = "main", .limit = 2}));
    ASSERT_THAT(two, SizeIs(2));
    EXPECT_GT(two[0].number, two[1].number);
    EXPECT_EQ(two[0].why, "because \xC3\xA9");
    EXPECT_EQ(two[0].at, clock_.now());
    EXPECT_THAT(told({.fleet = "", .before = two[1].number}), ElementsAre("two", "one"));
}

TEST_P(InstancesContract, EventsAreReadOnInTheOrderOfTheirPlaces) {
    const auto after = [this](fleet::FleetEventPlace place, int limit) {
        return await_value(instances().fleet_events_after("main", place, limit));
    };
    EXPECT_THAT(after({}, 10), IsEmpty());
    ASSERT_FALSE(save(make("a"), event("one", "a")));
    await_value(instances().note_fleet_event(event("two")));
    FleetEvent foreign = event("never");
    foreign.fleet = "other";
    await_value(instances().note_fleet_event(foreign));
    await_value(instances().note_fleet_event(event("three", "", "another pool")));
    std::vector<std::string> read;
    fleet::FleetEventPlace place;
    for (auto page = after(place, 2); !page.empty(); page = after(place, 2)) {
        EXPECT_LE(page.size(), 2U);
        for (const FleetEvent& one : page) {
            EXPECT_GT(one.place(), place);
            place = one.place();
            read.push_back(one.what);
        }
    }
    EXPECT_THAT(read, ElementsAre("one", "two", "three"));
    storage_->reopen();
    EXPECT_THAT(after(place, 2), IsEmpty());
    await_value(instances().note_fleet_event(event("four")));
    ASSERT_THAT(after(place, 2), SizeIs(1));
    EXPECT_THAT(after({UINT64_MAX, UINT64_MAX}, 2), IsEmpty());
}

TEST_P(InstancesContract, APoolsRecordIsReplacedByItsNextRevision) {
    PoolRecord record;
    record.fleet = "main";
    record.name = "gpu";
    record.size = 3;
    record.size_configured = 1;
    record.leaving = {"a", "b"};
    record.paused = "mark";
    record.paused_why = "three failed";
    record.failed_starts = 3;
    record.revision = 1;
    ASSERT_FALSE(await_code(instances().save_pool(record, event("resized"))));
    auto stale = record;
    stale.size = 7;
    EXPECT_EQ(await_code(instances().save_pool(stale, event("never"))), Code::conflict);
    storage_->reopen();
    auto found = await_value(instances().pool_records("main"));
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].to_json(), record.to_json());
    found[0].size.reset();
    found[0].revision = 2;
    ASSERT_FALSE(await_code(instances().save_pool(found[0], std::nullopt)));
    EXPECT_FALSE(await_value(instances().pool_records("main"))[0].size);
    EXPECT_THAT(await_value(instances().pool_records("other")), IsEmpty());
    EXPECT_THAT(told({}), ElementsAre("resized"));
}

// Of nodes that share a ledger only who leads the domain writes its instances.
TEST(InstancesOfALeader, AreWrittenUnderItsTermAlone) {
    boost::asio::io_context io{1};
    ManualClock clock;
    PostgresLedger::Options options;
    options.url = make_postgres_database();
    options.secret = "what all nodes know";
    const auto ledger = get(PostgresLedger::open(options, clock));
    const NodeId node = NodeId::make(clock.now());
    const auto taken = await_value(ledger->take("main", node));
    ASSERT_TRUE(taken);
    Instance instance;
    instance.id = "a";
    instance.fleet = "main";
    instance.revision = 1;
    instance.token = "xyzzy";
    ASSERT_TRUE(await(ledger->save_instance(instance, std::nullopt, taken->term)));
    instance.revision = 2;
    jobs::Term earlier = taken->term;
    earlier.epoch -= 1;
    EXPECT_EQ(await_code(ledger->save_instance(instance, std::nullopt, earlier)), Code::lead_lost);
    const auto found = await_value(ledger->open_instances("main"));
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].revision, 1U);
    EXPECT_EQ(found[0].token, "xyzzy");
}

// Numbers are given before they are seen by others.
TEST(EventsOfSeveralNodes, OneThatShowsUpLateIsReadAfterThoseThatWereRead) {
    boost::asio::io_context io{1};
    ManualClock clock;
    PostgresLedger::Options options;
    options.url = make_postgres_database();
    const auto ledger = get(PostgresLedger::open(options, clock));
    const auto read_on = [&](fleet::FleetEventPlace& place) {
        std::vector<std::string> read;
        for (const FleetEvent& one : await_value(ledger->fleet_events_after("main", place, 10))) {
            place = one.place();
            read.push_back(one.what);
        }
        return read;
    };
    FleetEvent event;
    event.fleet = "main";
    event.what = "first";
    await_value(ledger->note_fleet_event(event));
    fleet::FleetEventPlace place;
    ASSERT_THAT(read_on(place), ElementsAre("first"));
    support::PostgresSession slow(options.url);
    slow.run("BEGIN");
    slow.run(
        "INSERT INTO fleet_events (fleet, pool, instance, about) "
        "VALUES ('main', '', '', '{\"fleet\": \"main\", \"what\": \"slow\"}')"
    );
    event.what = "quick";
    await_value(ledger->note_fleet_event(event));
    EXPECT_THAT(read_on(place), IsEmpty()) << "one that stands before it may still come";
    slow.run("COMMIT");
    EXPECT_THAT(read_on(place), ElementsAre("slow", "quick"));
    EXPECT_THAT(read_on(place), IsEmpty());
}

}  // namespace
}  // namespace comfyd::ledger::test
