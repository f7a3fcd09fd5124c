// Assets that are meant for another store than this machine's folder.
#include "assets/uploader.hpp"

#include <gtest/gtest.h>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "assets/test_support.hpp"

namespace comfyd::assets {
namespace {

using test::Bucket;
using test::Folder;
using test::MemoryCatalogue;
using test::wait_for;

class UploaderTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(store_.open()); }

    BlobStores others() {
        BlobStores stores;
        stores.add("far", std::make_unique<Bucket>(bucket_));
        return stores;
    }
    // An output that is to be kept elsewhere, as the end of its job records it.
    Asset output(const std::string& bytes, std::string store = "far") {
        NewAsset asset;
        asset.tenant = "red";
        asset.job = JobId::make(clock_.now());
        auto added = wait_for(store_.add(bytes, asset));
        EXPECT_TRUE(added);
        added->asset.store = std::move(store);
        EXPECT_TRUE(wait_for(catalogue_.add(added->asset)));
        return wait_for(catalogue_.find(added->asset.id)).value().value();
    }
    std::string read(const Asset& asset) {
        return wait_for(store_.read(asset, 10'000'000)).value_or("none");
    }
    bool is_here(const Asset& asset) {
        const auto blobs = wait_for(catalogue_.blobs_of(asset.hash)).value();
        return std::ranges::any_of(blobs, [](const BlobRecord& blob) {
            return blob.store == kLocalStore;
        });
    }

    Folder folder_;
    ManualClock clock_;
    Pool pool_{2};
    MemoryCatalogue catalogue_;
    std::shared_ptr<Bucket::Content> bucket_ = std::make_shared<Bucket::Content>();
    Store store_{StoreOptions{folder_.path() / "data"}, catalogue_, clock_, pool_, others()};
    const std::string large_ = std::string(5'000'000, 'x');
};

