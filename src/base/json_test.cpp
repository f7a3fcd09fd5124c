#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <boost/json/monotonic_resource.hpp>

namespace comfyd::json {
namespace {

TEST(JsonParse, NumbersAreTheNearestDoubles) {
    for (const double number :
         {123456789.12345679, 0.1, 7.1, 1e-7, 3.141592653589793, 5e-324, 1.7976931348623157e308}) {
        char text[64];
        std::snprintf(text, sizeof text, "%.17g", number);
        const auto parsed = parse(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(parsed->to_number<double>(), number) << text;
    }
}

TEST(JsonParse, WholeNumbersKeepTheirKind) {
    EXPECT_EQ(parse("18446744073709551615")->as_uint64(), 18446744073709551615ULL);
    EXPECT_EQ(parse("-9223372036854775808")->as_int64(), std::numeric_limits<std::int64_t>::min());
    EXPECT_TRUE(parse("1.0")->is_double());
    EXPECT_TRUE(parse("1e2")->is_double());
    EXPECT_EQ(parse("18446744073709551616")->as_double(), 18446744073709551616.0);
}

TEST(JsonPut, WhatIsPutSomewhereIsNotCopied) {
    auto parsed = json::parse_object(
        R"({"text": "a text that is too long to stand in the value itself"})",
        boost::json::make_shared_resource<boost::json::monotonic_resource>()
    );
    ASSERT_TRUE(parsed);
    const char* const text = parsed->at("text").get_string().data();
    json::object into{{"old", 1}};
    json::put(into, std::move(*parsed));
    EXPECT_EQ(into.at("text").get_string().data(), text);
    EXPECT_EQ(into.size(), 1U);
}

TEST(JsonParse, AllOfTheTextIsRead) {
    const auto parsed = parse(R"({"a": [1, true, null, "x\u00e9\ud83d\ude00"], "b": {"c": -0.5}})");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(json::serialize(*parsed), "{\"a\":[1,true,null,\"xé😀\"],\"b\":{\"c\":-0.5}}");
}

TEST(JsonParse, WhatIsWrongIsToldWithItsPlace) {
    for (const char* text : {"", "{", "[1,]", "{\"a\":1} x", "nul", "\"\xff\"", "1.", "--1"}) {
        const auto parsed = parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, Code::malformed_json) << text;
    }
    const auto parsed = parse("{\n  \"a\": ,\n}");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().details.at("line"), 2);
    EXPECT_FALSE(parse(std::string(1000, '[')));
}

}  // namespace
}  // namespace comfyd::json
