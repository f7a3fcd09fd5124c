#include "assets/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "assets/files.hpp"
#include "assets/test_support.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::MemoryCatalogue;
using test::wait_for;
using testing::HasSubstr;

std::vector<fs::path> files_under(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            files.push_back(entry.path());
        }
    }
    return files;
}

std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

void put(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

class StoreTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(store_.open()); }

    NewAsset of(std::string tenant, std::string file_path = "") {
        NewAsset asset;
        asset.tenant = std::move(tenant);
        asset.file_path = std::move(file_path);
        return asset;
    }
    Store::Added add(std::string bytes, NewAsset asset) {
        auto added = wait_for(store_.add(std::move(bytes), std::move(asset)));
        EXPECT_TRUE(added) << added.error().message;
        return std::move(*added);
    }
    fs::path data() const { return folder_.path() / "data"; }
    std::vector<fs::path> blobs() const { return files_under(data() / "blobs"); }
    // The file of these bytes.
    std::optional<fs::path> blob(const std::string& hash) const {
        const auto files = blobs();
        const auto found = std::find_if(files.begin(), files.end(), [&](const fs::path& file) {
            const auto key = parse_blob_key(file.lexically_relative(data() / "blobs").string());
            return key && key->hash == hash;
        });
        return found == files.end() ? std::nullopt : std::optional(*found);
    }
    std::vector<fs::path> unfinished() const { return files_under(data() / "incoming"); }

    Folder folder_;
    ManualClock clock_;
    Pool pool_{4};
    MemoryCatalogue catalogue_;
    Store store_{StoreOptions{data(), 1'000'000}, catalogue_, clock_, pool_};
};

TEST_F(StoreTest, TheSameKeyAndBytesGiveTheSameAsset) {
    const auto with_key = [this](std::string tenant) {
        NewAsset asset = of(std::move(tenant));
        asset.idempotency_key = "k";
        asset.expires_at = clock_.now() + std::chrono::hours(1);
        return asset;
    };
    const auto first = add("one", with_key("red"));
    EXPECT_FALSE(first.replayed);
    const auto again = add("one", with_key("red"));
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.asset.id, first.asset.id);
    const auto other = wait_for(store_.add("two", with_key("red")));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::idempotency_key_reuse);
    EXPECT_NE(add("two", with_key("blue")).asset.id, first.asset.id);
    const auto by_hash = wait_for(store_.from_hash(first.asset.hash, with_key("red")));
    ASSERT_TRUE(by_hash);
    EXPECT_EQ(by_hash->id, first.asset.id);
    clock_.advance(std::chrono::hours(2));
    EXPECT_FALSE(add("two", with_key("red")).replayed);
}

TEST_F(StoreTest, GivesBackWhatItGot) {
    const auto added = add("GIF89a rest", of("red", "pictures/a"));
    EXPECT_TRUE(added.created_new);
    EXPECT_EQ(added.asset.hash, blake3_name("GIF89a rest"));
    EXPECT_EQ(added.asset.size_bytes, 11U);
    EXPECT_EQ(added.asset.content_type, "image/gif");
    EXPECT_EQ(added.asset.created_at, clock_.now());
    const auto found = wait_for(store_.get("red", added.asset.id));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->file_path, "pictures/a");
    EXPECT_EQ(wait_for(store_.read(*found, 11)).value(), "GIF89a rest");
    EXPECT_EQ(wait_for(store_.read(*found, 10)).error().code, Code::payload_too_large);
}

