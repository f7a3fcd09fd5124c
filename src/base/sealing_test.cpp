#include "base/sealing.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

TEST(Sealing, WhatWasSealedIsOpenedWithTheSameSecret) {
    const Sealing one("a secret");
    const Sealing again("a secret");
    for (const std::size_t length : {0U, 1U, 15U, 16U, 17U, 4096U, 1'000'003U}) {
        const std::string text(length, 'x');
        EXPECT_EQ(again.open(one.seal(text, "job 1"), "job 1"), text) << length;
    }
}

TEST(Sealing, NothingElseOpensIt) {
    const Sealing one("a secret");
    const std::string sealed = one.seal("key of a friend", "job 1");
    EXPECT_EQ(sealed.find("friend"), std::string::npos);
    EXPECT_FALSE(Sealing("another secret").open(sealed, "job 1"));
    EXPECT_FALSE(one.open(sealed, "job 2"));
    for (std::size_t i = 0; i < sealed.size(); ++i) {
        std::string damaged = sealed;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        EXPECT_FALSE(one.open(damaged, "job 1")) << i;
        EXPECT_FALSE(one.open(sealed.substr(0, i), "job 1")) << i;
    }
}

TEST(Sealing, NoTwoLookAlike) {
    const Sealing one("a secret");
    EXPECT_NE(one.seal("text", "label"), one.seal("text", "label"));
}

}  // namespace
}  // namespace comfyd
