#include "assets/s3/address.hpp"

#include <gtest/gtest.h>

namespace comfyd::assets::s3 {
namespace {

std::string shown(const BucketName& name) {
    const auto address = address_of(name);
    return address ? address->scheme + "://" + address->host + address->path_of("k")
                   : std::string(to_string(address.error().code));
}

TEST(S3Address, OfAws) {
    EXPECT_EQ(shown({.bucket = "box"}), "https://box.s3.us-east-1.amazonaws.com/k");
    EXPECT_EQ(
        shown({.bucket = "box", .region = "eu-west-1"}), "https://box.s3.eu-west-1.amazonaws.com/k"
    );
    EXPECT_EQ(shown({.bucket = "my.box"}), "https://s3.us-east-1.amazonaws.com/my.box/k");
    EXPECT_EQ(
        shown({.bucket = "box", .style = Style::path}), "https://s3.us-east-1.amazonaws.com/box/k"
    );
}

TEST(S3Address, OfOthers) {
    const std::string own = "http://127.0.0.1:9000";
    EXPECT_EQ(shown({.bucket = "box", .endpoint = own}), "http://127.0.0.1:9000/box/k");
    EXPECT_EQ(
        shown({.bucket = "box", .endpoint = "https://s3.test:443/", .style = Style::virtual_host}),
        "https://box.s3.test/k"
    );
}

TEST(S3Address, TheRegionMayStandInTheName) {
    const auto region = [](std::string endpoint) {
        return region_of({.bucket = "box", .endpoint = std::move(endpoint)});
    };
    EXPECT_EQ(region("https://s3.us-west-004.backblazeb2.com"), "us-west-004");
    EXPECT_EQ(region("https://s3.eu-central-1.amazonaws.com"), "eu-central-1");
    EXPECT_EQ(region("https://abc.r2.cloudflarestorage.com"), "auto");
    EXPECT_EQ(region("https://abc.eu.r2.cloudflarestorage.com"), "auto");
    EXPECT_EQ(region("https://storage.googleapis.com"), "auto");
    EXPECT_EQ(region("http://127.0.0.1:9000"), "us-east-1");
    EXPECT_EQ(region_of({.bucket = "box", .region = "x"}), "x");
}

TEST(S3Address, RefusesWhatIsNone) {
    EXPECT_EQ(shown({.bucket = ""}), "config_invalid");
    EXPECT_EQ(shown({.bucket = "a/b"}), "config_invalid");
    EXPECT_EQ(shown({.bucket = "box", .endpoint = "s3.example.com"}), "config_invalid");
    EXPECT_EQ(shown({.bucket = "box", .endpoint = "ftp://example.com"}), "config_invalid");
    EXPECT_EQ(shown({.bucket = "box", .endpoint = "https://example.com/path"}), "config_invalid");
}

TEST(S3Address, KnowsWhereDeletingOnlyHides) {
    EXPECT_TRUE(is_backblaze({.bucket = "b", .endpoint = "https://s3.us-west-004.backblazeb2.com"})
    );
    EXPECT_FALSE(is_backblaze({.bucket = "b"}));
}

}  // namespace
}  // namespace comfyd::assets::s3