TEST_F(StoreTest, LaysBlobsOutByTheirHashForTheOwnerOnly) {
    const auto added = add("hello", of("red"));
    const std::string hex = added.asset.hash.substr(7);
    const auto path = blob(added.asset.hash);
    ASSERT_TRUE(path);
    EXPECT_THAT(
        path->string(),
        testing::StartsWith((data() / "blobs" / hex.substr(0, 2) / hex.substr(2)).string() + ".")
    );
    EXPECT_EQ(content_of(*path), "hello");
    struct stat status{};
    ASSERT_EQ(::stat(path->c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    for (const fs::path& folder :
         {data(), data() / "blobs", data() / "incoming", path->parent_path()}) {
        ASSERT_EQ(::stat(folder.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0700U) << folder;
    }
    EXPECT_TRUE(unfinished().empty());
}

TEST_F(StoreTest, StoresEqualBytesOnce) {
    const auto first = add("same", of("red"));
    const auto second = add("same", of("red"));
    const auto foreign = add("same", of("blue"));
    EXPECT_TRUE(first.created_new);
    EXPECT_FALSE(second.created_new);
    EXPECT_TRUE(foreign.created_new) << "tells red's files to blue";
    EXPECT_NE(first.asset.id, second.asset.id);
    EXPECT_EQ(blobs().size(), 1U);
    EXPECT_TRUE(unfinished().empty());
}

Task<> add_many(Store& store, std::atomic<int>& good) {
    for (int i = 0; i < 20; ++i) {
        NewAsset asset;
        asset.tenant = "red";
        auto added = co_await store.add("content " + std::to_string(i), asset);
        good += added ? 1 : 0;
    }
}

TEST_F(StoreTest, EqualUploadsAtTheSameTimeDoNotDisturbEachOther) {
    std::atomic<int> good = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            boost::asio::io_context context(1);
            TaskGroup group(context.get_executor());
            group.spawn("add", add_many(store_, good));
            group.spawn("add", add_many(store_, good));
            context.run();
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(good, 4 * 2 * 20);
    ASSERT_TRUE(wait_for(store_.sweep())) << "of those that were stored at the same moment";
    const auto files = blobs();
    EXPECT_EQ(files.size(), 20U);
    for (const fs::path& file : files) {
        const auto key = parse_blob_key(file.lexically_relative(data() / "blobs").string());
        ASSERT_TRUE(key);
        EXPECT_EQ(blake3_name(content_of(file)), key->hash);
    }
    EXPECT_TRUE(unfinished().empty());
}

TEST_F(StoreTest, AWriterTakesPieces) {
    auto writer = store_.write();
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->append("{\"a\":"));
    ASSERT_TRUE((*writer)->append(""));
    ASSERT_TRUE((*writer)->append("1}"));
    const auto added = wait_for(store_.finish(std::move(*writer), of("red")));
    ASSERT_TRUE(added);
    EXPECT_EQ(added->asset.hash, blake3_name("{\"a\":1}"));
    EXPECT_EQ(added->asset.content_type, "application/json");
}

TEST_F(StoreTest, AWriterThatIsGivenUpLeavesNothing) {
    {
        auto writer = store_.write();
        ASSERT_TRUE(writer);
        ASSERT_TRUE((*writer)->append("half of it"));
    }
    EXPECT_TRUE(unfinished().empty());
    EXPECT_TRUE(blobs().empty());
}

TEST_F(StoreTest, LargeContentWaitsOnTheDiskAndIsStoredWhole) {
    Store store(StoreOptions{data(), 100'000'000}, catalogue_, clock_, pool_);
    const std::string piece(3'000'000, 'x');
    {
        auto given_up = store.write();
        ASSERT_TRUE(given_up);
        ASSERT_TRUE((*given_up)->append(piece));
        EXPECT_TRUE(unfinished().empty());
        ASSERT_TRUE((*given_up)->append(piece));
        EXPECT_EQ(unfinished().size(), 1U);
    }
    EXPECT_TRUE(unfinished().empty());
    auto writer = store.write();
    ASSERT_TRUE(writer);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE((*writer)->append(piece));
    }
    const auto added = wait_for(store.finish(std::move(*writer), of("red")));
    ASSERT_TRUE(added);
    EXPECT_EQ(added->asset.hash, blake3_name(piece + piece + piece));
    EXPECT_EQ(added->asset.size_bytes, 9'000'000U);
}

TEST_F(StoreTest, TooMuchIsRefusedAndStaysRefused) {
    auto writer = store_.write();
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->append(std::string(1'000'000, 'x')));
    const auto more = (*writer)->append("x");
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::payload_too_large);
    EXPECT_FALSE((*writer)->append(""));
    const auto added = wait_for(store_.finish(std::move(*writer), of("red")));
    ASSERT_FALSE(added) << "would store less than was sent";
    EXPECT_EQ(added.error().code, Code::payload_too_large);
    EXPECT_TRUE(blobs().empty());
    EXPECT_TRUE(unfinished().empty());
}

TEST_F(StoreTest, BytesThatAreNotTheExpectedOnesAreRefused) {
    NewAsset asset = of("red");
    asset.expected_hash = blake3_name("something else");
    const auto added = wait_for(store_.add("bytes", asset));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, Code::hash_mismatch);
    EXPECT_EQ(added.error().details.at("actual").as_string(), blake3_name("bytes"));
    EXPECT_TRUE(blobs().empty());
    asset.expected_hash = blake3_name("bytes");
    EXPECT_TRUE(wait_for(store_.add("bytes", asset)));
}

