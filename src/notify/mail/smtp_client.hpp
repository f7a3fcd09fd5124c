// Sends mails by one server, over few connections: one that is free takes the next mail, and when
// there is none it is closed. Belongs to one executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "net/line_stream.hpp"
#include "notify/mail/access_tokens.hpp"
#include "notify/mail/smtp_session.hpp"

namespace comfyd::notify::mail {

struct SmtpOptions {
    SmtpServer server{};
    std::string user{};                    // empty: no login
    std::string password{};                // with PLAIN or LOGIN
    std::optional<TokenOptions> tokens{};  // with XOAUTH2, instead of the password
    std::string ca_file{};                 // PEM, in addition to the system's
    std::size_t connections_max = 2;
};

class SmtpClient {
public:
    // `clock` outlives it.
    SmtpClient(Executor executor, Clock& clock, SmtpOptions options);

    Task<Verdict> send(Envelope mail);
    void close();

private:
    using Opened = tl::expected<std::unique_ptr<SmtpSession>, Verdict>;
    Task<Opened> open();
    Task<Verdict> send_by_any(Envelope mail);
    Task<> put_back(std::unique_ptr<SmtpSession> session);

    const SmtpOptions options_;
    net::LineClient lines_;
    std::optional<AccessTokens> tokens_;
    std::size_t busy_ = 0;
    std::size_t waiting_ = 0;
    Signal freed_;
    std::vector<std::unique_ptr<SmtpSession>> spare_;
};

}  // namespace comfyd::notify::mail
