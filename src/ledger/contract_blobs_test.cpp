// Which contents lie in which store, and that none is removed that somebody needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using assets::BlobRecord;
using assets::BlobState;
using testing::IsEmpty;

constexpr Millis kHour = std::chrono::hours(1);

class BlobContract : public Contract {
protected:
    assets::Asset make(const std::string& bytes, std::string store = "local") {
        assets::Asset asset;
        asset.id = AssetId::make(clock_.now());
        asset.tenant = "acme";
        asset.hash = assets::blake3_name(bytes);
        asset.size_bytes = bytes.size();
        asset.content_type = "image/png";
        asset.created_at = clock_.now();
        asset.store = std::move(store);
        return asset;
    }
    // With bytes that have just come in.
    assets::Asset add_new(const std::string& bytes, std::string store = "local") {
        auto asset = make(bytes, std::move(store));
        asset.generation = assets::make_generation(clock_.now());
        await_value(catalogue().add(asset));
        return asset;
    }
    std::vector<BlobRecord> blobs(const std::string& bytes) {
        return await_value(catalogue().blobs_of(assets::blake3_name(bytes)));
    }
    BlobRecord blob(const std::string& bytes) {
        const auto all = blobs(bytes);
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? BlobRecord{} : all.front();
    }
    // Of the sweep, an hour later.
    int doom() { return await_value(catalogue().doom(clock_.now(), clock_.now() + kHour, 100)); }
    int take_out() {
        return await_value(catalogue().take_out(clock_.now(), clock_.now() + kHour, 100));
    }
    std::vector<assets::BlobRemoval> removals() {
        return await_value(catalogue().removals(clock_.now(), 1'000));
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, BlobContract, testing::ValuesIn(backends()), backend_name);

TEST_P(BlobContract, BytesThatCameInHaveARecordAndEqualOnesAreTooMany) {
    const auto first = add_new("bytes");
    storage_->reopen();
    const auto record = blob("bytes");
    EXPECT_EQ(record.state, BlobState::live);
    EXPECT_EQ(record.store, "local");
    EXPECT_EQ(record.generation, first.generation);
    EXPECT_EQ(record.key, assets::make_blob_key(first.hash, first.generation));
    EXPECT_EQ(record.size_bytes, 5U);
    const auto second = add_new("bytes");
    EXPECT_EQ(blob("bytes").generation, first.generation);
    ASSERT_EQ(removals().size(), 1U);
    EXPECT_EQ(removals()[0].key, assets::make_blob_key(first.hash, second.generation));
    await_value(catalogue().remove_later(removals()[0], clock_.now() + kHour, "away"));
    EXPECT_THAT(removals(), IsEmpty());
    clock_.advance(kHour);
    ASSERT_EQ(removals().size(), 1U);
    EXPECT_EQ(removals()[0].attempts, 1);
    await_value(catalogue().removed(removals()[0]));
    EXPECT_THAT(removals(), IsEmpty());
}

TEST_P(BlobContract, WhatNothingRefersToGoesInTwoSteps) {
    const auto one = add_new("bytes");
    const auto two = make("bytes");
    await_value(catalogue().add(two));
    EXPECT_EQ(doom(), 0) << "nothing has happened to it";
    await_value(catalogue().remove(one.id));
    EXPECT_EQ(doom(), 1);
    EXPECT_EQ(blob("bytes").state, BlobState::live) << "the second refers to it";
    EXPECT_EQ(doom(), 0) << "it is not looked at twice";
    await_value(catalogue().remove(two.id));
    EXPECT_EQ(doom(), 1);
    EXPECT_EQ(blob("bytes").state, BlobState::doomed);
    EXPECT_EQ(take_out(), 0) << "not before its time";
    clock_.advance(kHour);
    storage_->reopen();
    EXPECT_EQ(take_out(), 1);
    EXPECT_THAT(blobs("bytes"), IsEmpty());
    ASSERT_EQ(removals().size(), 1U);
    EXPECT_EQ(removals()[0].key, assets::make_blob_key(one.hash, one.generation));
}

TEST_P(BlobContract, WhatATenantStoresIsSummedUp) {
    EXPECT_EQ(await_value(catalogue().stored_bytes("acme")), 0U);
    const auto one = add_new(std::string(1'000, 'a'));
    add_new("another");
    const auto same = make(std::string(1'000, 'a'));
    await_value(catalogue().add(same));
    auto other = make(std::string(1'000, 'a'));
    other.tenant = "acme2";
    await_value(catalogue().add(other));
    EXPECT_EQ(await_value(catalogue().stored_bytes("acme")), 2'007U);
    EXPECT_EQ(await_value(catalogue().stored_bytes("acme2")), 1'000U);
    await_value(catalogue().remove(one.id));
    storage_->reopen();
    EXPECT_EQ(await_value(catalogue().stored_bytes("acme")), 1'007U);
}

TEST_P(BlobContract, ADoomedRecordIsNeverRevived) {
    const auto one = add_new("bytes");
    await_value(catalogue().remove(one.id));
    EXPECT_EQ(doom(), 1);
    EXPECT_FALSE(await_value(catalogue().hold(one.hash, "local", clock_.now() + kHour)));
    const auto again = add_new("bytes");
    auto all = blobs("bytes");
    ASSERT_EQ(all.size(), 2U);
    clock_.advance(kHour);
    EXPECT_EQ(take_out(), 1);
    EXPECT_EQ(blob("bytes").generation, again.generation);
    EXPECT_EQ(removals().size(), 1U);
}

TEST_P(BlobContract, WhoRefersToADoomedRecordGetsACopyOfIt) {
    const auto one = add_new("bytes");
    await_value(catalogue().remove(one.id));
    EXPECT_EQ(doom(), 1);
    await_value(catalogue().add(make("bytes")));
    const auto uploads = await_value(catalogue().uploads(clock_.now(), 10));
    ASSERT_EQ(uploads.size(), 1U);
    EXPECT_TRUE(uploads[0].is_needed);
    EXPECT_EQ(uploads[0].record.store, "local");
    EXPECT_NE(uploads[0].record.generation, one.generation);
    clock_.advance(kHour);
    EXPECT_EQ(take_out(), 1);
    EXPECT_EQ(blobs("bytes").size(), 2U) << "it is to be read yet";
    await_value(catalogue().uploaded(uploads[0].record, "", clock_.now()));
    clock_.advance(kHour);
    EXPECT_EQ(take_out(), 1);
    EXPECT_EQ(blob("bytes").generation, uploads[0].record.generation);
}

TEST_P(BlobContract, WhatIsHeldIsNotLookedAt) {
    const auto one = add_new("bytes");
    await_value(catalogue().remove(one.id));
    EXPECT_TRUE(await_value(catalogue().hold(one.hash, "local", clock_.now() + kHour)));
    EXPECT_EQ(doom(), 0);
    auto output = make("bytes");
    await_value(catalogue().add(output));
    await_value(catalogue().remove(output.id));
    EXPECT_EQ(doom(), 0) << "another may be on its way";
    clock_.advance(kHour);
    EXPECT_EQ(doom(), 1);
    EXPECT_EQ(blob("bytes").state, BlobState::doomed);
}

TEST_P(BlobContract, OutputsAreRecordedWithTheEndOfTheirJob) {
    jobs::Output large;
    large.asset = AssetId::make(clock_.now());
    large.hash = assets::blake3_name("large");
    large.size_bytes = 5;
    large.crc32 = 7;
    large.generation = assets::make_generation(clock_.now());
    jobs::Output small = large;
    small.asset = AssetId::make(clock_.now());
    small.hash = assets::blake3_name("small");
    small.generation = 0;
    small.bytes = std::make_shared<const std::string>("small");
    auto spec = simple_spec();
    const auto here = start(accept(spec));
    commit(jobs::complete(here, {large, small}, {}, here.sequence + 1, clock_.now()));
    EXPECT_EQ(blob("large").generation, large.generation);
    EXPECT_THAT(blobs("small"), IsEmpty());
    EXPECT_EQ(await_value(catalogue().find(large.asset))->crc32, 7U);

    spec.dialect_data["keep"] = jobs::Keeping{.store = "main/renders"}.to_json();
    for (jobs::Output* output : {&large, &small}) {
        output->asset = AssetId::make(clock_.now());
        output->generation = 0;
    }
    const auto elsewhere = start(accept(spec));
    commit(jobs::complete(elsewhere, {large, small}, {}, elsewhere.sequence + 1, clock_.now()));
    EXPECT_EQ(await_value(catalogue().find(large.asset))->store, "main/renders");
    const auto uploads = await_value(catalogue().uploads(clock_.now(), 10));
    ASSERT_EQ(uploads.size(), 2U);
    for (const auto& upload : uploads) {
        EXPECT_EQ(upload.record.store, "main/renders");
        EXPECT_TRUE(upload.record.key.starts_with("renders/"));
    }
    const auto waiting = await_value(catalogue().waiting());
    EXPECT_EQ(waiting.uploads, 2U);
    EXPECT_EQ(waiting.upload_bytes, large.size_bytes + small.size_bytes);
    EXPECT_EQ(waiting.oldest_upload, clock_.now());
}

TEST_P(BlobContract, WhatIsNotedOfAnUploadIsThereAtTheNextTry) {
    EXPECT_EQ(await_value(catalogue().waiting()).oldest_upload, std::nullopt);
    add_new("bytes", "main");
    const auto first = [this] {
        return await_value(catalogue().uploads(clock_.now(), 10)).at(0).record;
    };
    BlobRecord upload = first();
    EXPECT_EQ(upload.note, "");
    const std::string note("8388608:2~abc\0'\xFF", 17);
    await_value(catalogue().note_upload(upload, note));
    EXPECT_EQ(first().note, note);
    await_value(catalogue().note_upload(upload, "another"));
    await_value(catalogue().upload_later(upload, clock_.now(), "away"));
    EXPECT_EQ(first().note, "another");
    await_value(catalogue().uploaded(upload, "", clock_.now()));
    await_value(catalogue().note_upload(upload, "too late"));
    EXPECT_EQ(await_value(catalogue().waiting()).uploads, 0U);
}

TEST_P(BlobContract, TheCopyHereIsNeededUntilTheOtherStoreHasIt) {
    const auto asset = add_new("bytes", "main");
    auto uploads = await_value(catalogue().uploads(clock_.now(), 10));
    ASSERT_EQ(uploads.size(), 1U);
    BlobRecord upload = uploads[0].record;
    upload.attempts = 1;
    await_value(catalogue().upload_later(upload, clock_.now() + kHour, "away"));
    EXPECT_THAT(await_value(catalogue().uploads(clock_.now(), 10)), IsEmpty());
    clock_.advance(kHour);
    uploads = await_value(catalogue().uploads(clock_.now(), 10));
    ASSERT_EQ(uploads.size(), 1U);
    EXPECT_EQ(uploads[0].record.attempts, 1);
    EXPECT_EQ(uploads[0].record.error, "away");
    EXPECT_TRUE(await_value(catalogue().hold(asset.hash, "local", clock_.now())));
    EXPECT_EQ(doom(), 1);
    EXPECT_EQ(blobs("bytes").size(), 2U);
    upload.key = "its own name";
    await_value(catalogue().uploaded(upload, "", clock_.now()));
    EXPECT_EQ(doom(), 2) << "both are looked at";
    clock_.advance(kHour);
    EXPECT_EQ(take_out(), 1);
    EXPECT_EQ(blob("bytes").store, "main");
    EXPECT_EQ(blob("bytes").key, "its own name");
    ASSERT_EQ(removals().size(), 1U);
    EXPECT_EQ(removals()[0].store, "local");
    BlobRecord cooler = blob("bytes");
    cooler.storage_class = assets::StorageClass::archive;
    await_value(catalogue().set_storage_class(cooler));
    EXPECT_EQ(blob("bytes").storage_class, assets::StorageClass::archive);
    await_value(catalogue().remove(asset.id));
    EXPECT_EQ(doom(), 1);
    clock_.advance(kHour);
    EXPECT_EQ(take_out(), 1);
    EXPECT_THAT(blobs("bytes"), IsEmpty());
}

TEST_P(BlobContract, LeftoversAreEnteredOnceAndBlockTheirKey) {
    add_new("known");
    BlobRecord lost;
    lost.hash = assets::blake3_name("lost");
    lost.store = "local";
    lost.generation = 5;
    lost.key = assets::make_blob_key(lost.hash, 5);
    const auto enter = [&] {
        return await_value(catalogue().enter_leftovers({blob("known"), lost}, clock_.now() + kHour)
        );
    };
    EXPECT_EQ(enter(), 1);
    EXPECT_EQ(enter(), 0);
    EXPECT_EQ(blob("known").state, BlobState::live);
    // Whoever stored it was stopped for so long, and records it now.
    auto late = make("lost");
    late.generation = 5;
    await_value(catalogue().add(late));
    const auto all = blobs("lost");
    ASSERT_EQ(all.size(), 2U) << "it is copied to another key";
    for (const BlobRecord& one : all) {
        EXPECT_EQ(one.state, one.generation == 5 ? BlobState::doomed : BlobState::uploading);
    }
    EXPECT_THAT(removals(), IsEmpty());
}

TEST_P(BlobContract, AStoreIsReadByPagesAndMoved) {
    std::set<std::string> hashes;
    for (int i = 0; i < 7; ++i) {
        hashes.insert(add_new(std::to_string(i)).hash);
    }
    const auto folder = add_new("0", "main/renders");
    std::set<std::string> seen;
    std::optional<BlobRecord> after;
    for (;;) {
        const auto page = await_value(catalogue().blobs_in("local", after, 3));
        if (page.empty()) {
            break;
        }
        for (const BlobRecord& one : page) {
            EXPECT_TRUE(seen.insert(one.hash).second);
            after = one;
        }
    }
    EXPECT_EQ(seen, hashes);
    const auto asset = add_new("moved");
    BlobRecord target = blob("moved");
    target.store = "main";
    target.generation = 9;
    await_value(catalogue().begin_upload(target, clock_.now()));
    await_value(catalogue().begin_upload(target, clock_.now()));
    await_value(catalogue().uploaded(target, "local", clock_.now()));
    EXPECT_EQ(await_value(catalogue().find(asset.id))->store, "main");
    EXPECT_EQ(await_value(catalogue().sharing(asset.hash, "main", 10)).size(), 1U);
    EXPECT_THAT(await_value(catalogue().sharing(asset.hash, "local", 10)), IsEmpty());
}

TEST_P(BlobContract, MovesAreListedByTheirTime) {
    auto soon = make("soon");
    soon.moves_at = clock_.now() + Millis(10);
    soon.retention = assets::RetentionClass::archive;
    auto later = make("later");
    later.moves_at = clock_.now() + kHour;
    for (const auto& asset : {soon, later}) {
        await_value(catalogue().add(asset));
    }
    const auto moving = [&](Time by) {
        return await_value(catalogue().moving(by, std::nullopt, 10)).size();
    };
    EXPECT_EQ(moving(clock_.now()), 0U);
    EXPECT_EQ(moving(clock_.now() + Millis(10)), 1U);
    EXPECT_EQ(moving(clock_.now() + kHour), 2U);
    await_value(catalogue().moved(soon.id, clock_.now() + 2 * kHour));
    await_value(catalogue().moved(later.id, std::nullopt));
    EXPECT_EQ(moving(clock_.now() + kHour), 0U);
    EXPECT_EQ(moving(clock_.now() + 2 * kHour), 1U);
    await_value(catalogue().set_crc32(soon.id, 42));
    EXPECT_EQ(await_value(catalogue().find(soon.id))->crc32, 42U);
}

// Whatever happens in whatever order: what an asset refers to can be read, and in the end nothing
// is left.
class BlobRaces : public BlobContract {
protected:
    void step(std::mt19937_64& random) {
        const std::string bytes = std::to_string(random() % 3);
        const std::string store = random() % 3 == 0 ? "main" : "local";
        switch (random() % 12) {
            case 0:
            case 1:
                store_new(bytes, store);
                break;
            case 2:
                plan_reuse(bytes, store);
                break;
            case 3:
            case 4:
                record_planned(random);
                break;
            case 5:
            case 6:
                remove_one(random);
                break;
            case 7:
                doom();
                break;
            case 8:
                take_out();
                break;
            case 9:
                remove_keys();
                break;
            case 10:
                upload();
                break;
            default:
                clock_.advance(Millis(random() % (2 * kHour.count())));
                break;
        }
    }
    // The bytes are written now and recorded later.
    void store_new(const std::string& bytes, const std::string& store) {
        auto asset = make(bytes, store);
        asset.generation = assets::make_generation(clock_.now());
        files_.insert({"local", assets::make_blob_key(asset.hash, asset.generation)});
        planned_.push_back(std::move(asset));
    }
    void plan_reuse(const std::string& bytes, const std::string& store) {
        auto asset = make(bytes, store);
        const Time until = clock_.now() + kHour;
        if (await_value(catalogue().hold(asset.hash, "local", until))) {
            held_until_[asset.id] = until;
            planned_.push_back(std::move(asset));
        }
    }
    void record_planned(std::mt19937_64& random) {
        if (planned_.empty()) {
            return;
        }
        const auto at = planned_.begin() + static_cast<std::ptrdiff_t>(random() % planned_.size());
        auto asset = std::move(*at);
        planned_.erase(at);
        const auto held = held_until_.find(asset.id);
        if (held != held_until_.end() && held->second <= clock_.now()) {
            return;  // it came too late, and would have to store its bytes again
        }
        await_value(catalogue().add(asset));
        assets_[asset.id] = asset;
    }
    void remove_one(std::mt19937_64& random) {
        if (!assets_.empty()) {
            const auto at =
                std::next(assets_.begin(), static_cast<std::ptrdiff_t>(random() % assets_.size()));
            await_value(catalogue().remove(at->first));
            assets_.erase(at);
        }
    }
    void remove_keys() {
        for (const auto& removal : removals()) {
            files_.erase({removal.store, removal.key});
            await_value(catalogue().removed(removal));
        }
    }
    void upload() {
        for (const auto& [record, is_needed] :
             await_value(catalogue().uploads(clock_.now(), 100))) {
            if (!is_needed) {
                await_value(catalogue().give_up(record, clock_.now() + kHour));
                continue;
            }
            ASSERT_TRUE(is_readable(record.hash)) << "nowhere to take it from";
            files_.insert({record.store, record.key});
            await_value(catalogue().uploaded(record, "", clock_.now()));
        }
    }
    bool is_readable(const std::string& hash) {
        for (const BlobRecord& one : await_value(catalogue().blobs_of(hash))) {
            if (one.state != BlobState::uploading && files_.contains({one.store, one.key})) {
                return true;
            }
        }
        return false;
    }
    void check() {
        for (const auto& [id, asset] : assets_) {
            ASSERT_TRUE(is_readable(asset.hash)) << asset.store;
        }
    }

    std::set<std::pair<std::string, std::string>> files_;  // store and key
    std::vector<assets::Asset> planned_;
    std::map<AssetId, Time> held_until_;
    std::map<AssetId, assets::Asset> assets_;
};
INSTANTIATE_TEST_SUITE_P(Ledger, BlobRaces, testing::ValuesIn(backends()), backend_name);

TEST_P(BlobRaces, NothingThatIsNeededIsRemovedAndNothingElseStays) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        for (int i = 0; i < 120; ++i) {
            step(random);
            check();
            if (HasFatalFailure()) {
                return;
            }
        }
        while (!planned_.empty()) {
            record_planned(random);
        }
        for (const auto& [id, asset] : assets_) {
            await_value(catalogue().remove(id));
        }
        assets_.clear();
        for (int round = 0; round < 6; ++round) {
            upload();
            doom();
            take_out();
            remove_keys();
            clock_.advance(2 * kHour);
        }
        for (int bytes = 0; bytes < 3; ++bytes) {
            EXPECT_THAT(blobs(std::to_string(bytes)), IsEmpty());
        }
        // What was never recorded is found by looking at the store.
        std::vector<BlobRecord> left;
        for (const auto& [store, key] : files_) {
            const auto name = assets::parse_blob_key(key);
            BlobRecord record;
            record.hash = name->hash;
            record.store = store;
            record.generation = name->generation;
            record.key = key;
            left.push_back(record);
        }
        await_value(catalogue().enter_leftovers(left, clock_.now()));
        take_out();
        remove_keys();
        EXPECT_THAT(files_, IsEmpty());
        held_until_.clear();
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
