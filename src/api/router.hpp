// One table drives everything: dispatch, 404 and 405, authentication, metrics and the OpenAPI
// document.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.hpp"
#include "auth/authenticator.hpp"
#include "auth/tickets.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "net/host_rules.hpp"
#include "net/server.hpp"

namespace comfyd::audit {
class Journal;
}  // namespace comfyd::audit
namespace comfyd::auth {
class Sessions;
}
namespace comfyd::observe {
class Metrics;
}

namespace comfyd::limits {
class AddressGuard;
class RateLimiter;
}  // namespace comfyd::limits

namespace comfyd::api {

// A request on its way through a route.
struct Call {
    net::Exchange& exchange;
    const net::Request& request;
    auth::Caller caller;
    std::vector<std::string> path_parameters;  // in the order of the pattern, percent-decoded
    std::vector<std::pair<std::string, std::string>> query;

    std::string* made = nullptr;  // where the id of what the request made is told

    std::string_view query_value(std::string_view name) const;  // empty when absent
    // For the audit log.
    void has_made(std::string id) const {
        if (made != nullptr) {
            *made = std::move(id);
        }
    }
};

using Handler = std::function<Task<>(Call&)>;
// How a dialect says that something is wrong.
using ErrorEncoder = std::function<net::Response(const Error&)>;

// What a route is about: its callers need the scope to read it, or to write it where the method is
// neither GET nor HEAD.
enum class Access {
    undeclared,  // no route may be so: Router::add() refuses it
    jobs,
    jobs_read,  // whatever the method: it changes nothing
    assets,
    workflows,
    metrics,
    admin,  // whatever the method: it changes the fleet or shows what belongs to all tenants
    open,   // needs no scope: health checks, signed links (the handler checks those). Where keys
            // are configured and none or a wrong one was sent, the caller's tenant is empty
};

struct Route {
    net::Method method = net::Method::get;
    std::string
        pattern;  // "/api/v2/jobs/{id}/events"; "{rest*}" as the last segment takes everything
    Handler handler;
    ErrorEncoder encode_error;
    Access access = Access::undeclared;
    // For the OpenAPI document: an operation object
    // ({"operationId","summary","tags","parameters","requestBody", "responses"}). Path parameters,
    // security and common error responses are added by the router. Empty: the route is an alias or
    // an oddity and stays out of the document.
    json::object operation;
    // A browser sends no header of ours with a WebSocket, for an EventSource or for the source of a
    // picture. A stream also takes ?ticket= (auth/tickets.hpp), bound to its first path parameter
    // where the ticket names an execution, and the key as ?token= where the rules allow it.
    bool is_stream = false;
    bool token_in_query = false;  // the key as ?token=, whatever the rules
    int options_status = 204;
    // Takes its body in pieces as it comes: it holds up nobody, however large it is.
    bool streams_body = false;
    // What a request takes of its caller's rate, where weight_of() is not right by itself.
    std::optional<double> weight{};
};

// 1: it makes comfyd work. A fifth: it brings a file, or only judges. 0: it reads, removes, stops
// something, or is the operators'.
double weight_of(const Route& route);

// Nullopt: none.
std::optional<auth::Scope> needed_scope(const Route& route);

class Router {
public:
    Router(const auth::Authenticator& authenticator, observe::Metrics& metrics, Clock& clock);
    ~Router();

    void add(Route route);  // before serving
    // Schemas under #/components/schemas of the document.
    void add_schemas(json::object schemas);

    // Answers the exchange: CORS preflight, authentication, dispatch, errors. Unknown path 404 and
    // wrong method 405 (with Allow) in JSON. HEAD goes to GET routes where no HEAD route exists.
    Task<> handle(net::Exchange& exchange) const;
    json::object openapi() const;

    struct Rules {
        std::vector<std::string> origins{};  // for CORS; "*" allows all; empty: no CORS headers
        bool key_in_query = false;           // streams take the key as ?token=
        net::HostRules hosts{};              // by which names it may be addressed
        std::string origin{};                // of its public address; empty: it has none
        const auth::Sessions* sessions =
            nullptr;                        // of browsers; outlives it. nullptr: there are none
        audit::Journal* journal = nullptr;  // outlives the router; null: nothing is audited
        audit::Extent audited = audit::Extent::changes;
    };
    void set_rules(Rules rules);  // before serving
    // Likewise; both outlive it. Without them nobody is limited.
    void set_limits(limits::RateLimiter& rates, limits::AddressGuard& addresses);
    const auth::Tickets& tickets() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

// The member "retry_after" of the error's details as the header, where there is one.
void add_wait(const Error& error, net::Response& response);
// {"error":{"code","message","details"}} with the code's HTTP status: the shape of routes without a
// dialect.
net::Response encode_error(const Error& error);
net::Response json_response(int status, const json::value& body);
// The same with what was encoded before.
net::Response encoded_response(int status, std::string body);
// Answers the call; a client that is gone needs no answer.
Task<> send(Call& call, net::Response response);

}  // namespace comfyd::api
