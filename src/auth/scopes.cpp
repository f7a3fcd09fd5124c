#include "auth/scopes.hpp"

#include <array>

namespace comfyd::auth {
namespace {

constexpr std::array kScopes{
    Scope::jobs_read,
    Scope::jobs_write,
    Scope::assets_read,
    Scope::assets_write,
    Scope::workflows_read,
    Scope::workflows_write,
    Scope::metrics_read,
    Scope::admin,
};

}  // namespace

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

std::optional<Scopes> parse_scopes(std::string_view word) {
    if (word == "*") {
        return kTenantScopes;
    }
    const bool is_group = word.ends_with(":*");
    const std::string_view group = word.substr(0, word.size() - (is_group ? 1 : 0));
    Scopes found;
    for (const Scope scope : kScopes) {
        const std::string_view name = to_string(scope);
        if (is_group ? name.starts_with(group) : name == word) {
            found.add({scope});
        }
    }
    return found == Scopes() ? std::nullopt : std::optional(found);
}

std::vector<std::string_view> words_of(Scopes scopes) {
    std::vector<std::string_view> words;
    for (const Scope scope : kScopes) {
        if (scopes.contain(scope)) {
            words.push_back(to_string(scope));
        }
    }
    return words;
}

}  // namespace comfyd::auth
