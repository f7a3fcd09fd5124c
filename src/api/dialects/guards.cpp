#include "api/dialects/guards.hpp"

#include <utility>

namespace comfyd::api {

void add_guards(Router& router, Guards guards) {
    const auto add = [&router](
                         const char* pattern,
                         const char* id,
                         const char* summary,
                         std::function<json::object()> describe
                     ) {
        router.add(Route{
            net::Method::get,
            pattern,
            [describe = std::move(describe)](Call& call) {
                return send(call, json_response(200, describe()));
            },
            encode_error,
            Access::admin,
            {{"operationId", id}, {"summary", summary}, {"tags", json::array{"admin"}}}
        });
    };
    add("/admin/v1/sandbox",
        "adminShowSandbox",
        "How child processes are confined",
        std::move(guards.describe_sandbox));
    add("/admin/v1/audit",
        "adminShowAudit",
        "Where the audit log is, who signs it and what it has lost",
        std::move(guards.describe_audit));
}

}  // namespace comfyd::api
