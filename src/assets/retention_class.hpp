// How long outputs are kept, by class, and where they go when they are looked at less.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "assets/blob_store.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

// In the order of their length.
enum class RetentionClass { immediate, standard, archive, glacier };
std::string_view to_string(RetentionClass retention);
std::optional<RetentionClass> parse_retention_class(std::string_view text);

struct RetentionRules {
    // By class, from when it was made on.
    std::array<Millis, 4> life{
        std::chrono::hours(24),
        std::chrono::hours(24 * 30),
        std::chrono::hours(24 * 365),
        std::chrono::hours(24 * 365 * 7),
    };

    Millis life_of(RetentionClass retention) const {
        return life[static_cast<std::size_t>(retention)];
    }
    // Of what is this old: what outlives the shorter classes moves on when they would have ended.
    StorageClass storage_class(RetentionClass retention, Millis age) const;
    // At which age it moves on from the class that it has at this age; nullopt: never.
    std::optional<Millis> next_move(RetentionClass retention, Millis age) const;
};

}  // namespace comfyd::assets
