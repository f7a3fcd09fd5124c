#include "assets/s3/given_bucket.hpp"

#include <gtest/gtest.h>

namespace comfyd::assets::s3 {
namespace {

GivenBucket given(std::string endpoint = "https://s3.example.com") {
    return {"pictures", std::move(endpoint), "access-key", "secret-key/+="};
}

std::string wrong_member(const GivenBucket& bucket, bool allows_private = false) {
    const auto checked = bucket.check(allows_private);
    if (checked) {
        return "";
    }
    return std::string(json::find(checked.error().details, "member")->as_string());
}

TEST(S3GivenBucket, PublicAddressesByTlsAlone) {
    for (const char* good :
         {"https://s3.example.com",
          "https://s3.example.com/",
          "https://s3.example.com:9000",
          "https://account.r2.cloudflarestorage.com",
          "https://93.184.216.34",
          ""}) {
        EXPECT_EQ(wrong_member(given(good)), "") << good;
    }
    for (const char* bad :
         {"http://s3.example.com",
          "https://10.1.2.3",
          "https://169.254.169.254/",
          "https://[::1]:443",
          "https://[fd00::1]",
          "https://localhost",
          "https://a.localhost",
          "https://0x7f000001",
          "ftp://s3.example.com",
          "s3.example.com",
          "https://s3.example.com/bucket",
          "https://s3.example.com?a",
          "https://a@s3.example.com"}) {
        EXPECT_EQ(wrong_member(given(bad)), "endpoint") << bad;
    }
    EXPECT_EQ(given("https://10.1.2.3").check(false).error().code, Code::address_refused);
    EXPECT_EQ(wrong_member(given("http://10.1.2.3:9000"), true), "");
}

TEST(S3GivenBucket, NeedsBothKeysOfItsOwn) {
    GivenBucket bucket = given();
    bucket.access_key.clear();
    EXPECT_EQ(wrong_member(bucket), "access_key");
    bucket = given();
    bucket.secret_key = "with space";
    EXPECT_EQ(wrong_member(bucket), "secret_key");
    bucket.secret_key = std::string(2'000, 'x');
    EXPECT_EQ(wrong_member(bucket), "secret_key");
    bucket = given();
    for (const char* name : {"", "ab", "a/b", "..//", "a b c", "x?y=z"}) {
        bucket.bucket = name;
        EXPECT_EQ(wrong_member(bucket), "bucket") << name;
    }
    const auto settings = given().credentials();
    EXPECT_EQ(settings.given.access_key, "access-key");
    EXPECT_FALSE(settings.environment("AWS_ACCESS_KEY_ID"));
    EXPECT_FALSE(settings.environment("HOME"));
}

TEST(S3GivenBucket, TheBucketMayStandInTheAddressAsWell) {
    EXPECT_EQ(
        given("https://pictures.s3.eu-west-1.amazonaws.com").name().endpoint,
        "https://s3.eu-west-1.amazonaws.com"
    );
    EXPECT_EQ(
        given("https://pictures.example.com").name().endpoint, "https://pictures.example.com"
    );
    EXPECT_EQ(given("https://s3.example.com/").name().endpoint, "https://s3.example.com");
}

TEST(S3GivenBucket, IsKeptSealedForItsOwner) {
    const Sealing sealing("a secret");
    const json::object kept = given().to_json(sealing, "red");
    const std::string text = json::serialize(kept);
    EXPECT_EQ(text.find("access-key"), std::string::npos) << text;
    EXPECT_EQ(text.find("secret-key"), std::string::npos);
    EXPECT_NE(text.find("pictures"), std::string::npos);
    const auto read = GivenBucket::from_json(kept, sealing, "red");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->secret_key, "secret-key/+=");
    EXPECT_EQ(read->endpoint, "https://s3.example.com");
    EXPECT_FALSE(GivenBucket::from_json(kept, sealing, "blue"));
    EXPECT_FALSE(GivenBucket::from_json(kept, Sealing("another"), "red"));
    EXPECT_FALSE(GivenBucket::from_json({{"sealed", 7}}, sealing, "red"));
}

}  // namespace
}  // namespace comfyd::assets::s3
