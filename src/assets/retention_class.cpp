#include "assets/retention_class.hpp"

#include <algorithm>

namespace comfyd::assets {
namespace {

constexpr std::array<std::string_view, 4> kNames{"immediate", "standard", "archive", "glacier"};

}  // namespace

std::string_view to_string(StorageClass storage_class) {
    return kNames[static_cast<std::size_t>(storage_class) + 1];
}

std::string_view to_string(RetentionClass retention) {
    return kNames[static_cast<std::size_t>(retention)];
}

std::optional<RetentionClass> parse_retention_class(std::string_view text) {
    const auto found = std::find(kNames.begin(), kNames.end(), text);
    return found == kNames.end()
               ? std::nullopt
               : std::optional(static_cast<RetentionClass>(found - kNames.begin()));
}

StorageClass RetentionRules::storage_class(RetentionClass retention, Millis age) const {
    if (retention >= RetentionClass::glacier && age >= life_of(RetentionClass::archive)) {
        return StorageClass::glacier;
    }
    return retention >= RetentionClass::archive && age >= life_of(RetentionClass::standard)
               ? StorageClass::archive
               : StorageClass::standard;
}

std::optional<Millis> RetentionRules::next_move(RetentionClass retention, Millis age) const {
    const StorageClass now = storage_class(retention, age);
    for (const auto shorter : {RetentionClass::standard, RetentionClass::archive}) {
        if (age < life_of(shorter) && storage_class(retention, life_of(shorter)) != now) {
            return life_of(shorter);
        }
    }
    return std::nullopt;
}

}  // namespace comfyd::assets
