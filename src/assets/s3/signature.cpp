#include "assets/s3/signature.hpp"

#include <algorithm>
#include <map>

#include "base/crypto.hpp"
#include "base/text.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

// By name in lower case, as they are signed.
using SignedHeaders = std::map<std::string, std::string>;

std::string_view bytes_of(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// "20130524T000000Z" of "2013-05-24T00:00:00.000Z".
std::string stamp_of(Time at) {
    std::string text = to_rfc3339(at).substr(0, std::string_view("2013-05-24T00:00:00").size());
    std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
    return text + "Z";
}

std::string date_of(const std::string& stamp) {
    return stamp.substr(0, 8);
}

std::string scope_of(const std::string& stamp, const Signer& signer) {
    return date_of(stamp) + "/" + signer.region + "/s3/aws4_request";
}

std::string names_of(const SignedHeaders& headers) {
    std::string names;
    for (const auto& [name, value] : headers) {
        names += names.empty() ? name : ";" + name;
    }
    return names;
}

std::string signature_of(
    const Target& target,
    const SignedHeaders& headers,
    std::string_view payload_hash,
    const std::string& stamp,
    const Signer& signer
) {
    std::string canonical = target.method + "\n" + target.path + "\n" + encode_query(target.query);
    canonical += '\n';
    for (const auto& [name, value] : headers) {
        canonical.append(name).append(":").append(value).append("\n");
    }
    canonical.append("\n").append(names_of(headers)).append("\n").append(payload_hash);

    const std::string text = std::string(kAlgorithm) + "\n" + stamp + "\n" +
                             scope_of(stamp, signer) + "\n" + to_hex(sha256(canonical));
    Digest key = hmac_sha256("AWS4" + signer.credentials.secret_key, date_of(stamp));
    for (const std::string_view part : {std::string_view(signer.region), std::string_view("s3")}) {
        key = hmac_sha256(bytes_of(key), part);
    }
    key = hmac_sha256(bytes_of(key), "aws4_request");
    return to_hex(hmac_sha256(bytes_of(key), text));
}

}  // namespace

std::string encode_path(std::string_view path) {
    return net::percent_encode(path, true);
}

std::string encode_query(const Query& query) {
    Query encoded;
    encoded.reserve(query.size());
    for (const auto& [name, value] : query) {
        encoded.emplace_back(net::percent_encode(name), net::percent_encode(value));
    }
    std::ranges::sort(encoded);
    std::string text;
    for (const auto& [name, value] : encoded) {
        text.append(text.empty() ? "" : "&").append(name).append("=").append(value);
    }
    return text;
}

void sign(
    const Target& target, std::string payload_hash, const Signer& signer, net::Headers& headers
) {
    const std::string stamp = stamp_of(signer.at);
    headers.set("x-amz-date", stamp);
    headers.set("x-amz-content-sha256", payload_hash);
    if (!signer.credentials.session_token.empty()) {
        headers.set("x-amz-security-token", signer.credentials.session_token);
    }
    SignedHeaders all{{"host", target.host}};
    for (const auto& [name, value] : headers.all()) {
        all[lower(name)] = trim(value);
    }
    const std::string signature = signature_of(target, all, payload_hash, stamp, signer);
    headers.set(
        "Authorization",
        std::string(kAlgorithm) + " Credential=" + signer.credentials.access_key + "/" +
            scope_of(stamp, signer) + ",SignedHeaders=" + names_of(all) + ",Signature=" + signature
    );
}

std::chrono::seconds link_life(std::chrono::seconds wanted, const Signer& signer) {
    const std::chrono::seconds granted = std::clamp(wanted, std::chrono::seconds(1), kLinkLifeMax);
    if (!signer.credentials.expires_at) {
        return granted;
    }
    const auto left =
        std::chrono::floor<std::chrono::seconds>(*signer.credentials.expires_at - signer.at);
    return std::clamp(left, std::chrono::seconds(1), granted);
}

std::string presign(const Target& target, std::chrono::seconds life, const Signer& signer) {
    const std::string stamp = stamp_of(signer.at);
    Target link = target;
    link.query.insert(
        link.query.end(),
        {
            {"X-Amz-Algorithm", std::string(kAlgorithm)},
            {"X-Amz-Credential", signer.credentials.access_key + "/" + scope_of(stamp, signer)},
            {"X-Amz-Date", stamp},
            {"X-Amz-Expires", std::to_string(link_life(life, signer).count())},
            {"X-Amz-SignedHeaders", "host"},
        }
    );
    if (!signer.credentials.session_token.empty()) {
        link.query.emplace_back("X-Amz-Security-Token", signer.credentials.session_token);
    }
    const std::string signature =
        signature_of(link, {{"host", link.host}}, kUnsignedPayload, stamp, signer);
    return encode_query(link.query) + "&X-Amz-Signature=" + signature;
}

}  // namespace comfyd::assets::s3