TEST_F(UploaderTest, BytesAreHereUntilTheyAreThere) {
    for (const std::string& bytes : {std::string("small"), std::string(40'000, 'y'), large_}) {
        const Asset asset = output(bytes);
        EXPECT_TRUE(wait_for(store_.is_pending(asset)).value());
        EXPECT_FALSE(std::holds_alternative<Redirect>(*wait_for(store_.content(asset))));
        EXPECT_EQ(read(asset), bytes);
        EXPECT_EQ(wait_for(store_.upload()).value(), 1);
        EXPECT_FALSE(wait_for(store_.is_pending(asset)).value());
        EXPECT_EQ(read(asset), bytes);
        EXPECT_EQ(wait_for(store_.upload()).value(), 0);
    }
    EXPECT_EQ(bucket_->blobs.size(), 3U);
}

TEST_F(UploaderTest, ClientsAreSentThereAndTheCopyHereGoes) {
    const Asset asset = output(large_);
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    const auto content = wait_for(store_.content(asset));
    EXPECT_EQ(
        std::get<Redirect>(*content).url, "https://bucket.example/" + bucket_->blobs.begin()->first
    );
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    EXPECT_TRUE(is_here(asset)) << "somebody may be reading it";
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
    EXPECT_FALSE(is_here(asset));
    EXPECT_EQ(read(asset), large_);
    EXPECT_EQ(wait_for(store_.crc32(asset)).value(), *asset.crc32);
}

TEST_F(UploaderTest, EqualBytesAreBroughtOnce) {
    const Asset first = output(large_);
    const Asset second = output(large_);
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    const Asset third = output(large_);
    EXPECT_FALSE(wait_for(store_.is_pending(third)).value());
    EXPECT_EQ(wait_for(store_.upload()).value(), 0);
    const Asset elsewhere = output(large_, "far/renders");
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    EXPECT_EQ(bucket_->blobs.size(), 2U);
    EXPECT_TRUE(bucket_->blobs.rbegin()->first.starts_with("renders/"));
    EXPECT_EQ(read(elsewhere), large_);
}

TEST_F(UploaderTest, AStoreThatIsAwayHoldsNothingUpAndLosesNothing) {
    bucket_->is_away = true;
    std::vector<Asset> assets;
    for (int i = 0; i < 100; ++i) {
        assets.push_back(output(std::to_string(i) + std::string(40'000, 'z')));
    }
    for (int minute = 0; minute < 10; ++minute) {
        EXPECT_EQ(wait_for(store_.upload()).value(), 0);
        clock_.advance(std::chrono::minutes(1));
        EXPECT_TRUE(wait_for(store_.sweep()));
    }
    EXPECT_EQ(wait_for(catalogue_.waiting()).value().uploads, 100U);
    for (const Asset& asset : assets) {
        EXPECT_TRUE(wait_for(store_.is_pending(asset)).value());
        EXPECT_EQ(read(asset).size(), asset.size_bytes);
    }
    bucket_->is_away = false;
    clock_.advance(std::chrono::minutes(5));
    EXPECT_EQ(wait_for(store_.upload()).value(), 100);
    EXPECT_EQ(wait_for(catalogue_.waiting()).value().uploads, 0U);
    for (const Asset& asset : assets) {
        EXPECT_FALSE(wait_for(store_.is_pending(asset)).value());
    }
}

Task<> upload_all(Store& store, std::optional<Result<int>>& outcome) {
    auto done = co_await store.upload();
    outcome.emplace(std::move(done));
}

TEST_F(UploaderTest, WhoStopsWaitsForNoStore) {
    bucket_->is_silent = true;
    std::vector<Asset> assets;
    for (int i = 0; i < 20; ++i) {
        assets.push_back(output(std::to_string(i) + std::string(40'000, 'z')));
    }
    boost::asio::io_context context;
    TaskGroup group(context.get_executor());
    std::optional<Result<int>> outcome;
    group.spawn("uploads", upload_all(store_, outcome));
    while (bucket_->begun < 8) {
        context.run_one();
    }
    group.cancel();
    context.run();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->error().code, Code::cancelled);
    bucket_->is_silent = false;
    EXPECT_EQ(wait_for(store_.upload()).value(), 20) << "they wait as before";
}

TEST_F(UploaderTest, WhatIsNoLongerWantedIsNotBrought) {
    const Asset asset = output(large_);
    catalogue_.drop(asset);
    EXPECT_EQ(wait_for(store_.upload()).value(), 0);
    EXPECT_TRUE(bucket_->blobs.empty());
    for (int hour = 0; hour < 5; ++hour) {
        EXPECT_TRUE(wait_for(store_.sweep()));
        clock_.advance(std::chrono::hours(1));
    }
    EXPECT_TRUE(wait_for(catalogue_.blobs_of(asset.hash)).value().empty());
}

TEST_F(UploaderTest, WhatGoesIsRemovedThereOnceItCanBe) {
    const Asset asset = output(large_);
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    catalogue_.drop(asset);
    EXPECT_TRUE(wait_for(store_.sweep()));
    clock_.advance(std::chrono::hours(1));
    bucket_->is_away = true;
    EXPECT_TRUE(wait_for(store_.sweep()));
    EXPECT_EQ(bucket_->blobs.size(), 1U);
    EXPECT_EQ(wait_for(catalogue_.waiting()).value().removals, 1U);
    bucket_->is_away = false;
    clock_.advance(std::chrono::hours(1));
    EXPECT_TRUE(wait_for(store_.sweep()));
    EXPECT_TRUE(bucket_->blobs.empty());
    EXPECT_EQ(wait_for(catalogue_.waiting()).value().removals, 0U);
}

TEST_F(UploaderTest, ADamagedFileIsNotBrought) {
    const Asset asset = output(large_);
    const auto content = wait_for(store_.content(asset));
    const auto path = std::get<std::filesystem::path>(*content);
    std::filesystem::resize_file(path, large_.size() - 1);
    EXPECT_EQ(wait_for(store_.upload()).value(), 0);
    EXPECT_TRUE(bucket_->blobs.empty());
    const auto blobs = wait_for(catalogue_.blobs_of(asset.hash)).value();
    EXPECT_TRUE(std::ranges::any_of(blobs, [](const BlobRecord& blob) {
        return blob.error.find("not what they were") != std::string::npos;
    }));
}

TEST_F(UploaderTest, MovesToCheaperStorageWithTheLastThatNeedsIt) {
    Asset asset = output(large_);
    const Time made = asset.created_at;
    const auto keep = [&](Asset& of, RetentionClass retention) {
        of.retention = retention;
        of.moves_at = of.created_at + std::chrono::hours(24 * 30);
        ASSERT_TRUE(wait_for(catalogue_.add(of)));
    };
    keep(asset, RetentionClass::glacier);
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    clock_.advance(std::chrono::hours(24 * 10));
    Asset later = output(large_);
    keep(later, RetentionClass::glacier);
    const std::string key = bucket_->blobs.begin()->first;
    clock_.advance(std::chrono::hours(24 * 20));
    EXPECT_TRUE(wait_for(store_.sweep()));
    EXPECT_FALSE(bucket_->classes.contains(key)) << "the later one is looked at still";
    const auto due =
        wait_for(store_.due(clock_.now() + std::chrono::hours(24 * 10), false, std::nullopt, 10));
    ASSERT_EQ(due->size(), 1U);
    EXPECT_EQ(due->front().asset.id, later.id);
    EXPECT_EQ(due->front().to, StorageClass::archive);
    clock_.advance(std::chrono::hours(24 * 10));
    EXPECT_TRUE(wait_for(store_.sweep()));
    EXPECT_EQ(bucket_->classes.at(key), StorageClass::archive);
    EXPECT_EQ(
        wait_for(catalogue_.find(asset.id)).value()->moves_at, made + std::chrono::hours(24 * 365)
    );
    clock_.advance(std::chrono::hours(24 * 365));
    EXPECT_TRUE(wait_for(store_.sweep()));
    EXPECT_EQ(bucket_->classes.at(key), StorageClass::glacier);
    EXPECT_FALSE(wait_for(catalogue_.find(asset.id)).value()->moves_at);
}

TEST_F(UploaderTest, BytesAreTakenFromAnotherStoreElsewhere) {
    auto nearer = std::make_shared<Bucket::Content>();
    BlobStores stores = others();
    stores.add("near", std::make_unique<Bucket>(nearer));
    Store store(
        StoreOptions{folder_.path() / "data"}, catalogue_, clock_, pool_, std::move(stores)
    );
    ASSERT_TRUE(store.open());
    const Asset asset = output(large_);
    EXPECT_EQ(wait_for(store.upload()).value(), 1);
    for (int hour = 0; hour < 3; ++hour) {
        EXPECT_TRUE(wait_for(store.sweep()));
        clock_.advance(std::chrono::hours(1));
    }
    ASSERT_FALSE(is_here(asset));
    Asset copy = asset;
    copy.id = AssetId::make(clock_.now());
    copy.store = "near";
    ASSERT_TRUE(wait_for(catalogue_.add(copy)));
    EXPECT_EQ(wait_for(store.upload()).value(), 1);
    EXPECT_EQ(nearer->blobs.begin()->second, large_);
}

TEST_F(UploaderTest, WhatIsBeingRestoredSaysSo) {
    const Asset asset = output(large_);
    EXPECT_EQ(wait_for(store_.upload()).value(), 1);
    bucket_->is_restoring = true;
    EXPECT_TRUE(std::holds_alternative<Restoring>(*wait_for(store_.content(asset))));
    bucket_->is_restoring = false;
    bucket_->is_streamed = true;
    EXPECT_TRUE(std::holds_alternative<Streamed>(*wait_for(store_.content(asset))));
    std::string bytes;
    while (bytes.size() < large_.size()) {
        bytes += wait_for(store_.read_part(asset, bytes.size())).value();
    }
    EXPECT_EQ(bytes, large_);
}

}  // namespace
}  // namespace comfyd::assets
