#include "notify/mail/smtp_client.hpp"

#include <utility>

namespace comfyd::notify::mail {
namespace {

net::LineClientOptions line_options(const SmtpOptions& options) {
    net::LineClientOptions lines;
    lines.ca_file = options.ca_file;
    return lines;
}

}  // namespace

SmtpClient::SmtpClient(Executor executor, Clock& clock, SmtpOptions options)
    : options_(std::move(options)), lines_(executor, line_options(options_)), freed_(executor) {
    if (options_.tokens) {
        tokens_.emplace(executor, clock, *options_.tokens);
    }
}

Task<Verdict> SmtpClient::send(Envelope mail) {
    while (busy_ >= options_.connections_max) {
        ++waiting_;
        const bool is_freed = co_await freed_.wait();
        --waiting_;
        if (!is_freed) {
            co_return Verdict{Verdict::Kind::cancelled};
        }
    }
    struct Place {
        SmtpClient& client;
        explicit Place(SmtpClient& of) : client(of) { ++client.busy_; }
        ~Place() {
            --client.busy_;
            client.freed_.notify();
        }
    } const place(*this);
    auto verdict = co_await send_by_any(std::move(mail));
    co_return verdict;
}

Task<Verdict> SmtpClient::send_by_any(Envelope mail) {
    std::unique_ptr<SmtpSession> session;
    if (!spare_.empty()) {
        session = std::move(spare_.back());
        spare_.pop_back();
        auto verdict = co_await session->send(mail);
        if (!session->was_lost_early() || verdict.kind == Verdict::Kind::cancelled) {
            co_await put_back(std::move(session));
            co_return verdict;
        }
        // The server had ended it after the mail before: that says nothing of this one.
    }
    auto opened = co_await open();
    if (!opened) {
        co_return std::move(opened.error());
    }
    session = std::move(*opened);
    auto verdict = co_await session->send(std::move(mail));
    co_await put_back(std::move(session));
    co_return verdict;
}

Task<> SmtpClient::put_back(std::unique_ptr<SmtpSession> session) {
    if (!session->is_usable()) {
        co_return;
    }
    if (waiting_ > 0) {
        spare_.push_back(std::move(session));
        co_return;
    }
    co_await session->quit();
}

Task<SmtpClient::Opened> SmtpClient::open() {
    if (!tokens_) {
        const auto kind = options_.user.empty() ? Login::Kind::none : Login::Kind::password;
        auto opened = co_await SmtpSession::open(
            lines_, options_.server, {kind, options_.user, options_.password}
        );
        co_return opened;
    }
    for (;;) {
        const bool is_old = tokens_->has_one();
        auto token = co_await tokens_->get();
        if (!token) {
            const Code code = token.error().code;
            const auto kind = code == Code::unauthorized ? Verdict::Kind::not_admitted
                              : code == Code::cancelled  ? Verdict::Kind::cancelled
                                                         : Verdict::Kind::later;
            co_return tl::unexpected(Verdict{kind, std::move(token.error().message)});
        }
        auto opened = co_await SmtpSession::open(
            lines_, options_.server, {Login::Kind::token, options_.user, std::move(*token)}
        );
        if (opened || opened.error().kind != Verdict::Kind::not_admitted) {
            co_return opened;
        }
        tokens_->forget();
        // One that was revoked meanwhile is no reason to give up: a new one may do.
        if (!is_old) {
            co_return opened;
        }
    }
}

void SmtpClient::close() {
    spare_.clear();
    if (tokens_) {
        tokens_->close();
    }
}

}  // namespace comfyd::notify::mail