TEST_F(StoreTest, ATypeThatIsNoneCountsAsNotGiven) {
    for (const char* type :
         {"text/plain\r\nSet-Cookie: a=b", "image/png,text/html", "text/html\t", "html", "a/b;c"}) {
        NewAsset asset = of("red");
        asset.content_type = type;
        const auto added = wait_for(store_.add("<script>alert(1)</script>", asset));
        ASSERT_TRUE(added);
        EXPECT_EQ(added->asset.content_type, "text/plain; charset=utf-8") << type;
        const auto again = wait_for(store_.from_hash(added->asset.hash, asset));
        ASSERT_TRUE(again);
        EXPECT_EQ(again->content_type, "text/plain; charset=utf-8") << type;
    }
}

TEST_F(StoreTest, NamesThatWouldHarmAreRefused) {
    EXPECT_EQ(
        wait_for(store_.add("x", of("red", std::string(5000, 'x')))).error().code,
        Code::invalid_argument
    );
    NewAsset tagged = of("red");
    tagged.tags.assign(65, "tag");
    EXPECT_EQ(wait_for(store_.add("x", tagged)).error().code, Code::invalid_argument);
    EXPECT_TRUE(blobs().empty());
}

TEST_F(StoreTest, ARecordOverKnownBytesNeedsNoUpload) {
    const auto added = add("known", of("red", "a.txt"));
    EXPECT_TRUE(wait_for(store_.has_hash("red", added.asset.hash)).value());
    EXPECT_FALSE(wait_for(store_.has_hash("blue", added.asset.hash)).value());
    const auto second = wait_for(store_.from_hash(added.asset.hash, of("red", "b.bin")));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->size_bytes, 5U);
    EXPECT_EQ(second->file_path, "b.bin");
    EXPECT_EQ(second->content_type, added.asset.content_type);
    EXPECT_EQ(
        wait_for(store_.from_hash(added.asset.hash, of("blue"))).error().code, Code::blob_not_found
    );
    EXPECT_EQ(
        wait_for(store_.from_hash("blake3:../../etc/passwd", of("red"))).error().code,
        Code::blob_not_found
    );
}

TEST_F(StoreTest, AssetsOfOthersAndExpiredOnesAreNotThere) {
    NewAsset asset = of("red");
    asset.expires_at = clock_.now() + Millis(10);
    const auto added = add("mine", asset);
    EXPECT_TRUE(wait_for(store_.get("red", added.asset.id)));
    EXPECT_EQ(wait_for(store_.get("blue", added.asset.id)).error().code, Code::not_found);
    EXPECT_EQ(wait_for(store_.remove("blue", added.asset.id)).error().code, Code::not_found);
    EXPECT_EQ(
        wait_for(store_.get("red", AssetId::make(clock_.now()))).error().code, Code::not_found
    );
    clock_.advance(Millis(10));
    EXPECT_EQ(wait_for(store_.get("red", added.asset.id)).error().code, Code::not_found);
}

TEST_F(StoreTest, AFileThatIsGoneIsReported) {
    const auto added = add("here", of("red"));
    fs::remove(blob(added.asset.hash).value());
    EXPECT_EQ(wait_for(store_.content(added.asset)).error().code, Code::output_unavailable);
    EXPECT_EQ(wait_for(store_.read(added.asset, 100)).error().code, Code::output_unavailable);
    EXPECT_FALSE(wait_for(store_.has_hash("red", added.asset.hash)).value());
    EXPECT_EQ(
        wait_for(store_.from_hash(added.asset.hash, of("red"))).error().code, Code::blob_not_found
    );
    Asset nonsense = added.asset;
    nonsense.hash = "blake3:nonsense";
    EXPECT_EQ(wait_for(store_.content(nonsense)).error().code, Code::output_unavailable);
    EXPECT_TRUE(add("here", of("red")).asset.size_bytes == 4);
    EXPECT_TRUE(blob(added.asset.hash));
}

TEST_F(StoreTest, ATruncatedBlobIsReplaced) {
    const auto added = add("all of it", of("red"));
    put(blob(added.asset.hash).value(), "all");
    add("all of it", of("red"));
    EXPECT_EQ(content_of(blob(added.asset.hash).value()), "all of it");
}

