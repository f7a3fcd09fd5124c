// API keys from the configuration. Only their SHA-256 is kept. Immutable: any thread may ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace comfyd::auth {

// Who makes a request.
struct Caller {
    std::string tenant = "local";
    std::string key_name;      // empty without keys
    bool is_operator = false;  // may see what belongs to all tenants
};

struct ApiKey {
    std::string name;
    std::string tenant;
    std::string sha256;  // hex of the key
    bool is_operator = false;
};

class Keys {
public:
    explicit Keys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

    bool required() const { return !keys_.empty(); }
    // `authorization`: the header's value, "Bearer <key>". Without configured keys everybody is the
    // local caller, who is an operator. Code::unauthorized.
    Result<Caller> authenticate(std::string_view authorization) const;

private:
    std::vector<ApiKey> keys_;
};

// What the configuration holds of a key: the hex of its SHA-256.
std::string hash_key(std::string_view key);

}  // namespace comfyd::auth
