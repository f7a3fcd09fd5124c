// The port to where the bytes are: the folder that implements it, and the store over one that is
// elsewhere.
#include "assets/hashed_blobs.hpp"

#include <gtest/gtest.h>

#include "assets/blake3.hpp"
#include "assets/test_support.hpp"

namespace comfyd::assets {
namespace {

using test::Bucket;
using test::Folder;
using test::MemoryCatalogue;
using test::wait_for;

class FolderBlobsTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(blobs_->open());
        ASSERT_TRUE(inbox_.open());
    }
    Result<Blob> put(std::string_view bytes) {
        const auto content = inbox_.create();
        EXPECT_TRUE(content->append(bytes));
        return wait_for(blobs_->put(*content));
    }

    Folder folder_;
    ManualClock clock_;
    Pool pool_{2};
    Inbox inbox_{folder_.path() / "incoming", 1'000, clock_, false};
    std::unique_ptr<HashedBlobs> blobs_ = make_hashed_blobs({folder_.path()}, clock_, pool_);
};

TEST_F(FolderBlobsTest, WhatWasPutIsFoundUnderItsHash) {
    const auto blob = put("bytes");
    ASSERT_TRUE(blob) << blob.error().message;
    EXPECT_EQ(blob->hash, blake3_name("bytes"));
    EXPECT_TRUE(blob->is_new);
    const auto place = wait_for(blobs_->find(blob->hash)).value();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->size_bytes, 5U);
    EXPECT_TRUE(std::filesystem::exists(std::get<std::filesystem::path>(place->where)));
    EXPECT_EQ(wait_for(blobs_->read(blob->hash, 5)).value(), "bytes");
    EXPECT_EQ(wait_for(blobs_->read(blob->hash, 4)).error().code, Code::payload_too_large);
    EXPECT_FALSE(put("bytes")->is_new);
}

TEST_F(FolderBlobsTest, WhatIsNotThereIsNot) {
    for (const std::string& hash :
         {blake3_name("never"), std::string("blake3:../../etc/passwd"), std::string()}) {
        EXPECT_FALSE(wait_for(blobs_->find(hash)).value()) << hash;
        EXPECT_EQ(wait_for(blobs_->read(hash, 10)).error().code, Code::not_found) << hash;
        EXPECT_FALSE(wait_for(blobs_->keep(hash)).value()) << hash;
        EXPECT_EQ(wait_for(blobs_->remove_unless_young(hash)).value(), HashedBlobs::Removal::absent)
            << hash;
    }
}

TEST_F(FolderBlobsTest, AYoungBlobStaysAndAnOldOneIsListed) {
    const std::string hash = put("bytes")->hash;
    const auto first_byte = static_cast<std::uint8_t>(std::stoi(hash.substr(7, 2), nullptr, 16));
    using Removal = HashedBlobs::Removal;
    EXPECT_EQ(wait_for(blobs_->remove_unless_young(hash)).value(), Removal::too_young);
    EXPECT_TRUE(wait_for(blobs_->old_ones(first_byte)).value().empty());
    clock_.advance(std::chrono::hours(2));
    EXPECT_EQ(wait_for(blobs_->old_ones(first_byte)).value(), std::vector<std::string>{hash});
    EXPECT_TRUE(wait_for(blobs_->keep(hash)).value());
    EXPECT_EQ(wait_for(blobs_->remove_unless_young(hash)).value(), Removal::too_young);
    clock_.advance(std::chrono::hours(2));
    EXPECT_EQ(wait_for(blobs_->remove_unless_young(hash)).value(), Removal::removed);
    EXPECT_FALSE(wait_for(blobs_->find(hash)).value());
}

class StoreElsewhereTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(store_.open()); }
    Result<Store::Added> add(std::string bytes) {
        NewAsset asset;
        asset.tenant = "red";
        return wait_for(store_.add(std::move(bytes), asset));
    }

    Folder folder_;
    ManualClock clock_;
    Pool pool_{2};
    MemoryCatalogue catalogue_;
    std::shared_ptr<Bucket::Content> bucket_ = std::make_shared<Bucket::Content>();
    Store store_{
        StoreOptions{folder_.path() / "data"},
        std::make_unique<Bucket>(bucket_),
        catalogue_,
        clock_,
        pool_
    };
};

TEST_F(StoreElsewhereTest, BytesGoThereAndClientsAreSentThere) {
    const auto added = add("far away");
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(bucket_->blobs.at(added->asset.hash), "far away");
    const auto content = wait_for(store_.content(added->asset));
    ASSERT_TRUE(content);
    EXPECT_EQ(std::get<Redirect>(*content).url, "https://bucket.example/" + added->asset.hash);
    EXPECT_EQ(wait_for(store_.read(added->asset, 100)).value(), "far away");
    EXPECT_FALSE(add("far away")->created_new);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "data" / "incoming"));
}

TEST_F(StoreElsewhereTest, ARecordOverKnownBytesKeepsTheBlob) {
    const auto added = add("far away");
    NewAsset another;
    another.tenant = "red";
    EXPECT_TRUE(wait_for(store_.from_hash(added->asset.hash, another)));
    EXPECT_EQ(bucket_->kept.at(added->asset.hash), 1);
}

TEST_F(StoreElsewhereTest, WhatCannotBeStoredHasNoRecord) {
    bucket_->is_away = true;
    const auto added = add("far away");
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, Code::storage_unavailable);
    EXPECT_FALSE(wait_for(catalogue_.find_by_hash("red", blake3_name("far away"))).value());
}

TEST_F(StoreElsewhereTest, WhatNothingRefersToGoes) {
    const auto added = add("far away");
    EXPECT_TRUE(wait_for(store_.remove("red", added->asset.id)));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
    EXPECT_TRUE(bucket_->blobs.empty());
}

}  // namespace
}  // namespace comfyd::assets
