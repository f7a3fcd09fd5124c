#include "admission/keeping.hpp"

#include <gtest/gtest.h>

namespace comfyd::admission {
namespace {

using assets::RetentionClass;

KeepingRules rules() {
    KeepingRules made;
    made.stores["main"] = {"s3", "pictures"};
    made.stores["own"] = {"s3", "acme-bucket", {"acme"}};
    made.stores["nas"] = {"folder"};
    return made;
}

Result<jobs::Keeping> decide(
    const KeepingRules& by,
    const std::string& tenant,
    const char* storage,
    const char* retention = nullptr,
    const TenantRules* own = nullptr
) {
    static json::object parsed;
    KeepingWish wish;
    if (storage != nullptr) {
        parsed = *json::parse_object(storage);
        wish.storage = &parsed;
    }
    if (retention != nullptr) {
        wish.retention = retention;
    }
    return decide_keeping(by, tenant, TenantRulesPtr(TenantRulesPtr(), own), wish);
}

TEST(Keeping, NothingAskedAndNothingSetIsHereAsLongAsTheJob) {
    EXPECT_EQ(decide(rules(), "acme", nullptr), jobs::Keeping{});
    EXPECT_EQ(decide(rules(), "acme", R"({"provider": "local"})"), jobs::Keeping{});
    EXPECT_EQ(decide({}, "acme", R"({"provider": "s3", "bucket": "any"})"), jobs::Keeping{})
        << "the operator has no stores";
}

TEST(Keeping, AStoreIsFoundByItsNameItsProviderOrItsBucket) {
    for (const char* storage :
         {R"({"provider": "own"})",
          R"({"provider": "s3", "bucket": "acme-bucket"})",
          R"({"bucket": "acme-bucket"})"}) {
        EXPECT_EQ(decide(rules(), "acme", storage)->store, "own") << storage;
        EXPECT_EQ(decide(rules(), "other", storage).error().code, Code::invalid_argument)
            << storage;
    }
    EXPECT_EQ(decide(rules(), "other", R"({"provider": "s3"})")->store, "main");
    EXPECT_EQ(
        decide(rules(), "other", R"({"provider": "folder", "path": "/renders/may/"})")->store,
        "nas/renders/may"
    );
}

TEST(Keeping, OutputsMayComeInTheAnswerWhereverTheyAreKept) {
    KeepingRules by = rules();
    by.store = "main";
    for (const char* storage :
         {R"({"provider": "inline"})", R"({"provider": "base64", "path": ""})"}) {
        const auto kept = decide(by, "acme", storage);
        ASSERT_TRUE(kept) << kept.error().message;
        EXPECT_TRUE(kept->in_answers);
        EXPECT_EQ(kept->store, "main");
        EXPECT_EQ(jobs::Keeping::from_json(kept->to_json()), *kept);
        EXPECT_TRUE(decide({}, "acme", storage)->in_answers) << "without stores, too";
    }
    EXPECT_FALSE(decide(by, "acme", nullptr)->in_answers);
    EXPECT_FALSE(decide(by, "acme", R"({"provider": "inline", "bucket": "pictures"})"));
    EXPECT_FALSE(decide(by, "acme", R"({"provider": "inline", "path": "a"})"));
    by.allows_answers = false;
    EXPECT_EQ(decide(by, "acme", R"({"provider": "inline"})").error().code, Code::invalid_argument);
}

TEST(Keeping, OfAWishThatComesToNothingIsSaidSo) {
    const auto heard = [](const KeepingRules& by, const char* storage) {
        return is_heard(by, *json::parse_object(storage));
    };
    EXPECT_TRUE(heard(rules(), R"({"provider": "s3"})"));
    EXPECT_FALSE(heard({}, R"({"provider": "s3"})"));
    EXPECT_TRUE(heard({}, R"({"provider": "local"})"));
    EXPECT_TRUE(heard({}, R"({"provider": "inline"})"));
}

TEST(Keeping, PathsLeadNowhereElse) {
    for (const char* path : {"..", "a/../b", "a//b", ".", "a\\\\b", "a\\u0000b", "a\\nb"}) {
        const std::string storage = R"({"provider": "nas", "path": ")" + std::string(path) + "\"}";
        EXPECT_EQ(decide(rules(), "acme", storage.c_str()).error().code, Code::invalid_argument)
            << path;
    }
    const std::string storage = R"({"provider": "nas", "path": ")" + std::string(600, 'x') + "\"}";
    EXPECT_FALSE(decide(rules(), "acme", storage.c_str()));
    EXPECT_FALSE(decide(rules(), "acme", R"({"provider": 1})"));
    EXPECT_FALSE(decide(rules(), "acme", R"({"provider": "nas", "path": 1})"));
}

TEST(Keeping, TheTenantsOwnComesBeforeWhatHoldsForAll) {
    KeepingRules by = rules();
    by.store = "main";
    by.retention = RetentionClass::archive;
    TenantRules own;
    own.store = "own";
    own.retention = RetentionClass::immediate;
    EXPECT_EQ(decide(by, "acme", nullptr, nullptr, &own)->store, "own");
    EXPECT_EQ(decide(by, "acme", R"({"path": "a"})", nullptr, &own)->store, "own/a");
    EXPECT_EQ(decide(by, "acme", R"({"provider": "local"})", nullptr, &own)->store, "");
    EXPECT_EQ(decide(by, "acme", nullptr, nullptr, &own)->retention, "immediate");
    EXPECT_EQ(decide(by, "acme", nullptr, nullptr, &own)->life, Millis(std::chrono::hours(24)));
    EXPECT_EQ(decide(by, "other", nullptr)->store, "main");
    EXPECT_EQ(decide(by, "other", nullptr)->retention, "archive");
    EXPECT_EQ(decide(by, "other", nullptr)->moves_after, Millis(std::chrono::hours(24 * 30)));
    EXPECT_EQ(decide(by, "other", nullptr, "standard")->life, std::nullopt);
    EXPECT_EQ(decide(by, "other", nullptr, "forever").error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace comfyd::admission
