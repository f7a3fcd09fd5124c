// Cookies by which browsers stay logged in, and what tells a page of ours from one of another site:
// a browser sends cookies along with whatever any page makes it ask. Immutable; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "net/server.hpp"

namespace comfyd::auth {

class SessionCookies {
public:
    struct Options {
        // By https alone: "__Host-" keeps other hosts of the domain from setting them. Else they
        // go over plain HTTP, which is for loopback.
        bool are_secure = true;
        // Of the public address, as browsers write it in Origin; empty: as Host says.
        std::string origin{};
    };
    explicit SessionCookies(Options options) : options_(std::move(options)) {}

    enum class Purpose { session, login };

    // Empty where there is none, or more than one: somebody else has set it too.
    std::string read(const net::Headers& headers, Purpose purpose) const;
    // Values of Set-Cookie. A session's goes when the browser is closed.
    std::string keep_session(std::string_view token) const;
    std::string keep_login(std::string_view secret, std::chrono::seconds life) const;
    std::string forget(Purpose purpose) const;

    // Whether a page of this server asks, or nobody but the user. What cannot tell is none.
    bool is_own_page(const net::Request& request) const;
    // For WebSockets, which may be opened from anywhere and always say from where.
    bool is_own_origin(const net::Request& request) const;

private:
    std::string name(Purpose purpose) const;
    std::string make(Purpose purpose, std::string_view value) const;

    Options options_;
};

}  // namespace comfyd::auth
