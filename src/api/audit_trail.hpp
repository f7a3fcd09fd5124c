// What the audit log is told of one request, from its route to its answer. Its exchange's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/journal.hpp"
#include "auth/authenticator.hpp"
#include "net/server.hpp"

namespace comfyd::api {

struct Route;

// What a request to the route does, in the words of the log: "job.create", "key.rotate",
// "worker.drain".
std::string action_of(const Route& route);

class AuditTrail {
public:
    // All outlive it.
    struct Parts {
        audit::Journal& journal;
        audit::Extent extent;
        Clock& clock;
        const net::Request& request;
        const Route& route;
    };
    explicit AuditTrail(const Parts& parts) : p_(parts) {}

    void set_request(const std::string& id, const std::vector<std::string>& path_parameters);
    // Who it is; without, nobody whom we know.
    void set_caller(const auth::Caller& caller) { caller_ = caller; }
    std::string made;  // id of what the request made

    // With this answer, of which the first alone counts.
    void answered(int status, std::string_view body);
    // The answer tells of a change that must not be forgotten: it is sent after store().
    bool must_be_stored() const { return to_store_.has_value(); }
    Task<> store();

private:
    bool is_told(int status) const;
    audit::Event event_of(int status, std::string_view body) const;

    const Parts p_;
    std::string request_id_;
    std::string object_;
    std::optional<auth::Caller> caller_;
    bool is_answered_ = false;
    std::optional<audit::Event> to_store_;
};

}  // namespace comfyd::api