TEST_F(StoreTest, SweepRemovesWhatExpiredAndNothingElse) {
    NewAsset short_lived = of("red");
    short_lived.expires_at = clock_.now() + std::chrono::hours(2);
    const auto gone = add("short", short_lived);
    const auto shared_short = add("shared", short_lived);
    const auto shared_long = add("shared", of("red"));
    NewAsset output = short_lived;
    output.job = JobId::make(clock_.now());
    const auto of_job = add("output", output);
    ASSERT_TRUE(wait_for(catalogue_.add(of_job.asset))) << "as the end of the job does";
    clock_.advance(std::chrono::hours(3));
    const auto swept = wait_for(store_.sweep());
    ASSERT_TRUE(swept) << swept.error().message;
    EXPECT_EQ(*swept, 2);
    EXPECT_TRUE(blob(gone.asset.hash)) << "somebody may be reading it";
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
    EXPECT_FALSE(blob(gone.asset.hash));
    EXPECT_TRUE(blob(shared_long.asset.hash));
    EXPECT_EQ(wait_for(store_.read(of_job.asset, 100)).value(), "output");
    EXPECT_FALSE(wait_for(catalogue_.find(shared_short.asset.id)).value());
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
}

TEST_F(StoreTest, SweepRemovesTheBytesOfRemovedAssets) {
    const auto added = add("bytes", of("red"));
    ASSERT_TRUE(wait_for(store_.sweep()));
    ASSERT_TRUE(wait_for(store_.remove("red", added.asset.id)));
    EXPECT_EQ(wait_for(store_.remove("red", added.asset.id)).error().code, Code::not_found);
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    EXPECT_TRUE(blob(added.asset.hash)) << "somebody may be reading it";
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
    EXPECT_FALSE(blob(added.asset.hash));
}

TEST_F(StoreTest, SmallOutputsAreKeptWithTheirRecord) {
    NewAsset asset = of("red", "a.txt");
    asset.job = JobId::make(clock_.now());
    const auto added = add("small", asset);
    EXPECT_EQ(added.asset.hash, blake3_name("small"));
    EXPECT_EQ(added.asset.content_type, "text/plain; charset=utf-8");
    EXPECT_TRUE(blobs().empty());
    EXPECT_TRUE(unfinished().empty());
    EXPECT_FALSE(wait_for(store_.has_hash("red", added.asset.hash)).value());

    ASSERT_TRUE(wait_for(catalogue_.add(added.asset)));
    const auto found = wait_for(store_.get("red", added.asset.id));
    ASSERT_TRUE(found);
    EXPECT_EQ(wait_for(store_.read(*found, 5)).value(), "small");
    EXPECT_EQ(wait_for(store_.read(*found, 4)).error().code, Code::payload_too_large);
    EXPECT_TRUE(wait_for(store_.has_hash("red", added.asset.hash)).value());
    EXPECT_FALSE(wait_for(store_.has_hash("blue", added.asset.hash)).value());
    const auto again = wait_for(store_.from_hash(added.asset.hash, of("red")));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(wait_for(store_.read(*again, 100)).value(), "small");
    EXPECT_FALSE(blob(added.asset.hash));

    const auto uploaded = add("small", of("red"));
    EXPECT_TRUE(blob(uploaded.asset.hash)) << "an upload is a file";
}

TEST_F(StoreTest, OutputsInMemoryAreBounded) {
    NewAsset asset = of("red");
    asset.job = JobId::make(clock_.now());
    const std::string bytes(StoreOptions().kept_bytes_max, 'x');
    std::vector<Store::Added> held{add(bytes, asset)};
    while (held.back().asset.bytes && held.size() < 10'000) {
        held.push_back(add(bytes, asset));
    }
    EXPECT_EQ(held.size(), 128U * 1024 * 1024 / bytes.size() + 1) << "the first that is a file";
    EXPECT_EQ(blobs().size(), 1U);
    held.clear();
    EXPECT_TRUE(add(bytes, asset).asset.bytes) << "there is room again";
}

