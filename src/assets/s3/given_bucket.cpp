#include "assets/s3/given_bucket.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "net/http.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::size_t kEndpointBytesMax = 1024;
constexpr std::size_t kKeyBytesMax = 1024;

tl::unexpected<Error> wrong(
    std::string_view member, std::string message, Code code = Code::invalid_argument
) {
    return fail(
        code,
        std::move(message),
        {{"member", boost::json::string_view(member.data(), member.size())}}
    );
}

bool is_key(std::string_view text) {
    return !text.empty() && text.size() <= kKeyBytesMax &&
           std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7F; });
}

// For one tenant, and for this.
std::string label_of(std::string_view owner) {
    return "bucket of a request/" + std::string(owner);
}

std::string text_in(const json::object& from, std::string_view key) {
    auto found = json::find_string(from, key);
    return found ? std::move(*found).value_or("") : std::string();
}

}  // namespace

Result<> GivenBucket::check(bool allows_private) const {
    if (!is_key(access_key)) {
        return wrong("access_key", "must be a text without spaces");
    }
    if (!is_key(secret_key)) {
        return wrong("secret_key", "must be a text without spaces");
    }
    if (endpoint.size() > kEndpointBytesMax) {
        return wrong("endpoint", "is too long");
    }
    if (!address_of({.bucket = bucket})) {
        return wrong("bucket", "must have 3 to 63 letters, digits, dots, dashes and underscores");
    }
    const auto address = address_of(name());
    if (!address) {
        return wrong("endpoint", "must be of the form https://host");
    }
    if (address->scheme != "https" && !allows_private) {
        return wrong("endpoint", "must begin with https://");
    }
    const auto url = net::Url::parse(address->scheme + "://" + address->host);
    if (!url || (!allows_private && net::is_private_host(url->host))) {
        return wrong(
            "endpoint",
            "points to a private address, which this server does not call",
            Code::address_refused
        );
    }
    return {};
}

// Some name the bucket in the address as well.
BucketName GivenBucket::name() const {
    BucketName name{.bucket = bucket, .endpoint = endpoint};
    const auto url = net::Url::parse(endpoint);
    if (url && !bucket.empty() && url->host.starts_with(bucket + ".s3")) {
        const auto at = endpoint.find(bucket + ".");
        name.endpoint.erase(at, bucket.size() + 1);
    }
    if (name.endpoint.ends_with('/')) {
        name.endpoint.pop_back();
    }
    return name;
}

// This server's own keys are nowhere to be found from here.
CredentialSettings GivenBucket::credentials() const {
    return {.given = {access_key, secret_key, ""}, .environment = [](const std::string& name) {
                return name == "AWS_EC2_METADATA_DISABLED" ? std::optional<std::string>("true")
                                                           : std::nullopt;
            }};
}

json::object GivenBucket::to_json(const Sealing& sealing, std::string_view owner) const {
    const json::object keys{{"access_key", access_key}, {"secret_key", secret_key}};
    return {
        {"bucket", bucket},
        {"endpoint", endpoint},
        {"sealed", to_base64(sealing.seal(json::serialize(keys), label_of(owner)))},
    };
}

Result<GivenBucket> GivenBucket::from_json(
    const json::object& from, const Sealing& sealing, std::string_view owner
) {
    const auto sealed = from_base64(text_in(from, "sealed"));
    const auto text = sealed ? sealing.open(*sealed, label_of(owner)) : std::nullopt;
    const auto keys = text ? json::parse_object(*text)
                           : fail(
                                 Code::config_invalid,
                                 "the keys of the bucket cannot be read any more: this server has "
                                 "another secret than the one that took them"
                             );
    if (!keys) {
        return fail(keys.error());
    }
    return GivenBucket{
        text_in(from, "bucket"),
        text_in(from, "endpoint"),
        text_in(*keys, "access_key"),
        text_in(*keys, "secret_key")
    };
}

}  // namespace comfyd::assets::s3
