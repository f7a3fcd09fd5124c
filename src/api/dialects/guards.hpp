// Routes for operators: how children are confined, and how the audit log does.
#pragma once

#include <functional>

#include "api/router.hpp"

namespace comfyd::api {

// Any thread.
struct Guards {
    std::function<json::object()> describe_sandbox;
    std::function<json::object()> describe_audit;
};
void add_guards(Router& router, Guards guards);

}  // namespace comfyd::api
