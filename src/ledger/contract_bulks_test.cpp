// What bulks rely on, for every storage.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::Bulk;
using jobs::BulkItem;
using jobs::BulkState;
using jobs::ItemState;
using testing::ElementsAre;
using testing::IsEmpty;

class BulkContract : public Contract {
protected:
    Bulk make(std::string tenant = "acme", std::string key = "") {
        clock_.advance(Millis(1));
        Bulk bulk;
        bulk.id = jobs::BulkId::make(clock_.now());
        bulk.tenant = std::move(tenant);
        bulk.dialect = "batches";
        bulk.created_at = clock_.now();
        bulk.about = {{"metadata", json::object{{"order", 7}, {"text", "caf\xC3\xA9"}}}};
        bulk.idempotency_key = std::move(key);
        bulk.request_hash = "hash";
        return bulk;
    }
    Bulk add(Bulk bulk, std::string plan = "plan") {
        EXPECT_TRUE(await_value(bulks().add_bulk(bulk, std::move(plan))).created);
        return bulk;
    }
    Bulk commit(jobs::BulkChange change) {
        const Bulk after = change.bulk;
        await_value(bulks().commit_bulk(std::move(change)));
        return after;
    }
    static BulkItem item(int index) {
        BulkItem made;
        made.index = index;
        made.custom_id = "item \"" + std::to_string(index) + "\"";
        made.params = "{\"n\":" + std::to_string(index) + "}";
        return made;
    }
    static std::vector<BulkItem> some(int from, int to) {
        std::vector<BulkItem> all;
        for (int i = from; i < to; ++i) {
            all.push_back(item(i));
        }
        return all;
    }
    // With this many items, running.
    Bulk loaded(int count, std::string tenant = "acme") {
        Bulk bulk = add(make(std::move(tenant)));
        bulk = commit(get(add_items(bulk, some(0, count))));
        return commit(get(finish_loading(bulk, clock_.now())));
    }
    std::vector<BulkItem> items(
        const Bulk& bulk, std::optional<ItemState> state = {}, int after = -1, int limit = 1000
    ) {
        return await_value(bulks().bulk_items({bulk.id, state, after, limit}));
    }
    std::vector<int> indexes(
        const Bulk& bulk, std::optional<ItemState> state = {}, int after = -1, int limit = 1000
    ) {
        std::vector<int> all;
        for (const BulkItem& one : items(bulk, state, after, limit)) {
            all.push_back(one.index);
        }
        return all;
    }
    Bulk stored(const Bulk& bulk) {
        auto found = await_value(bulks().find_bulk(bulk.id));
        EXPECT_TRUE(found);
        return found.value_or(Bulk());
    }
    std::vector<jobs::BulkId> open() {
        std::vector<jobs::BulkId> ids;
        for (const Bulk& bulk : await_value(bulks().open_bulks(100))) {
            ids.push_back(bulk.id);
        }
        return ids;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, BulkContract, testing::ValuesIn(job_backends()), backend_name);

TEST_P(BulkContract, ABulkIsKeptAsItWas) {
    Bulk bulk = make("acme \xF0\x9F\x8E\xA8", "key");
    bulk.has_webhook = true;
    const std::string plan(300'000, 'p');
    add(bulk, plan);
    bulk = commit(get(add_items(bulk, some(0, 3))));
    bulk = commit(get(finish_loading(bulk, clock_.now())));
    bulk = commit(get(pause(bulk)));
    bulk = commit(note_news(bulk, jobs::BulkNews{clock_.now(), 2, "no answer", {"", "another"}}));
    storage_->reopen();
    const Bulk found = stored(bulk);
    EXPECT_EQ(found.tenant, bulk.tenant);
    EXPECT_EQ(found.dialect, "batches");
    EXPECT_EQ(found.state, BulkState::running);
    EXPECT_TRUE(found.paused);
    EXPECT_EQ(found.counts, bulk.counts);
    EXPECT_EQ(found.counts.total, 3);
    EXPECT_EQ(found.created_at, bulk.created_at);
    EXPECT_EQ(found.about, bulk.about);
    EXPECT_EQ(found.request_hash, "hash");
    EXPECT_TRUE(found.has_webhook);
    EXPECT_EQ(found.news, bulk.news);
    EXPECT_EQ(found.revision, 4);
    EXPECT_EQ(await_value(bulks().find_bulk_plan(bulk.id)), plan);
    const auto kept = items(bulk);
    ASSERT_EQ(kept.size(), 3U);
    EXPECT_EQ(kept[2].custom_id, "item \"2\"");
    EXPECT_EQ(kept[2].params, "{\"n\":2}");
    EXPECT_EQ(kept[2].state, ItemState::waiting);
    EXPECT_FALSE(kept[2].job);
}

TEST_P(BulkContract, AKeyHasOneBulkForATenant) {
    const Bulk first = add(make("acme", "key"));
    const auto again = await_value(bulks().add_bulk(make("acme", "key"), "other"));
    EXPECT_FALSE(again.created);
    ASSERT_TRUE(again.existing);
    EXPECT_EQ(again.existing->id, first.id);
    add(make("other", "key"));
    add(make("acme"));
    add(make("acme"));
    await_value(bulks().remove_bulk(first.id));
    add(make("acme", "key"));
}

TEST_P(BulkContract, AStaleChangeIsRefusedWhole) {
    const Bulk bulk = add(make());
    commit(get(add_items(bulk, some(0, 2))));
    auto stale = get(add_items(bulk, some(0, 5)));
    EXPECT_EQ(await_code(bulks().commit_bulk(std::move(stale))), Code::conflict);
    EXPECT_THAT(indexes(bulk), ElementsAre(0, 1));
    EXPECT_EQ(stored(bulk).counts.total, 2);
    Bulk unknown = make();
    EXPECT_EQ(await_code(bulks().commit_bulk(get(pause(unknown)))), Code::not_found);
    EXPECT_EQ(await_code(bulks().add_bulk(bulk, "plan")), Code::conflict);
}

TEST_P(BulkContract, ItemsAreFoundByStateAndPlace) {
    Bulk bulk = loaded(600);
    EXPECT_EQ(indexes(bulk).size(), 600U);
    EXPECT_THAT(indexes(bulk, {}, 596), ElementsAre(597, 598, 599));
    EXPECT_THAT(indexes(bulk, {}, -1, 2), ElementsAre(0, 1));
    std::vector<jobs::ItemMove> moves;
    for (const int index : {3, 7, 500}) {
        BulkItem moved = item(index);
        moved.state = ItemState::running;
        moved.job = JobId::make(clock_.now());
        moves.push_back({ItemState::waiting, moved});
    }
    const auto job = moves[1].after.job;
    bulk = commit(move_items(bulk, std::move(moves), clock_.now()));
    EXPECT_THAT(indexes(bulk, ItemState::running), ElementsAre(3, 7, 500));
    EXPECT_THAT(indexes(bulk, ItemState::running, 3), ElementsAre(7, 500));
    EXPECT_THAT(indexes(bulk, ItemState::running, 3, 1), ElementsAre(7));
    EXPECT_THAT(indexes(bulk, ItemState::waiting, -1, 5), ElementsAre(0, 1, 2, 4, 5));
    EXPECT_THAT(indexes(bulk, ItemState::failed), IsEmpty());
    EXPECT_EQ(items(bulk, ItemState::running)[1].job, job);
    EXPECT_EQ(stored(bulk).counts.running, 3);
    EXPECT_EQ(stored(bulk).counts.waiting(), 597);
}

TEST_P(BulkContract, WhatBecameOfAnItemIsKept) {
    Bulk bulk = loaded(2);
    BulkItem done = item(0);
    done.state = ItemState::completed;
    done.job = JobId::make(clock_.now());
    done.outputs = {
        {AssetId::make(clock_.now()), "a.png", "image/png", 5ULL << 32, "blake3:00", 0xFFFFFFFF},
        {AssetId::make(clock_.now()), "b.png", "image/png", 1, "blake3:01"},
    };
    BulkItem failed = item(1);
    failed.state = ItemState::failed;
    failed.failure = jobs::Failure::from(Error(Code::invalid_workflow, "no such \"node\""));
    bulk = commit(
        move_items(bulk, {{ItemState::waiting, done}, {ItemState::waiting, failed}}, clock_.now())
    );
    EXPECT_EQ(bulk.state, BulkState::completed);
    storage_->reopen();
    const auto kept = items(bulk);
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(kept[0].outputs, done.outputs);
    EXPECT_EQ(kept[0].job, done.job);
    EXPECT_EQ(kept[0].params, "{\"n\":0}");
    ASSERT_TRUE(kept[1].failure);
    EXPECT_EQ(kept[1].failure->to_json(), failed.failure->to_json());
    EXPECT_FALSE(kept[1].job);

    bulk = commit(get(retry_items(bulk, {kept[1]})));
    EXPECT_EQ(bulk.state, BulkState::running);
    EXPECT_THAT(indexes(bulk, ItemState::waiting), ElementsAre(1));
    EXPECT_FALSE(items(bulk)[1].failure);
    EXPECT_EQ(items(bulk)[0].outputs, done.outputs);
}

TEST_P(BulkContract, PagesAreOfOneTenantTheNewestFirst) {
    std::vector<jobs::BulkId> ids;
    for (int i = 0; i < 5; ++i) {
        ids.push_back(add(make()).id);
        add(make("other"));
    }
    auto page = await_value(bulks().list_bulks("acme", std::nullopt, 3));
    ASSERT_EQ(page.bulks.size(), 3U);
    EXPECT_EQ(page.bulks[0].id, ids[4]);
    ASSERT_TRUE(page.next_cursor);
    page = await_value(bulks().list_bulks("acme", page.next_cursor, 3));
    ASSERT_EQ(page.bulks.size(), 2U);
    EXPECT_EQ(page.bulks[1].id, ids[0]);
    EXPECT_FALSE(page.next_cursor);
    EXPECT_THAT(await_value(bulks().list_bulks("nobody", std::nullopt, 3)).bulks, IsEmpty());
}

TEST_P(BulkContract, OpenAreThoseThatNeedSomebody) {
    const Bulk loading = add(make());
    Bulk told = make();
    told.has_webhook = true;
    told = add(told);
    told = commit(get(add_items(told, some(0, 1))));
    told = commit(*cancel(told, clock_.now()));
    Bulk ended = loaded(1);
    EXPECT_THAT(open(), ElementsAre(loading.id, told.id, ended.id));
    BulkItem done = item(0);
    done.state = ItemState::cancelled;
    ended = commit(move_items(ended, {{ItemState::waiting, done}}, clock_.now()));
    EXPECT_THAT(open(), ElementsAre(loading.id, told.id));
    told = commit(move_items(told, {{ItemState::waiting, done}}, clock_.now()));
    EXPECT_EQ(told.state, BulkState::cancelled);
    EXPECT_TRUE(told.news);
    EXPECT_THAT(open(), ElementsAre(loading.id, told.id));
    const Time later = clock_.now() + Millis(1);
    EXPECT_THAT(await_value(bulks().ended_bulks(later, 10)), ElementsAre(ended.id));
    told = commit(note_news(told, std::nullopt));
    EXPECT_THAT(open(), ElementsAre(loading.id));
    EXPECT_EQ(await_value(bulks().ended_bulks(later, 10)).size(), 2U);
    EXPECT_THAT(await_value(bulks().ended_bulks(loading.created_at, 10)), IsEmpty());
    await_value(bulks().remove_bulk(told.id));
    await_value(bulks().remove_bulk(told.id));
    EXPECT_FALSE(await_value(bulks().find_bulk(told.id)));
    EXPECT_FALSE(await_value(bulks().find_bulk_plan(told.id)));
    EXPECT_THAT(items(told), IsEmpty());
}

// Those that keep assets.
class BulkAssetContract : public BulkContract {};
INSTANTIATE_TEST_SUITE_P(Ledger, BulkAssetContract, testing::ValuesIn(backends()), backend_name);

TEST_P(BulkAssetContract, AssetsAreHeldUntilItHasEnded) {
    assets::Asset asset;
    asset.id = AssetId::make(clock_.now());
    asset.tenant = "acme";
    asset.hash = "blake3:" + std::string(64, 'a');
    asset.created_at = clock_.now();
    await_value(catalogue().add(asset));
    Bulk bulk = add(make());
    BulkItem one = item(0);
    one.params = "{\"image\":\"asset:" + asset.id.to_string() + "\"}";
    bulk = commit(get(add_items(bulk, {one})));
    EXPECT_EQ(await_code(catalogue().remove(asset.id)), Code::asset_in_use);
    bulk = commit(*cancel(bulk, clock_.now()));
    EXPECT_EQ(await_code(catalogue().remove(asset.id)), Code::asset_in_use);
    one.state = ItemState::cancelled;
    bulk = commit(move_items(bulk, {{ItemState::waiting, one}}, clock_.now()));
    EXPECT_TRUE(has_ended(bulk.state));
    EXPECT_TRUE(await_value(catalogue().remove(asset.id)));
}

}  // namespace
}  // namespace comfyd::ledger::test
