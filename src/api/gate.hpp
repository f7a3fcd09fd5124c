// What a request must show before its handler sees it: the name of this server, a page that may
// ask, and a key, a ticket or the cookie of a session. Set up before serving; any thread may ask
// after that.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/audit_trail.hpp"
#include "api/router.hpp"
#include "auth/tickets.hpp"

namespace comfyd::api {

class Gate {
public:
    Gate(const auth::Authenticator& authenticator, Clock& clock)
        : authenticator_(authenticator), clock_(clock) {}

    Router::Rules rules;
    limits::AddressGuard* addresses = nullptr;
    const auth::Tickets tickets;

    bool requires_keys() const { return authenticator_.required(); }
    bool allows_origin(std::string_view origin) const;
    // What pages of other origins need to read an answer.
    net::Headers cors_headers(const net::Request& request) const;

    // Code::forbidden: a page of another site, which must use neither a comfyd without keys on the
    // visitor's machine nor the visitor's session. A browser sends such a request without asking,
    // and names the page in Origin.
    Result<> check_page(const net::Request& request) const;
    // Code::unauthorized; Code::forbidden where the route needs a scope that the caller has not;
    // Code::rate_limited before anything is looked at. On an open route a caller without a good key
    // has no tenant. All of it lives until the answer; `trail` (null: none) hears who it is, also
    // of one who may not.
    using Query = std::vector<std::pair<std::string, std::string>>;
    Task<Result<auth::Caller>> admit(
        const net::Request& request,
        const Route& route,
        const std::vector<std::string>& path_parameters,
        const Query& query,
        AuditTrail* trail
    ) const;

private:
    // A browser sends the cookie along whoever makes it ask.
    Result<> check_own_page(const net::Request& request, const std::string& cookie) const;
    Task<Result<auth::Caller>> authenticate(const net::Request& request, std::string cookie) const;
    Task<Result<auth::Caller>> authenticate(
        const net::Request& request,
        const Route& route,
        const std::vector<std::string>& path_parameters,
        const Query& query
    ) const;

    Task<Result<auth::Caller>> authenticate(const std::string& address, std::string_view credential)
        const;
    Result<auth::Caller> guarded(const std::string& address, Result<auth::Caller> caller) const;

    const auth::Authenticator& authenticator_;
    Clock& clock_;
};

}  // namespace comfyd::api
