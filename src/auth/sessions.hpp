// Sessions of browsers: made by a login, known to every node, ended by a logout, by time, by
// whoever may end them, and with the key or the tenant that they stand for. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/directory.hpp"
#include "auth/session_cookies.hpp"
#include "auth/session_store.hpp"

namespace comfyd::auth {

// One, as its owner and operators may see it.
struct Session {
    std::string id;
    std::string tenant;
    std::string owner;
    std::string by;  // "key", "oidc"
    Time began_at{};
    Time used_at{};
    Time ends_at{};         // if it is not used until then
    std::string address{};  // from where it began
    std::string agent{};
};

class Sessions {
public:
    struct Options {
        SessionCookies::Options cookies{};
        std::string issuer{};  // whose sessions are good, beside those of keys
        Millis idle_max = std::chrono::hours(8);
        Millis life_max = std::chrono::hours(24);
    };
    // All outlive it.
    Sessions(Options options, SessionStore& store, const DirectoryBoard& directory, Clock& clock);

    const SessionCookies& cookies() const { return cookies_; }

    // From where somebody logs in.
    struct Origin {
        std::string address;
        std::string agent;
    };
    struct Opened {
        std::string token;  // for the browser
        Caller caller;
    };
    // Code::unauthorized, Code::forbidden: as the key itself would be answered.
    Task<Result<Opened>> open_by_key(std::string key, Origin from) const;
    // For somebody whom the issuer has shown to be this. `id_token` is kept where only the token
    // of the session can read it.
    Task<Result<Opened>> open_by_issuer(Caller caller, std::string id_token, Origin from) const;

    struct Found {
        Caller caller;
        Session session;
    };
    // Who shows the token, as it holds now. Code::unauthorized, Code::forbidden.
    Task<Result<Found>> find(std::string token) const;

    // Ends it; what the issuer said at login, empty where there is nothing. One that is unknown is
    // ended already.
    Task<Result<std::string>> close(std::string token) const;

    Task<Result<std::vector<Session>>> list(SessionQuery query) const;
    // False: there is none, or it is not one of `owner`, where given.
    Task<Result<bool>> end(std::string id, std::optional<Caller> owner) const;

    // What a page of ours sends in a header with all that changes something; others cannot read it.
    static std::string page_token(std::string_view token);

private:
    Task<Result<Opened>> open(Caller caller, std::string token, json::object about, Origin from)
        const;
    Result<Caller> judge(const SessionRecord& record) const;

    const Options options_;
    const SessionCookies cookies_;
    SessionStore& store_;
    const DirectoryBoard& directory_;
    Clock& clock_;
};

}  // namespace comfyd::auth
