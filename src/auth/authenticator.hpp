// The port through which a request's credentials become a caller. Keys of the configuration are
// known at once; a token may have to be asked about elsewhere, therefore it is awaited.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/scopes.hpp"
#include "base/task.hpp"

namespace comfyd::auth {

// Who makes a request.
struct Caller {
    std::string tenant = "local";
    std::string key_name;  // empty without keys
    Scopes scopes;

    bool may(Scope scope) const { return scopes.contain(scope); }
};

// Awaited on any executor.
class Authenticator {
public:
    virtual ~Authenticator() = default;
    // False: everybody is the local caller, who may do everything.
    virtual bool required() const = 0;
    // `authorization`: the value of the header, which lives until the answer; empty: none was sent.
    // Code::unauthorized.
    virtual Task<Result<Caller>> authenticate(std::string_view authorization) const = 0;
};

struct ApiKey {
    std::string name;
    std::string tenant;
    std::string sha256;  // hex of the key
    bool is_operator = false;
};

// What the configuration holds of a key: the hex of its SHA-256.
std::string hash_key(std::string_view key);

struct AuthOptions {
    std::vector<ApiKey> keys;  // empty: nothing is required
};

std::unique_ptr<Authenticator> make_authenticator(AuthOptions options);

}  // namespace comfyd::auth
