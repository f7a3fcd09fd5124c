#include "assets/s3/signature.hpp"

#include <gtest/gtest.h>

#include "base/crypto.hpp"

namespace comfyd::assets::s3 {
namespace {

// The examples of the service's own documentation.
const Signer kSigner{
    {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    "us-east-1",
    *parse_rfc3339("2013-05-24T00:00:00.000Z")
};
constexpr std::string_view kHost = "examplebucket.s3.amazonaws.com";

std::string signature_of(const net::Headers& headers) {
    const std::string text(headers.get("Authorization"));
    const std::string mark = "Signature=";
    return text.substr(text.find(mark) + mark.size());
}

std::string hash_of(std::string_view body) {
    return to_hex(sha256(body));
}

TEST(S3Signature, OfARangeOfAnObject) {
    net::Headers headers;
    headers.set("Range", "bytes=0-9");
    sign({"GET", std::string(kHost), "/test.txt"}, hash_of(""), kSigner, headers);
    EXPECT_EQ(
        headers.get("Authorization"),
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    );
    EXPECT_EQ(headers.get("x-amz-date"), "20130524T000000Z");
}

TEST(S3Signature, OfAnUploadWithAStorageClass) {
    net::Headers headers;
    headers.set("Date", "Fri, 24 May 2013 00:00:00 GMT");
    headers.set("x-amz-storage-class", " REDUCED_REDUNDANCY ");
    sign(
        {"PUT", std::string(kHost), encode_path("/test$file.text")},
        hash_of("Welcome to Amazon S3."),
        kSigner,
        headers
    );
    EXPECT_EQ(
        signature_of(headers), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    );
}

TEST(S3Signature, OfQueries) {
    net::Headers flag;
    sign({"GET", std::string(kHost), "/", {{"lifecycle", ""}}}, hash_of(""), kSigner, flag);
    EXPECT_EQ(
        signature_of(flag), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    );
    net::Headers two;
    sign(
        {"GET", std::string(kHost), "/", {{"prefix", "J"}, {"max-keys", "2"}}},
        hash_of(""),
        kSigner,
        two
    );
    EXPECT_EQ(
        signature_of(two), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    );
}

TEST(S3Signature, OfALink) {
    const std::string query =
        presign({"GET", std::string(kHost), "/test.txt"}, std::chrono::seconds(86'400), kSigner);
    EXPECT_EQ(
        query,
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
        "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
        "X-Amz-SignedHeaders=host&X-Amz-Signature="
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
}

TEST(S3Signature, ALinkLivesNoLongerThanWhoSignedIt) {
    const auto life_of = [](std::chrono::seconds asked, std::optional<Time> end) {
        Signer signer = kSigner;
        signer.credentials.expires_at = end;
        const std::string query = presign({"GET", std::string(kHost), "/a"}, asked, signer);
        const std::string mark = "X-Amz-Expires=";
        return std::stoi(query.substr(query.find(mark) + mark.size()));
    };
    EXPECT_EQ(life_of(std::chrono::seconds(600), {}), 600);
    EXPECT_EQ(life_of(std::chrono::hours(24 * 30), {}), 604'800);
    EXPECT_EQ(life_of(std::chrono::seconds(0), {}), 1);
    EXPECT_EQ(life_of(std::chrono::seconds(600), kSigner.at + std::chrono::seconds(90)), 90);
    EXPECT_EQ(life_of(std::chrono::seconds(600), kSigner.at - std::chrono::seconds(90)), 1);
}

TEST(S3Signature, ASessionTokenIsPartOfIt) {
    Signer signer = kSigner;
    signer.credentials.session_token = "to/ken=";
    net::Headers headers;
    sign({"GET", std::string(kHost), "/a"}, std::string(kUnsignedPayload), signer, headers);
    EXPECT_EQ(headers.get("x-amz-security-token"), "to/ken=");
    EXPECT_NE(headers.get("Authorization").find("x-amz-security-token"), std::string_view::npos);
    const std::string link = presign({"GET", "h", "/a"}, std::chrono::seconds(9), signer);
    EXPECT_NE(link.find("X-Amz-Security-Token=to%2Fken%3D&"), std::string::npos);
}

TEST(S3Signature, EncodesOnceAndNormalisesNothing) {
    EXPECT_EQ(encode_path("/a b+c%/é'//./.."), "/a%20b%2Bc%25/%C3%A9%27//./..");
    EXPECT_EQ(encode_query({{"b", "x/y z"}, {"a", ""}, {"b", "+"}}), "a=&b=%2B&b=x%2Fy%20z");
}

}  // namespace
}  // namespace comfyd::assets::s3
