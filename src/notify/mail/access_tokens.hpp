// Access tokens for XOAUTH2, got by a refresh token (RFC 6749, section 6) and used until shortly
// before they end. Belongs to one executor.
#pragma once

#include <string>

#include "base/task.hpp"
#include "base/time.hpp"
#include "net/client.hpp"

namespace comfyd::notify::mail {

struct TokenOptions {
    std::string url;  // of the token endpoint
    std::string client_id;
    std::string client_secret;  // empty: the client is public
    std::string refresh_token;
    std::string scope;  // empty: as the refresh token has it
    std::string ca_file{};
};

class AccessTokens {
public:
    // `clock` outlives it.
    AccessTokens(Executor executor, Clock& clock, TokenOptions options);

    // Code::unauthorized when the refresh token or the client is refused, else what may pass.
    Task<Result<std::string>> get();
    // The server does not want this one: the next is a new one.
    void forget();
    bool has_one() const;
    void close() { client_.close_idle(); }

private:
    Result<std::string> keep(const net::ClientResponse& answer);

    Clock& clock_;
    const TokenOptions options_;
    net::Client client_;
    std::string token_;
    Time usable_until_{};
};

}  // namespace comfyd::notify::mail
