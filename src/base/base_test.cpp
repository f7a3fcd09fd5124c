#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/crypto.hpp"
#include "base/error.hpp"
#include "base/id.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd {
namespace {

TEST(Error, EveryCodeHasItsRow) {
    for (int i = 0; i <= static_cast<int>(Code::internal); ++i) {
        const Code code = static_cast<Code>(i);
        EXPECT_EQ(info(code).code, code);
        EXPECT_EQ(parse_code(to_string(code)), code);
        EXPECT_GE(info(code).http_status, 400);
    }
    EXPECT_FALSE(parse_code("no_such_code"));
}

TEST(Uuid, VersionSevenIdsRiseStrictlyAlsoWithinOneMillisecond) {
    const Time now(Millis(1'700'000'000'000));
    Uuid last = Uuid::make(now);
    for (int i = 0; i < 20'000; ++i) {
        const Uuid next = Uuid::make(now);
        ASSERT_LT(last, next);
        last = next;
    }
    EXPECT_EQ(last.to_string()[14], '7');
}

TEST(Uuid, IdsOfSeveralThreadsAreUnique) {
    std::vector<std::vector<Uuid>> made(4);
    std::vector<std::thread> threads;
    for (auto& ids : made) {
        threads.emplace_back([&ids] {
            for (int i = 0; i < 5000; ++i) {
                ids.push_back(Uuid::make(SystemClock().now()));
            }
        });
    }
    std::set<Uuid> all;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        threads[i].join();
        all.insert(made[i].begin(), made[i].end());
    }
    EXPECT_EQ(all.size(), 20'000U);
}

TEST(Uuid, TextFormRoundTripsAndNothingElseParses) {
    const Uuid id = Uuid::make(SystemClock().now());
    EXPECT_EQ(Uuid::parse(id.to_string()), id);
    for (const char* bad :
         {"",
          "0",
          "0190b6a2-0000-7000-8000-00000000000",
          "0190b6a2+0000-7000-8000-000000000000",
          "0190b6a2-0000-7000-8000-00000000000g",
          "{190b6a2-0000-7000-8000-00000000000}"}) {
        EXPECT_FALSE(Uuid::parse(bad)) << bad;
    }
}

TEST(Uuid, DerivedIdsDependOnBothParts) {
    const Uuid a = Uuid::make(SystemClock().now());
    const Uuid b = Uuid::make(SystemClock().now());
    EXPECT_EQ(Uuid::derive(a, "1"), Uuid::derive(a, "1"));
    EXPECT_NE(Uuid::derive(a, "1"), Uuid::derive(a, "2"));
    EXPECT_NE(Uuid::derive(a, "1"), Uuid::derive(b, "1"));
}

TEST(Time, Rfc3339RoundTripsAndTakesOffsets) {
    const Time time = from_unix_ms(1'763'183'456'789);
    EXPECT_EQ(parse_rfc3339(to_rfc3339(time)), time);
    EXPECT_EQ(parse_rfc3339("2026-11-15T06:10:56+01:00"), parse_rfc3339("2026-11-15T05:10:56Z"));
    for (const char* bad :
         {"",
          "2026",
          "2026-13-01T00:00:00Z",
          "2026-02-30T00:00:00Z",
          "2026-11-15T25:00:00Z",
          "2026-11-15T05:10:56Zjunk",
          "2026-11-15T05:10:56+1"}) {
        EXPECT_FALSE(parse_rfc3339(bad)) << bad;
    }
}

TEST(Crypto, KnownAnswers) {
    EXPECT_EQ(
        to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    EXPECT_EQ(
        to_hex(hmac_sha256("key", "The quick brown fox jumps over the lazy dog")),
        "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
    );
    // After another key: an empty one is a key of its own.
    EXPECT_EQ(
        to_hex(hmac_sha256({}, {})),
        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
    );
}

TEST(Crypto, Base64RoundTripsEveryLength) {
    std::string data;
    for (int i = 0; i < 300; ++i) {
        EXPECT_EQ(from_base64(to_base64(data)), data);
        data += static_cast<char>(i * 7);
    }
    EXPECT_FALSE(from_base64("ab!d"));
    EXPECT_FALSE(from_base64("a"));
    EXPECT_EQ(from_base64("YQ"), "a");
}

TEST(Json, ErrorsSayWhere) {
    const auto broken = json::parse("{\n  \"a\": 1,\n  \"b\" 2\n}");
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, Code::malformed_json);
    EXPECT_NE(broken.error().message.find("line 3"), std::string::npos) << broken.error().message;
    EXPECT_FALSE(json::parse("{} x"));
    EXPECT_FALSE(json::parse(""));
    EXPECT_FALSE(json::parse("{\"a\": NaN}"));
    EXPECT_FALSE(json::parse(std::string(5000, '[')));
}

TEST(Json, TypedMembersNameTheField) {
    const auto object =
        json::parse_object(R"({"n": 5.0, "s": "x", "b": true, "none": null, "half": 0.5})");
    ASSERT_TRUE(object);
    EXPECT_EQ(**json::find_int(*object, "n"), 5);
    EXPECT_FALSE(json::find_int(*object, "half"));
    EXPECT_EQ(*json::find_string(*object, "none"), std::nullopt);
    const auto wrong = json::find_int(*object, "s");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("'s'"), std::string::npos);
}

TEST(Json, PythonSpellingMatchesJsonDumps) {
    const auto value =
        json::parse(R"({"a":[1,2.0,1e-7,1e20,"é\n\u0001😀"],"b":{},"c":true,"d":null})");
    ASSERT_TRUE(value);
    EXPECT_EQ(
        json::serialize_python(*value),
        "{\"a\": [1, 2.0, 1e-07, 1e+20, \"\\u00e9\\n\\u0001\\ud83d\\ude00\"], \"b\": {}, \"c\": "
        "true, \"d\": null}"
    );
}

TEST(Json, CanonicalTextIsTheSameForEqualDocuments) {
    EXPECT_EQ(
        json::serialize_canonical(*json::parse(R"({"b":1,"a":{"y":[1],"x":2}})")),
        json::serialize_canonical(*json::parse(R"({"a":{"x":2,"y":[1]},"b":1})"))
    );
}

}  // namespace
}  // namespace comfyd
