#include "auth/authenticator.hpp"

#include <utility>

#include "auth/credentials.hpp"
#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

// Has the directory that it looks into.
class FixedKeys final : public Authenticator {
public:
    explicit FixedKeys(const std::vector<ApiKey>& keys)
        : directory_(std::make_shared<const Directory>(
              keys, std::vector<Tenant>(), AllIdentities(), Directory()
          )),
          credentials_({directory_, clock_, !keys.empty()}) {}

    bool required() const override { return credentials_.required(); }
    Task<Result<Caller>> authenticate(std::string_view authorization) const override {
        return credentials_.authenticate(authorization);
    }

private:
    SystemClock clock_;
    DirectoryBoard directory_;
    Credentials credentials_;
};

}  // namespace

std::string hash_key(std::string_view key) {
    return to_hex(sha256(key));
}

std::unique_ptr<Authenticator> make_authenticator(const AuthOptions& options) {
    return std::make_unique<Credentials>(options);
}

std::unique_ptr<Authenticator> make_key_authenticator(const std::vector<ApiKey>& keys) {
    return std::make_unique<FixedKeys>(keys);
}

}  // namespace comfyd::auth