TEST_F(StoreTest, WhatDoesNotFitInMemoryIsWrittenOnThePool) {
    boost::asio::io_context here;
    std::promise<void> go_on;
    Pool pool(1);
    Store store({folder_.path() / "other"}, catalogue_, clock_, pool);
    ASSERT_TRUE(store.open());
    auto writer = *store.write();
    auto busy = boost::asio::co_spawn(
        here,
        pool.run([waits = go_on.get_future().share()] {
            waits.wait();
            return true;
        }),
        boost::asio::use_future
    );
    const auto append = [&](std::size_t bytes) {
        return boost::asio::co_spawn(
            here, store.append(*writer, std::string(bytes, 'x')), boost::asio::use_future
        );
    };
    auto small = append(1000);
    here.poll();
    ASSERT_EQ(small.wait_for(Millis(0)), std::future_status::ready);
    EXPECT_TRUE(small.get());

    auto large = append(5 * 1024 * 1024);
    here.poll();
    EXPECT_EQ(large.wait_for(Millis(0)), std::future_status::timeout);
    go_on.set_value();
    here.run();
    EXPECT_TRUE(busy.get());
    EXPECT_TRUE(large.get());
    const auto added = wait_for(store.finish(std::move(writer), of("local")));
    ASSERT_TRUE(added);
    EXPECT_EQ(added->asset.size_bytes, 5U * 1024 * 1024 + 1000);
}

TEST_F(StoreTest, LargeOutputsAreFiles) {
    NewAsset asset = of("red");
    asset.job = JobId::make(clock_.now());
    const std::string large(StoreOptions().kept_bytes_max + 1, 'x');
    const auto added = add(large, asset);
    EXPECT_FALSE(added.asset.bytes);
    EXPECT_TRUE(blob(added.asset.hash));
    EXPECT_TRUE(add(large.substr(1), asset).asset.bytes);
}

TEST_F(StoreTest, OutputsOfJobsAreNotRemoved) {
    NewAsset asset = of("red");
    asset.job = JobId::make(clock_.now());
    const auto added = add("output", asset);
    EXPECT_EQ(wait_for(store_.get("red", added.asset.id)).error().code, Code::not_found)
        << "not before the job's end";
    ASSERT_TRUE(wait_for(catalogue_.add(added.asset)));
    EXPECT_EQ(wait_for(store_.remove("red", added.asset.id)).error().code, Code::asset_in_use);
    EXPECT_TRUE(wait_for(store_.get("red", added.asset.id)));
}

TEST_F(StoreTest, SweepRemovesWhatWentWithItsJob) {
    NewAsset asset = of("red");
    asset.job = JobId::make(clock_.now());
    const std::string large(StoreOptions().kept_bytes_max + 1, 'x');
    const auto gone = add(large, asset);
    const auto shared = add("y" + large, asset);
    const auto other = add("y" + large, of("blue"));
    for (const auto& added : {gone, shared}) {
        ASSERT_TRUE(wait_for(catalogue_.add(added.asset)));
    }
    clock_.advance(std::chrono::hours(2));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1) << "equal bytes that were stored twice";
    catalogue_.drop(gone.asset);
    catalogue_.drop(shared.asset);
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1) << "long before the next look at every file";
    EXPECT_FALSE(blob(gone.asset.hash));
    EXPECT_TRUE(blob(other.asset.hash));
}

TEST_F(StoreTest, ARecordByHashKeepsBytesWhoseRecordGoesInThatMoment) {
    NewAsset asset = of("red");
    asset.job = JobId::make(clock_.now());
    const auto output = add("small", asset);
    ASSERT_TRUE(wait_for(catalogue_.add(output.asset)));
    const auto again = wait_for(store_.from_hash(output.asset.hash, of("red")));
    ASSERT_TRUE(again);
    catalogue_.drop(output.asset);
    EXPECT_EQ(wait_for(store_.read(*again, 100)).value(), "small");
    EXPECT_TRUE(wait_for(store_.has_hash("red", again->hash)).value());
}

TEST_F(StoreTest, SweepRemovesBlobsThatACrashLeftWithoutARecord) {
    const auto added = add("kept", of("red"));
    catalogue_.is_broken = true;
    EXPECT_FALSE(wait_for(store_.add("lost", of("red"))));
    catalogue_.is_broken = false;
    clock_.advance(std::chrono::minutes(59));
    Store after_crash(StoreOptions{data(), 1'000'000}, catalogue_, clock_, pool_);
    ASSERT_TRUE(after_crash.open());
    EXPECT_EQ(wait_for(after_crash.sweep()).value(), 0);
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(after_crash.sweep()).value(), 0);
    EXPECT_TRUE(blob(blake3_name("lost"))) << "found, and given up";
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(after_crash.sweep()).value(), 1);
    EXPECT_FALSE(blob(blake3_name("lost")));
    EXPECT_TRUE(blob(added.asset.hash));
}

