// Access tokens for Google's interfaces: had for a signed statement of a service account, or for
// the refresh token that a person gave us, and renewed before they end. Belongs to one executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"

namespace comfyd::assets::drive {

// Whose files they will be. A service account owns no storage: its files must go to a shared drive,
// or it speaks for somebody who has some (`subject`).
struct ServiceAccount {
    std::string email;
    std::string key_id;
    std::string private_key;
    std::string subject{};  // by domain-wide delegation
};
struct Person {
    std::string client_id;
    std::string client_secret;
    std::string refresh_token;
};
struct Identity {
    std::optional<ServiceAccount> account{};
    std::optional<Person> person{};
    std::string token_url = "https://oauth2.googleapis.com/token";
    std::string scope = "https://www.googleapis.com/auth/drive";
};

// A key file of a service account, or the one that `gcloud auth application-default login` writes.
// Code::config_invalid.
Result<Identity> read_identity(std::string_view file);

class Tokens {
public:
    // All outlive it. `client` is on the same executor.
    Tokens(Executor executor, Identity identity, net::Client& client, Clock& clock, Pool& pool);
    Tokens(const Tokens&) = delete;
    Tokens& operator=(const Tokens&) = delete;

    // Code::config_invalid with what to do, Code::storage_unavailable, Code::cancelled.
    Task<Result<std::string>> get();
    // The service does not take it any more.
    void refuse(const std::string& token);

private:
    Task<Result<>> renew();
    Task<Result<std::string>> make_form();
    Result<std::string> sign_statement() const;

    Executor executor_;
    Identity identity_;
    net::Client& client_;
    Clock& clock_;
    Pool& pool_;
    std::string token_;
    Time expires_at_{};
    bool is_renewing_ = false;
    Signal renewed_;
};

}  // namespace comfyd::assets::drive
