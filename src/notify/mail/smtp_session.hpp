// One connection to a mail server, after greeting, TLS and login: it takes one mail after another.
// Belongs to one executor; one mail at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/task.hpp"
#include "net/line_stream.hpp"
#include "notify/mail/smtp_reply.hpp"

namespace comfyd::notify::mail {

enum class Security {
    tls,       // from the first byte, port 465
    starttls,  // before anything else is said, port 587; a server that does not offer it gets
               // nothing
    none,
};

struct SmtpServer {
    std::string host;
    std::uint16_t port = 587;
    Security security = Security::starttls;
    std::string hello_name = "localhost";  // how we introduce ourselves
    Millis command_timeout{60'000};
    Millis end_timeout{600'000};  // after the last dot: the server may look at the mail for long
};

// How we log in.
struct Login {
    enum class Kind {
        none,
        password,  // PLAIN, or LOGIN where the server has no other
        token,     // XOAUTH2
    };
    Kind kind = Kind::none;
    std::string user{};
    std::string secret{};
};

struct Envelope {
    std::string from;
    std::string to;
    std::string data;  // of lines that end in CR LF
};

// What came of a mail, or of the attempt to be let in.
struct Verdict {
    enum class Kind {
        accepted,
        later,         // it may fare better some time
        refused,       // this mail to this recipient: never
        too_big,       // a smaller one may be taken
        not_admitted,  // the server wants no mail of us at all until somebody changes something
        cancelled,
    };
    Kind kind = Kind::later;
    std::string reason{};
    bool is_of_recipient = false;  // of this one alone
};

class SmtpSession {
public:
    // `client` and `server` outlive it.
    static Task<tl::expected<std::unique_ptr<SmtpSession>, Verdict>> open(
        net::LineClient& client, const SmtpServer& server, Login login
    );

    Task<Verdict> send(Envelope mail);
    // Another mail may follow.
    bool is_usable() const { return is_usable_; }
    // The connection ended before the server was given the mail.
    bool was_lost_early() const { return was_lost_early_; }
    // Says goodbye. Nobody waits for the answer: the mail is taken.
    Task<> quit();

private:
    SmtpSession(const SmtpServer& server, std::unique_ptr<net::LineStream> stream);

    Task<Result<Reply>> read_reply(Millis timeout);
    Task<Result<Reply>> ask(std::string command);
    Task<Verdict> introduce(Login login);
    Task<Verdict> hello();
    Task<Verdict> secure();
    Task<Verdict> log_in(Login login);
    Task<Result<Reply>> log_in_with_password(Login login);
    Task<Result<Reply>> log_in_with_token(Login login);
    Task<Verdict> announce(const Envelope& mail);  // `mail` lives in send()
    Task<Verdict> hand_over(std::string data);
    Task<> begin_afresh();
    void note_goodbye(const Reply& reply);
    Verdict lost(const Error& error);

    const SmtpServer& server_;
    std::unique_ptr<net::LineStream> stream_;
    Capabilities capabilities_;
    bool is_usable_ = false;
    bool was_lost_early_ = false;
};

// With the final dot, and those at the beginnings of lines doubled. REQUIRES: lines end in CR LF.
std::string with_dots(std::string_view data);

}  // namespace comfyd::notify::mail
