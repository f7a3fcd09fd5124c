// The port to where bytes are, as a folder implements it.
#include "assets/folder_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "assets/test_support.hpp"
#include "base/disk.hpp"

namespace comfyd::assets {
namespace {

using test::Folder;
using test::wait_for;

class FolderStoreTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(store_.open()); }

    static std::string key_of(const std::string& bytes, std::string_view folder = {}) {
        return make_blob_key(blake3_name(bytes), 7, folder);
    }
    static Source memory(const std::string& bytes) {
        return Source{std::make_shared<const std::string>(bytes), bytes.size(), blake3_name(bytes)};
    }
    Source file(const std::string& bytes) {
        const auto path = folder_.path() / "given";
        EXPECT_TRUE(write_file(path, bytes));
        return Source{path, bytes.size(), blake3_name(bytes)};
    }
    std::string read(const std::string& key) {
        return wait_for(store_.read(key, 0, 1'000'000)).value_or("none");
    }
    std::vector<std::string> listed() {
        std::vector<std::string> keys;
        std::string after;
        do {
            auto page = wait_for(store_.list(after));
            EXPECT_TRUE(page);
            for (const auto& blob : page->blobs) {
                EXPECT_EQ(blob.name, blob.key);
                keys.push_back(blob.key);
            }
            after = page->next;
        } while (!after.empty());
        return keys;
    }

    Folder folder_;
    ManualClock clock_;
    Pool pool_{2};
    FolderStore store_{folder_.path() / "store", true, clock_, pool_};
};

TEST_F(FolderStoreTest, WhatWasPutIsFoundAndReadByParts) {
    for (const std::string& bytes :
         {std::string(), std::string("abc"), std::string(100'000, 'x')}) {
        for (const char* where : {"", "renders", "a/b/c"}) {
            const std::string key = key_of(bytes, where);
            EXPECT_EQ(wait_for(store_.put(key, memory(bytes))).value(), key);
            EXPECT_EQ(wait_for(store_.put(key, file(bytes))).value(), key) << "again";
            EXPECT_EQ(read(key), bytes);
            const auto place = wait_for(store_.find(key, {})).value();
            ASSERT_TRUE(place);
            EXPECT_EQ(read_file(std::get<std::filesystem::path>(*place), 1'000'000), bytes);
        }
    }
    const std::string key = key_of("abc");
    EXPECT_EQ(wait_for(store_.read(key, 1, 1)).value(), "b");
    EXPECT_EQ(wait_for(store_.read(key, 1, 100)).value(), "bc");
    EXPECT_EQ(wait_for(store_.read(key, 3, 100)).value(), "");
}

TEST_F(FolderStoreTest, AFileMayBeMovedInstead) {
    Source source = file("moved");
    source.may_move = true;
    const auto path = std::get<std::filesystem::path>(source.bytes);
    ASSERT_TRUE(wait_for(store_.put(key_of("moved"), source)));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(read(key_of("moved")), "moved");
    ASSERT_TRUE(wait_for(store_.put(key_of("copied"), file("copied"))));
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(FolderStoreTest, WhatIsNotThereIsNot) {
    for (const std::string& key :
         {key_of("never"),
          std::string("../../etc/passwd"),
          std::string(),
          std::string("parts/x"),
          "../" + key_of("never")}) {
        EXPECT_FALSE(wait_for(store_.find(key, {})).value()) << key;
        EXPECT_EQ(wait_for(store_.read(key, 0, 10)).error().code, Code::not_found) << key;
        EXPECT_TRUE(wait_for(store_.remove(key))) << key;
    }
    EXPECT_FALSE(wait_for(store_.put("../../x", memory("x"))));
}

TEST_F(FolderStoreTest, RemovingMayBeRepeated) {
    const std::string key = key_of("abc");
    ASSERT_TRUE(wait_for(store_.put(key, memory("abc"))));
    EXPECT_TRUE(wait_for(store_.remove(key)));
    EXPECT_FALSE(wait_for(store_.find(key, {})).value());
    EXPECT_TRUE(wait_for(store_.remove(key)));
}

TEST_F(FolderStoreTest, ListsWhatIsOursByPages) {
    std::vector<std::string> keys;
    for (int i = 0; i < 50; ++i) {
        keys.push_back(key_of(std::to_string(i), i % 10 == 0 ? "renders" : ""));
        ASSERT_TRUE(wait_for(store_.put(keys.back(), memory(std::to_string(i)))));
    }
    keys.push_back(make_blob_key(blake3_name("old"), 0));
    ASSERT_TRUE(wait_for(store_.put(keys.back(), memory("old"))));
    ASSERT_TRUE(write_file(folder_.path() / "store" / "00" / "notes.txt", "not ours"));
    EXPECT_THAT(listed(), testing::UnorderedElementsAreArray(keys));
}

TEST_F(FolderStoreTest, LeftoversOfACrashAreRemovedOnceTheyAreOld) {
    ASSERT_TRUE(write_file(folder_.path() / "store" / "parts" / "half", "ha"));
    EXPECT_TRUE(wait_for(store_.remove_unfinished(Time(std::chrono::hours(24)))));
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "store" / "parts" / "half"));
    EXPECT_TRUE(wait_for(store_.remove_unfinished(Time::max())));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "store" / "parts" / "half"));
}

TEST_F(FolderStoreTest, AFolderThatIsNotMountedIsNotMadeAnew) {
    ASSERT_TRUE(wait_for(store_.put(key_of("abc"), memory("abc"))));
    std::filesystem::rename(folder_.path() / "store", folder_.path() / "away");
    for (const char* where : {"", "renders"}) {
        const auto put = wait_for(store_.put(key_of("x", where), memory("x")));
        ASSERT_FALSE(put);
        EXPECT_EQ(put.error().code, Code::storage_unavailable);
        Source source = file("x");
        source.may_move = true;
        EXPECT_FALSE(wait_for(store_.put(key_of("x", where), source)));
    }
    EXPECT_FALSE(wait_for(store_.remove(key_of("abc")))) << "it will be there again";
    EXPECT_FALSE(wait_for(store_.list("")));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "store"));
    std::filesystem::rename(folder_.path() / "away", folder_.path() / "store");
    EXPECT_EQ(read(key_of("abc")), "abc");
}

TEST_F(FolderStoreTest, AnothersFolderMayComeLater) {
    const auto path = folder_.path() / "mounted";
    FolderStore store(path, false, clock_, pool_);
    EXPECT_TRUE(store.open());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_FALSE(wait_for(store.put(key_of("x"), memory("x"))));
    std::filesystem::create_directory(path);
    EXPECT_TRUE(wait_for(store.put(key_of("x"), memory("x"))));
    EXPECT_TRUE(wait_for(store.put(key_of("x", "renders"), file("x"))));
    EXPECT_EQ(wait_for(store.read(key_of("x"), 0, 10)).value(), "x");
}

}  // namespace
}  // namespace comfyd::assets
