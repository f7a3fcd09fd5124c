#include "assets/retention_class.hpp"

#include <gtest/gtest.h>

namespace comfyd::assets {
namespace {

constexpr Millis kDay = std::chrono::hours(24);

TEST(RetentionClass, IsReadAndWritten) {
    for (const char* name : {"immediate", "standard", "archive", "glacier"}) {
        const auto parsed = parse_retention_class(name);
        ASSERT_TRUE(parsed) << name;
        EXPECT_EQ(to_string(*parsed), name);
    }
    EXPECT_FALSE(parse_retention_class("forever"));
    EXPECT_FALSE(parse_retention_class(""));
}

TEST(RetentionClass, LongerOnesMoveWhereShorterOnesEnd) {
    const RetentionRules rules;
    struct Case {
        RetentionClass retention;
        int days;
        StorageClass now;
        std::optional<int> next;
    };
    for (const Case& one : {
             Case{RetentionClass::immediate, 0, StorageClass::standard, std::nullopt},
             Case{RetentionClass::standard, 29, StorageClass::standard, std::nullopt},
             Case{RetentionClass::archive, 0, StorageClass::standard, 30},
             Case{RetentionClass::archive, 30, StorageClass::archive, std::nullopt},
             Case{RetentionClass::glacier, 29, StorageClass::standard, 30},
             Case{RetentionClass::glacier, 30, StorageClass::archive, 365},
             Case{RetentionClass::glacier, 400, StorageClass::glacier, std::nullopt},
         }) {
        const Millis age = one.days * kDay;
        EXPECT_EQ(rules.storage_class(one.retention, age), one.now) << one.days;
        const auto next = rules.next_move(one.retention, age);
        EXPECT_EQ(next, one.next ? std::optional(Millis(*one.next * kDay)) : std::nullopt);
    }
}

}  // namespace
}  // namespace comfyd::assets
