#include "limits/address_guard.hpp"

#include <gtest/gtest.h>

#include "auth/api_key.hpp"

namespace comfyd::limits {
namespace {

const std::string kHome = "198.51.100.7";

class Guard : public testing::Test {
protected:
    static AddressRules rules(double per_minute) {
        return {*net::AddressRanges::parse({"203.0.113.0/24", "2001:db8:bad::/48"}), per_minute};
    }
    bool passes(const std::string& address, std::string_view credential) {
        return guard_.check(address, credential).has_value();
    }
    std::int64_t wait_of(const std::string& address, std::string_view credential) {
        const auto checked = guard_.check(address, credential);
        return checked ? 0 : checked.error().details.at("retry_after").as_int64();
    }
    // Tries until it has to wait, so many times; the waits.
    std::vector<std::int64_t> waits(const std::string& address, const std::string& key, int count) {
        std::vector<std::int64_t> all;
        for (int i = 0; i < count; ++i) {
            EXPECT_TRUE(passes(address, key));
            guard_.turn_away(address, key);
            all.push_back(wait_of(address, key));
            clock_.advance(Millis(all.back() * 1000));
        }
        return all;
    }

    ManualClock clock_;
    AddressGuard guard_{rules(0), clock_};
};

TEST_F(Guard, BlocksWhomItIsToldTo) {
    EXPECT_TRUE(guard_.blocks("203.0.113.200"));
    EXPECT_TRUE(guard_.blocks("::ffff:203.0.113.200"));
    EXPECT_TRUE(guard_.blocks("2001:db8:bad:1::2"));
    EXPECT_FALSE(guard_.blocks(kHome));
    EXPECT_FALSE(guard_.blocks("no address"));
    EXPECT_EQ(guard_.counts().blocked, 3u);
}

TEST_F(Guard, WrongKeysCostEverLongerWaits) {
    const std::vector<std::int64_t> expected{
        0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900
    };
    EXPECT_EQ(waits(kHome, "Bearer wrong", 17), expected);
    // For a while nothing came.
    clock_.advance(Millis(2 * AddressGuard::kWaitMaxMs));
    EXPECT_EQ(waits(kHome, "Bearer wrong", 6), (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1}));
}

TEST_F(Guard, SpacesHideNoGuess) {
    for (const char* spelling :
         {"Bearer wrong",
          "Bearer wrong ",
          "bearer\twrong\t",
          "  Bearer   wrong",
          "wrong",
          "Bearer x",
          "Basic y "}) {
        guard_.turn_away(kHome, spelling);
    }
    EXPECT_FALSE(passes(kHome, "Bearer wrong"));
    EXPECT_FALSE(passes(kHome, "Bearer another "));
}

TEST_F(Guard, ASuccessClearsThem) {
    const std::string key = "Bearer " + auth::make_key("abcdEFGH");
    waits(kHome, key, 8);
    guard_.welcome(kHome, key);
    guard_.turn_away(kHome, "Bearer " + auth::make_key("abcdEFGH"));
    EXPECT_TRUE(passes(kHome, "Bearer " + auth::make_key("abcdEFGH")));
}

TEST_F(Guard, AStrangerLocksNobodyOut) {
    const std::string good = "Bearer " + auth::make_key("abcdEFGH");
    const std::string wrong = "Bearer " + auth::make_key("abcdEFGH");
    const std::string other = "Bearer " + auth::make_key("another1");
    waits(kHome, wrong, 12);
    guard_.turn_away(kHome, wrong);
    ASSERT_FALSE(passes(kHome, wrong));
    // The tenant, from anywhere else; and other keys from there.
    EXPECT_TRUE(passes("198.51.100.8", good));
    EXPECT_TRUE(passes(kHome, other));
    EXPECT_TRUE(passes(kHome, "Bearer plain")) << "of the configuration";
    // Who was good there before, also while the same id is tried by another behind the same NAT.
    guard_.welcome(kHome, good);
    for (int i = 0; i < 12; ++i) {
        guard_.turn_away(kHome, wrong);
    }
    EXPECT_FALSE(passes(kHome, wrong));
    EXPECT_TRUE(passes(kHome, good));
}

TEST_F(Guard, TokensThatRanOutAndThisMachineCostNothing) {
    for (int i = 0; i < 50; ++i) {
        guard_.turn_away(kHome, "Bearer eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyX2lkIjoiYSJ9.c2ln");
        guard_.turn_away("127.0.0.1", "Bearer wrong");
        guard_.turn_away("::1", "Bearer wrong");
        guard_.turn_away("::ffff:127.0.0.1", "Bearer wrong");
    }
    EXPECT_TRUE(passes(kHome, "Bearer eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyX2lkIjoiYSJ9.c2ln"));
    EXPECT_TRUE(passes("127.0.0.1", "Bearer wrong"));
    EXPECT_TRUE(passes("::1", "Bearer wrong"));
}

TEST_F(Guard, StrangersHaveARate) {
    AddressGuard guard(rules(60), clock_);
    const auto come = [&](const std::string& from, std::string_view credential = {}) {
        const bool is_let_in = guard.check(from, credential).has_value();
        if (is_let_in) {
            guard.turn_away(from, credential);
        }
        return is_let_in;
    };
    int passed = 0;
    for (int i = 0; i < 100; ++i) {
        passed += come(kHome) ? 1 : 0;
    }
    EXPECT_EQ(passed, 60);
    EXPECT_TRUE(come("198.51.100.8"));
    guard.welcome(kHome, "Bearer good");
    EXPECT_TRUE(guard.check(kHome, "Bearer good")) << "known there";
    EXPECT_FALSE(guard.check(kHome, "Bearer new"));
    // A /64 is one of them, a /48 four.
    passed = 0;
    for (int i = 0; i < 400; ++i) {
        passed += come("2001:db8:1:" + std::to_string(i % 8) + "::" + std::to_string(i)) ? 1 : 0;
    }
    EXPECT_EQ(passed, 240);
    EXPECT_TRUE(come("2001:db8:2::1"));
}

TEST_F(Guard, RemembersABoundedNumber) {
    const auto before = guard_.remembered();
    for (std::size_t i = 0; i < 2 * AddressGuard::kRememberedMax; ++i) {
        const std::string from = "10." + std::to_string(i >> 16) + "." +
                                 std::to_string((i >> 8) & 255) + "." + std::to_string(i & 255);
        guard_.turn_away(from, "Bearer wrong");
        guard_.welcome(from, "Bearer good");
    }
    EXPECT_EQ(before, 0u);
    EXPECT_LE(guard_.remembered(), 3 * AddressGuard::kRememberedMax);
}

}  // namespace
}  // namespace comfyd::limits
