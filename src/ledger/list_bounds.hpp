// Between which ids the jobs of a listing lie, because ids begin with their time. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "jobs/ledger.hpp"

namespace comfyd::ledger {

// The smallest id that can have been made at `time`.
inline JobId lowest_id(Time time) {
    JobId id;
    const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_unix_ms(time)));
    for (std::size_t i = 0; i < 6; ++i) {
        id.uuid.bytes[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
    }
    return id;
}

struct ListBounds {
    JobId below;
    JobId from;

    explicit ListBounds(const jobs::ListQuery& query) {
        // An id's time can lie before or after created_at when the clock was set; beyond a day we
        // take it as agreed.
        constexpr Millis kSlack = std::chrono::hours(24);
        below.uuid.bytes.fill(0xFF);
        if (query.cursor) {
            below = *query.cursor;
        }
        if (query.created_before) {
            below = std::min(below, lowest_id(*query.created_before + kSlack));
        }
        if (query.created_after) {
            from = lowest_id(*query.created_after - kSlack);
        }
    }
};

}  // namespace comfyd::ledger
