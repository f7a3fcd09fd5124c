// AWS Signature Version 4: what proves to an S3 service that a request, or a link, is ours. Pure
// functions.
//
// What is signed must be what is sent, byte for byte: path and query are encoded here, once, and go
// on the wire as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "net/http.hpp"

namespace comfyd::assets::s3 {

struct Credentials {
    std::string access_key;
    std::string secret_key;
    std::string session_token{};       // empty: they are no temporary ones
    std::optional<Time> expires_at{};  // nullopt: never
};

// Names and values, not encoded; the value of a flag ("uploads") is empty.
using Query = std::vector<std::pair<std::string, std::string>>;

struct Target {
    std::string method = "GET";
    std::string host;  // as in the header Host: with the port, unless it is the scheme's own
    std::string path;  // encoded by encode_path()
    Query query{};
};

struct Signer {
    Credentials credentials;
    std::string region;
    Time at{};
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
inline constexpr std::chrono::seconds kLinkLifeMax{604'800};  // a week: services refuse more

// "/a b" -> "/a%20b". Nothing is normalised: "//" and ".." are names like others.
std::string encode_path(std::string_view path);
// In the order in which it is signed, and sent.
std::string encode_query(const Query& query);

// Adds to `headers` x-amz-date, x-amz-content-sha256, x-amz-security-token where there is one, and
// Authorization. All that are in it are signed, so what a proxy may change (User-Agent,
// Accept-Encoding) is not for it. `payload_hash`: hex of the SHA-256, or kUnsignedPayload.
void sign(
    const Target& target, std::string payload_hash, const Signer& signer, net::Headers& headers
);

// The query of a link that does this for whoever has it, for as long as link_life() grants.
std::string presign(const Target& target, std::chrono::seconds life, const Signer& signer);
// A link ends with the credentials that signed it, whatever it says, and services allow a week.
std::chrono::seconds link_life(std::chrono::seconds wanted, const Signer& signer);

}  // namespace comfyd::assets::s3
