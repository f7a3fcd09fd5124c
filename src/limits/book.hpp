// What holds for whom now, of the tiers and of what the operator has set for a tenant. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "auth/directory.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "limits/tiers.hpp"

namespace comfyd::limits {

class Book {
public:
    // `directory` outlives it. `otherwise`: the tier of tenants for which none is named; empty:
    // they have no limits.
    Book(const auth::DirectoryBoard& directory, const Tiers& tiers, std::string otherwise);

    // `token_tier` empty: the one that the tenant's latest token here named, if any did.
    Allowance of(std::string_view tenant, std::string_view token_tier) const;
    std::string tier_of(std::string_view tenant, std::string_view token_tier) const;

    // A token of the tenant has named its tier.
    void hear(std::string_view tenant, std::string_view token_tier);

private:
    static constexpr std::size_t kHeardMax = 10'000;

    std::string heard(std::string_view tenant) const;

    const auth::DirectoryBoard& directory_;
    const Tiers tiers_;
    const std::string otherwise_;
    std::atomic<bool> has_heard_ = false;  // nobody asks for what was never said
    mutable Mutex mutex_;
    LruMap<std::string> heard_ COMFYD_GUARDED_BY(mutex_){kHeardMax};
};

}  // namespace comfyd::limits
