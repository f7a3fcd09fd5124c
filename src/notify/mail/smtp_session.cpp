#include "notify/mail/smtp_session.hpp"

#include <utility>

#include "base/crypto.hpp"
#include "notify/mail/address.hpp"

namespace comfyd::notify::mail {
namespace {

using Kind = Verdict::Kind;

Verdict say(Kind kind, const std::string& what, const Reply& reply) {
    return {.kind = kind, .reason = "the mail server " + what + ": " + reply.to_string()};
}

bool says_too_big(const Reply& reply) {
    return reply.code == 552 && (reply.enhanced.empty() || reply.enhanced == "5.3.4");
}

// Of a refusal that is not this mail's fault.
Verdict judge_admission(const std::string& what, const Reply& reply) {
    return say(reply.is_refusal() ? Kind::not_admitted : Kind::later, what, reply);
}

// Of a refusal of this mail.
Verdict judge_mail(const std::string& what, const Reply& reply) {
    if (says_too_big(reply)) {
        return say(Kind::too_big, what, reply);
    }
    return say(reply.is_refusal() ? Kind::refused : Kind::later, what, reply);
}

}  // namespace

std::string with_dots(std::string_view data) {
    std::string made;
    made.reserve(data.size() + data.size() / 64 + 5);
    bool at_begin = true;
    for (const char c : data) {
        if (at_begin && c == '.') {
            made += '.';
        }
        made += c;
        at_begin = c == '\n';
    }
    return made + ".\r\n";
}

SmtpSession::SmtpSession(const SmtpServer& server, std::unique_ptr<net::LineStream> stream)
    : server_(server), stream_(std::move(stream)) {}

Task<tl::expected<std::unique_ptr<SmtpSession>, Verdict>> SmtpSession::open(
    net::LineClient& client, const SmtpServer& server, Login login
) {
    auto stream = co_await client.connect(
        server.host,
        server.port,
        server.security == Security::tls,
        Deadline::in(server.command_timeout)
    );
    if (!stream) {
        const bool is_cancelled = stream.error().code == Code::cancelled;
        co_return tl::unexpected(
            Verdict{is_cancelled ? Kind::cancelled : Kind::later, std::move(stream.error().message)}
        );
    }
    std::unique_ptr<SmtpSession> session(new SmtpSession(server, std::move(*stream)));
    auto verdict = co_await session->introduce(std::move(login));
    if (verdict.kind != Kind::accepted) {
        co_return tl::unexpected(std::move(verdict));
    }
    session->is_usable_ = true;
    co_return session;
}

Verdict SmtpSession::lost(const Error& error) {
    is_usable_ = false;
    return {error.code == Code::cancelled ? Kind::cancelled : Kind::later, error.message};
}

Task<Result<Reply>> SmtpSession::read_reply(Millis timeout) {
    const Deadline deadline = Deadline::in(timeout);
    ReplyReader reader;
    for (;;) {
        auto line = co_await stream_->read_line(deadline);
        if (!line) {
            co_return fail(std::move(line.error()));
        }
        const auto is_last = reader.add(*line);
        if (!is_last) {
            co_return fail(is_last.error());
        }
        if (*is_last) {
            co_return reader.take();
        }
    }
}

Task<Result<Reply>> SmtpSession::ask(std::string command) {
    auto written =
        co_await stream_->write(std::move(command) + "\r\n", Deadline::in(server_.command_timeout));
    // After a failed write too: a server that goes says why before it does.
    auto reply = co_await read_reply(server_.command_timeout);
    if (!reply && !written) {
        co_return fail(std::move(written.error()));
    }
    co_return reply;
}

Task<Verdict> SmtpSession::introduce(Login login) {
    auto greeting = co_await read_reply(server_.command_timeout);
    if (!greeting) {
        co_return lost(greeting.error());
    }
    if (!greeting->is_done()) {
        co_return judge_admission("does not serve us", *greeting);
    }
    auto verdict = co_await hello();
    if (verdict.kind == Kind::accepted && server_.security == Security::starttls) {
        verdict = co_await secure();
    }
    if (verdict.kind == Kind::accepted && login.kind != Login::Kind::none) {
        verdict = co_await log_in(std::move(login));
    }
    co_return verdict;
}

Task<Verdict> SmtpSession::hello() {
    auto reply = co_await ask("EHLO " + server_.hello_name);
    if (!reply) {
        co_return lost(reply.error());
    }
    if (!reply->is_done()) {
        co_return judge_admission("does not take our greeting", *reply);
    }
    capabilities_ = Capabilities::from(*reply);
    co_return Verdict{Kind::accepted};
}

Task<Verdict> SmtpSession::secure() {
    if (!capabilities_.starttls) {
        co_return Verdict{
            Kind::not_admitted, "the mail server offers no STARTTLS, and nothing is sent in plain"
        };
    }
    auto reply = co_await ask("STARTTLS");
    if (!reply) {
        co_return lost(reply.error());
    }
    if (!reply->is_done()) {
        co_return judge_admission("does not begin TLS", *reply);
    }
    auto shaken = co_await stream_->start_tls(Deadline::in(server_.command_timeout));
    if (!shaken) {
        co_return lost(shaken.error());
    }
    // What was said in plain may be anybody's: ask again.
    auto verdict = co_await hello();
    co_return verdict;
}

Task<Verdict> SmtpSession::log_in(Login login) {
    const bool is_offered = login.kind == Login::Kind::token ? capabilities_.has_auth("XOAUTH2")
                                                             : capabilities_.has_auth("PLAIN") ||
                                                                   capabilities_.has_auth("LOGIN");
    if (!is_offered) {
        co_return Verdict{
            Kind::not_admitted, "the mail server offers no way to log in that is configured"
        };
    }
    Result<Reply> reply;
    if (login.kind == Login::Kind::token) {
        reply = co_await log_in_with_token(std::move(login));
    } else {
        reply = co_await log_in_with_password(std::move(login));
    }
    if (!reply) {
        co_return lost(reply.error());
    }
    if (reply->code != 235) {
        co_return judge_admission("does not let us log in", *reply);
    }
    co_return Verdict{Kind::accepted};
}

Task<Result<Reply>> SmtpSession::log_in_with_password(Login login) {
    if (capabilities_.has_auth("PLAIN")) {
        std::string words;
        words += '\0';
        words += login.user;
        words += '\0';
        words += login.secret;
        auto reply = co_await ask("AUTH PLAIN " + to_base64(words));
        co_return reply;
    }
    auto reply = co_await ask("AUTH LOGIN");
    if (reply && reply->asks_more()) {
        reply = co_await ask(to_base64(login.user));
    }
    if (reply && reply->asks_more()) {
        reply = co_await ask(to_base64(login.secret));
    }
    co_return reply;
}

Task<Result<Reply>> SmtpSession::log_in_with_token(Login login) {
    auto reply = co_await ask(
        "AUTH XOAUTH2 " +
        to_base64("user=" + login.user + "\x01" + "auth=Bearer " + login.secret + "\x01\x01")
    );
    if (reply && reply->asks_more()) {
        // It told what is wrong, and refuses after an empty line.
        reply = co_await ask("");
    }
    co_return reply;
}

Task<Verdict> SmtpSession::send(Envelope mail) {
    if (capabilities_.size_max && mail.data.size() > *capabilities_.size_max) {
        co_return Verdict{
            Kind::too_big,
            "the mail server takes " + std::to_string(*capabilities_.size_max) +
                " bytes at most, the mail has " + std::to_string(mail.data.size())
        };
    }
    auto verdict = co_await announce(mail);
    if (verdict.kind == Kind::accepted) {
        verdict = co_await hand_over(std::move(mail.data));
    } else if (is_usable_) {
        co_await begin_afresh();
    }
    co_return verdict;
}

Task<Verdict> SmtpSession::announce(const Envelope& mail) {
    const bool is_utf8 = needs_utf8(mail.from) || needs_utf8(mail.to);
    if (is_utf8 && !capabilities_.smtputf8) {
        const bool is_senders = needs_utf8(mail.from);
        co_return Verdict{
            .kind = is_senders ? Kind::not_admitted : Kind::refused,
            .reason = "the mail server offers no SMTPUTF8, without which there is no mail " +
                      (is_senders ? "of " + mail.from : "for " + mail.to),
            .is_of_recipient = !is_senders
        };
    }
    std::string from = "MAIL FROM:<" + mail.from + ">" + (is_utf8 ? " SMTPUTF8" : "");
    if (capabilities_.size_max) {
        from += " SIZE=" + std::to_string(mail.data.size());
    }
    auto reply = co_await ask(std::move(from));
    if (reply && reply->is_done()) {
        reply = co_await ask("RCPT TO:<" + mail.to + ">");
    } else if (reply && !says_too_big(*reply)) {
        note_goodbye(*reply);
        co_return judge_admission("takes no mail of " + mail.from, *reply);
    }
    const bool is_recipient_refused = reply && !reply->is_done() && reply->code != 421;
    if (reply && reply->is_done()) {
        reply = co_await ask("DATA");
    }
    if (!reply) {
        was_lost_early_ = true;
        co_return lost(reply.error());
    }
    if (!reply->asks_more()) {
        note_goodbye(*reply);
        Verdict verdict = judge_mail("takes no mail for " + mail.to, *reply);
        verdict.is_of_recipient = is_recipient_refused;
        co_return verdict;
    }
    co_return Verdict{Kind::accepted};
}

void SmtpSession::note_goodbye(const Reply& reply) {
    if (reply.code == 421) {
        is_usable_ = false;
        was_lost_early_ = true;
    }
}

Task<Verdict> SmtpSession::hand_over(std::string data) {
    auto written = co_await stream_->write(with_dots(data), Deadline::in(server_.end_timeout));
    // After a failed write too: a server that wants no more of it says why.
    auto reply = co_await read_reply(server_.end_timeout);
    if (!reply) {
        co_return lost(written ? reply.error() : written.error());
    }
    if (!reply->is_done()) {
        is_usable_ = is_usable_ && written && reply->code != 421;
        co_return judge_mail("refuses the mail", *reply);
    }
    co_return Verdict{Kind::accepted};
}

Task<> SmtpSession::begin_afresh() {
    auto reply = co_await ask("RSET");
    is_usable_ = reply && reply->is_done();
}

Task<> SmtpSession::quit() {
    is_usable_ = false;
    auto written = co_await stream_->write("QUIT\r\n", Deadline::in(server_.command_timeout));
    static_cast<void>(written);
}

}  // namespace comfyd::notify::mail
