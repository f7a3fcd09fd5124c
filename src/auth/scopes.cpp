#include "auth/scopes.hpp"

namespace comfyd::auth {

std::string_view to_string(Scope scope) {
    switch (scope) {
        case Scope::jobs_read:
            return "jobs:read";
        case Scope::jobs_write:
            return "jobs:write";
        case Scope::assets_read:
            return "assets:read";
        case Scope::assets_write:
            return "assets:write";
        case Scope::workflows_read:
            return "workflows:read";
        case Scope::workflows_write:
            return "workflows:write";
        case Scope::metrics_read:
            return "metrics:read";
        case Scope::admin:
            return "admin";
    }
    return "";
}

}  // namespace comfyd::auth