TEST_F(StoreTest, BytesThatComeAgainAfterTheyWereGivenUpGetAnotherKey) {
    const auto added = add("wanted", of("red"));
    ASSERT_TRUE(wait_for(store_.remove("red", added.asset.id)));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    const auto first = blob(added.asset.hash);
    const auto again = add("wanted", of("red"));
    EXPECT_EQ(blobs().size(), 2U);
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
    ASSERT_EQ(blobs().size(), 1U);
    EXPECT_NE(blobs().front(), first);
    EXPECT_EQ(wait_for(store_.read(again.asset, 100)).value(), "wanted");
}

TEST_F(StoreTest, BytesThatComeAgainBeforeTheSweepStay) {
    const auto added = add("wanted", of("red"));
    ASSERT_TRUE(wait_for(store_.remove("red", added.asset.id)));
    NewAsset output = of("red");
    output.job = JobId::make(clock_.now());
    const std::string large(StoreOptions().kept_bytes_max + 1, 'x');
    const auto first = add(large, of("red"));
    ASSERT_TRUE(wait_for(store_.remove("red", first.asset.id)));
    const auto held = add(large, output);
    EXPECT_EQ(held.asset.generation, 0U) << "nothing was written";
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    ASSERT_TRUE(wait_for(catalogue_.add(held.asset)));
    clock_.advance(std::chrono::hours(3));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1) << "the other one";
    EXPECT_EQ(wait_for(store_.read(held.asset, large.size())).value(), large);
}

TEST_F(StoreTest, ChecksumsAreKnownOrComputed) {
    const auto added = add("123456789", of("red"));
    EXPECT_EQ(added.asset.crc32, 0xCBF43926U);
    const std::string large(3'000'000 / 4, 'x');
    auto big = add(large, of("red")).asset;
    const auto known = big.crc32;
    big.crc32.reset();
    EXPECT_EQ(wait_for(store_.crc32(big)).value(), known);
    Asset small = added.asset;
    small.crc32.reset();
    EXPECT_EQ(wait_for(store_.crc32(small)).value(), 0xCBF43926U);
    EXPECT_EQ(wait_for(catalogue_.find(small.id)).value()->crc32, 0xCBF43926U);
}

TEST_F(StoreTest, ASweepThatFailedIsMadeUpFor) {
    const auto added = add("bytes", of("red"));
    ASSERT_TRUE(wait_for(store_.remove("red", added.asset.id)));
    clock_.advance(std::chrono::hours(2));
    catalogue_.is_broken = true;
    EXPECT_EQ(wait_for(store_.sweep()).error().code, Code::storage_unavailable);
    catalogue_.is_broken = false;
    EXPECT_EQ(wait_for(store_.sweep()).value(), 0);
    clock_.advance(std::chrono::hours(1));
    EXPECT_EQ(wait_for(store_.sweep()).value(), 1);
}

TEST_F(StoreTest, OpeningRemovesWhatWasUnfinished) {
    put(data() / "incoming" / "leftover", "half");
    Store again(StoreOptions{data(), 1'000'000}, catalogue_, clock_, pool_);
    ASSERT_TRUE(again.open());
    EXPECT_TRUE(unfinished().empty());
}

TEST_F(StoreTest, SaysWhichFolderIsUnusable) {
    const fs::path file = folder_.path() / "file";
    put(file, "");
    Store store(StoreOptions{file / "data", 1'000'000}, catalogue_, clock_, pool_);
    const auto opened = store.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::storage_unavailable);
    EXPECT_THAT(opened.error().message, HasSubstr(file.string()));

    fs::remove_all(data());
    const auto added = wait_for(store_.add("x", of("red")));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, Code::storage_unavailable);
    EXPECT_THAT(added.error().message, HasSubstr(data().string()));
}

TEST(StorageError, TellsAFullDiskFromABrokenOne) {
    EXPECT_EQ(storage_error("write", "/x", ENOSPC).code, Code::storage_full);
    EXPECT_EQ(storage_error("write", "/x", EDQUOT).code, Code::storage_full);
    EXPECT_EQ(storage_error("write", "/x", EIO).code, Code::storage_unavailable);
    EXPECT_THAT(storage_error("write", "/x/y", EIO).message, HasSubstr("'/x/y'"));
}

}  // namespace
}  // namespace comfyd::assets
