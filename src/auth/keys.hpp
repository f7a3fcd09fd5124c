// API keys from the configuration. Only their SHA-256 is kept. Immutable: any thread may ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/authenticator.hpp"

namespace comfyd::auth {

class Keys final : public Authenticator {
public:
    // A key has all scopes of its tenant; an operator's has all there are.
    explicit Keys(const std::vector<ApiKey>& keys);

    bool required() const override { return !known_.empty(); }
    // "Bearer <key>". Never waits.
    Task<Result<Caller>> authenticate(std::string_view authorization) const override;

private:
    Result<Caller> find(std::string_view authorization) const;

    struct Known {
        std::string sha256;  // hex
        Caller caller;
    };
    std::vector<Known> known_;
};

}  // namespace comfyd::auth
