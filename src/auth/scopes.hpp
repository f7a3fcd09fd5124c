// What a caller may do, in the words that tokens have for it ("jobs:read"). Values; any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace comfyd::auth {

enum class Scope : std::uint8_t {
    jobs_read,
    jobs_write,
    assets_read,
    assets_write,
    workflows_read,
    workflows_write,
    metrics_read,  // of all tenants
    admin,         // changes the fleet, sees what belongs to all tenants
};

std::string_view to_string(Scope scope);

class Scopes {
public:
    constexpr Scopes() = default;
    constexpr Scopes(std::initializer_list<Scope> scopes) {
        for (const Scope scope : scopes) {
            bits_ |= bit(scope);
        }
    }

    constexpr bool contain(Scope scope) const { return (bits_ & bit(scope)) != 0; }
    constexpr void add(Scopes others) { bits_ |= others.bits_; }
    constexpr bool operator==(const Scopes&) const = default;

private:
    static constexpr std::uint32_t bit(Scope scope) {
        return std::uint32_t{1} << static_cast<unsigned>(scope);
    }
    std::uint32_t bits_ = 0;
};

// All that concerns one's own tenant.
inline constexpr Scopes kTenantScopes{
    Scope::jobs_read,
    Scope::jobs_write,
    Scope::assets_read,
    Scope::assets_write,
    Scope::workflows_read,
    Scope::workflows_write,
};
inline constexpr Scopes kAllScopes{
    Scope::jobs_read,
    Scope::jobs_write,
    Scope::assets_read,
    Scope::assets_write,
    Scope::workflows_read,
    Scope::workflows_write,
    Scope::metrics_read,
    Scope::admin,
};

// "jobs:read", or "jobs:*" for both; "*" for all of one's own tenant. nullopt: it is none of ours.
std::optional<Scopes> parse_scopes(std::string_view word);
// Each by its own word, in the order of the enum.
std::vector<std::string_view> words_of(Scopes scopes);

}  // namespace comfyd::auth
