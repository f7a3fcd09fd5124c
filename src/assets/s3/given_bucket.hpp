// A bucket that a request brings, with keys of its own: where it may be, and how it is written down
// until it is used. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "assets/s3/requests.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/sealing.hpp"

namespace comfyd::assets::s3 {

struct GivenBucket {
    std::string bucket;
    std::string endpoint;  // empty: AWS's
    std::string access_key;
    std::string secret_key;

    // Without both keys those of the operator would be looked for. Code::invalid_argument, with
    // which member it is in `details.member`; Code::address_refused for what is not public, unless
    // that is allowed.
    Result<> check(bool allows_private) const;
    // To whom requests go and with which keys.
    BucketName name() const;
    CredentialSettings credentials() const;

    // {"bucket", "endpoint", "sealed"}: for `owner` alone it can be read again.
    json::object to_json(const Sealing& sealing, std::string_view owner) const;
    // Code::config_invalid: it was sealed with another secret, or for somebody else.
    static Result<GivenBucket> from_json(
        const json::object& from, const Sealing& sealing, std::string_view owner
    );
};

}  // namespace comfyd::assets::s3
