// What may be spent in a time. A value.
#pragma once

namespace comfyd {

// In USD; 0: no limit. Hours, days and months are those of UTC.
struct Budget {
    double usd_per_hour = 0;
    double usd_per_day = 0;
    double usd_per_month = 0;

    bool is_set() const { return usd_per_hour > 0 || usd_per_day > 0 || usd_per_month > 0; }
    bool operator==(const Budget&) const = default;
};

}  // namespace comfyd
