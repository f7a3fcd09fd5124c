#include "assets/blob_key.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "assets/blake3.hpp"

namespace comfyd::assets {
namespace {

const std::string kHash = blake3_name("content");

TEST(BlobKey, NamesFolderContentAndGeneration) {
    const std::string digits = kHash.substr(7);
    const std::string plain = digits.substr(0, 2) + "/" + digits.substr(2);
    EXPECT_EQ(make_blob_key(kHash, 0), plain);
    EXPECT_EQ(make_blob_key(kHash, 0x1234), plain + ".0000000000001234");
    EXPECT_EQ(make_blob_key(kHash, 1, "renders/may"), "renders/may/" + plain + ".0000000000000001");
}

TEST(BlobKey, IsReadBack) {
    for (const std::uint64_t generation :
         std::vector<std::uint64_t>{0, 1, 0xFFFF'FFFF'FFFF, make_generation(Time())}) {
        for (const char* folder : {"", "a", "a/b.c"}) {
            const auto name = parse_blob_key(make_blob_key(kHash, generation, folder));
            ASSERT_TRUE(name) << generation << folder;
            EXPECT_EQ(name->hash, kHash);
            EXPECT_EQ(name->generation, generation);
            EXPECT_EQ(name->folder, folder);
        }
    }
}

TEST(BlobKey, WhatSomebodyElseNamedIsNone) {
    const std::string key = make_blob_key(kHash, 7);
    const std::string plain = make_blob_key(kHash, 0);
    for (const std::string& other :
         {std::string(),
          std::string("picture.png"),
          key + "0",
          key.substr(1),
          "x" + key,
          plain + ".",
          plain + ".7",
          plain + ".0000000000000000",
          plain + ".000000000000000G",
          plain + ".00000000000000AB",
          plain.substr(0, 2) + plain.substr(3)}) {
        EXPECT_FALSE(parse_blob_key(other)) << other;
    }
}

TEST(BlobKey, GenerationsDifferAndGrow) {
    std::set<std::uint64_t> made;
    for (int ms = 1; ms <= 1000; ++ms) {
        const auto next = make_generation(Time(Millis(ms)));
        EXPECT_TRUE(made.empty() || next > *made.rbegin());
        made.insert(next);
    }
    EXPECT_EQ(made.size(), 1000U);
}

}  // namespace
}  // namespace comfyd::assets
