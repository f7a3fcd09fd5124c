// The port through which a request's credentials become a caller. Keys are known at once; for a
// token its issuer may have to be asked, therefore it is awaited.
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
    std::string tier{
    };  // as a token says it, where none was set for the tenant; empty: it does not
    std::string key_id{};            // what tells its key from others of the tenant; may be empty
    double requests_per_minute = 0;  // with this key; 0: as the tenant may
    std::string subject{};           // of a token

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
    double requests_per_minute = 0;  // 0: as its tenant may
};

// What the configuration holds of a key: the hex of its SHA-256.
std::string hash_key(std::string_view key);

class DirectoryBoard;
class Tokens;

struct AuthOptions {
    const DirectoryBoard& directory;
    Clock& clock;
    bool required = true;            // false: whatever is sent, nobody looks at it
    const Tokens* tokens = nullptr;  // nullptr: only keys are accepted
};

// All that the options name outlives it.
std::unique_ptr<Authenticator> make_authenticator(const AuthOptions& options);
// Over keys that never change; without any, nothing is required.
std::unique_ptr<Authenticator> make_key_authenticator(const std::vector<ApiKey>& keys);

}  // namespace comfyd::auth
