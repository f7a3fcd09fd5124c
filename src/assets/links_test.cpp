#include "assets/links.hpp"

#include <gtest/gtest.h>

#include "net/http.hpp"

namespace comfyd::assets {
namespace {

const Time kNow(Millis(1'700'000'000'250));

struct Parts {
    std::string path;
    std::string expires;
    std::string signature;
};

Parts parts_of(const LinkSigner::Link& link) {
    const auto mark = link.target.find('?');
    Parts parts{.path = link.target.substr(0, mark), .expires = {}, .signature = {}};
    for (const auto& [name, value] : net::parse_query(link.target.substr(mark + 1))) {
        (name == "expires" ? parts.expires : parts.signature) = value;
    }
    return parts;
}

TEST(LinkSigner, ItsLinksWorkUntilTheyExpire) {
    const LinkSigner signer("key", std::chrono::minutes(5));
    const AssetId id = AssetId::make(kNow);
    const auto link = signer.sign(id, kNow);
    const Parts parts = parts_of(link);
    EXPECT_EQ(parts.path, "/api/v2/assets/" + id.to_string() + "/content");
    EXPECT_EQ(parts.expires, "1700000301");
    EXPECT_EQ(link.expires_at, Time(std::chrono::seconds(1'700'000'301)));
    EXPECT_TRUE(signer.verify(id, parts.expires, parts.signature, kNow));
    EXPECT_TRUE(signer.verify(id, parts.expires, parts.signature, link.expires_at - Millis(1)));
    EXPECT_FALSE(signer.verify(id, parts.expires, parts.signature, link.expires_at));
}

TEST(LinkSigner, RefusesWhatItDidNotSign) {
    const LinkSigner signer("key");
    const AssetId id = AssetId::make(kNow);
    const Parts parts = parts_of(signer.sign(id, kNow));
    EXPECT_FALSE(signer.verify(AssetId::make(kNow), parts.expires, parts.signature, kNow));
    EXPECT_FALSE(signer.verify(id, "9999999999", parts.signature, kNow));
    EXPECT_FALSE(signer.verify(id, "0" + parts.expires, parts.signature, kNow));
    EXPECT_FALSE(signer.verify(id, parts.expires, "", kNow));
    EXPECT_FALSE(signer.verify(id, parts.expires, parts.signature.substr(1), kNow));
    EXPECT_FALSE(LinkSigner("other").verify(id, parts.expires, parts.signature, kNow));
}

TEST(LinkSigner, RefusesExpiriesThatAreNoNumbers) {
    const LinkSigner signer("key");
    const AssetId id = AssetId::make(kNow);
    const Parts parts = parts_of(signer.sign(id, kNow));
    for (const char* expires :
         {"", "-1", "+1", "soon", "1e9", " 1700000301", "99999999999999999999999"}) {
        EXPECT_FALSE(signer.verify(id, expires, parts.signature, kNow)) << expires;
    }
}

}  // namespace
}  // namespace comfyd::assets
