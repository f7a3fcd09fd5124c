#include "limits/quotas.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace comfyd::limits {
namespace {

constexpr Millis kFresh{2'000};
constexpr double kMegabyte = 1024.0 * 1024.0;

Time day_of(Time time) {
    return std::chrono::floor<std::chrono::days>(time);
}

std::chrono::year_month_day date_of(Time time) {
    return std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(time));
}

Time month_of(Time time) {
    const auto date = date_of(time);
    return std::chrono::sys_days(date.year() / date.month() / 1);
}

Time next_month(Time time) {
    const auto date = date_of(time);
    return std::chrono::sys_days((date.year() / date.month() + std::chrono::months(1)) / 1);
}

double seconds(Millis time) {
    return std::chrono::duration<double>(time).count();
}

Error used_up(std::string_view reason, const std::string& what, double limit, Millis until) {
    const std::int64_t wait = std::max<std::int64_t>((until.count() + 999) / 1000, 1);
    return Error(
        Code::rate_limited,
        what + " are used up; they begin anew in " + std::to_string(wait) + " s",
        {{"allowed", false},
         {"reason", reason},
         {"retry_after", wait},
         {"limit", to_json(limit)},
         {"remaining", 0}}
    );
}

Error full_for_tenant(double limit_mb) {
    return Error(
        Code::storage_full,
        "as much as is allowed (" + std::to_string(static_cast<std::int64_t>(limit_mb)) +
            " MB) is stored; remove files or jobs that are not needed",
        {{"allowed", false},
         {"reason", "quota_exceeded"},
         {"retry_after", nullptr},
         {"limit", to_json(limit_mb)},
         {"remaining", 0},
         {"suggested_action", "remove_files"}}
    );
}

}  // namespace

Task<Result<std::shared_ptr<void>>> Quotas::may_submit(std::string tenant, std::string tier) {
    if (auto room = sources_.has_room(); !room) {
        co_return fail(std::move(room.error()));
    }
    const Allowance allowance = book_.of(tenant, tier);
    std::shared_ptr<void> place;
    if (allowance.queued_max > 0) {
        auto taken = co_await take_place(tenant, allowance.queued_max);
        if (!taken) {
            ++refused_;
            co_return fail(std::move(taken.error()));
        }
        place = std::move(*taken);
    }
    auto checked = co_await check_spent(std::move(tenant), allowance);
    if (!checked) {
        ++refused_;
        co_return fail(std::move(checked.error()));
    }
    co_return place;
}

Quotas::OnTheirWay Quotas::on_their_way(const std::string& tenant) {
    const Lock lock(mutex_);
    OnTheirWay& count = on_their_way_.use(tenant);
    if (!count) {
        count = std::make_shared<std::atomic<std::size_t>>(0);
    }
    return count;
}

// A job that is on its way may have been counted as stored already, never the other way round: so
// no two take the last place.
Task<Result<std::shared_ptr<void>>> Quotas::take_place(std::string tenant, double queued_max) {
    const OnTheirWay count = on_their_way(tenant);
    const std::size_t before = count->fetch_add(1);
    std::shared_ptr<void> place(nullptr, [count](void*) { count->fetch_sub(1); });
    const std::size_t stored = co_await sources_.unfinished(std::move(tenant));
    if (static_cast<double>(stored + before) + 1 > queued_max) {
        co_return fail(
            Code::queue_full,
            "as many jobs as are allowed (" +
                std::to_string(static_cast<std::int64_t>(queued_max)) +
                ") wait or run; wait until one has ended",
            {{"allowed", false},
             {"reason", "concurrent_limit_exceeded"},
             {"retry_after", nullptr},
             {"limit", to_json(queued_max)},
             {"remaining", 0}}
        );
    }
    co_return place;
}

Task<Result<>> Quotas::check_spent(std::string tenant, Allowance allowance) {
    const bool is_limited = allowance.gpu_seconds_per_day > 0 ||
                            allowance.gpu_seconds_per_month > 0 || allowance.usd_per_day > 0 ||
                            allowance.usd_per_month > 0 || allowance.stored_mb_max > 0;
    if (!is_limited) {
        co_return Result<>();
    }
    auto known = co_await spent(std::move(tenant), allowance);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    const Time now = clock_.now();
    const Millis to_day = day_of(now) + std::chrono::days(1) - now;
    const Millis to_month = next_month(now) - now;
    const auto is_gone = [](double limit, double used) { return limit > 0 && used >= limit; };
    if (is_gone(allowance.usd_per_month, known->usd_month)) {
        co_return fail(
            used_up(kMoneyGone, "this month's dollars", allowance.usd_per_month, to_month)
        );
    }
    if (is_gone(allowance.usd_per_day, known->usd_day)) {
        co_return fail(used_up(kMoneyGone, "this day's dollars", allowance.usd_per_day, to_day));
    }
    constexpr std::string_view kGone = "quota_exceeded";
    if (is_gone(allowance.gpu_seconds_per_month, known->gpu_seconds_month)) {
        co_return fail(
            used_up(kGone, "this month's GPU-seconds", allowance.gpu_seconds_per_month, to_month)
        );
    }
    if (is_gone(allowance.gpu_seconds_per_day, known->gpu_seconds_day)) {
        co_return fail(
            used_up(kGone, "this day's GPU-seconds", allowance.gpu_seconds_per_day, to_day)
        );
    }
    if (is_gone(allowance.stored_mb_max, known->stored_mb)) {
        co_return fail(full_for_tenant(allowance.stored_mb_max));
    }
    co_return Result<>();
}

Task<Result<Quotas::Spent>> Quotas::spent(std::string tenant, Allowance allowance) {
    const Time now = clock_.now();
    const std::int64_t day = day_of(now).time_since_epoch() / std::chrono::days(1);
    {
        const Lock lock(mutex_);
        const Spent* known = spent_.find(tenant);
        if (known != nullptr && known->day == day && known->read_at <= now &&
            now < known->read_at + kFresh) {
            co_return *known;
        }
    }
    Spent read{now, day};
    if (allowance.gpu_seconds_per_day > 0 || allowance.usd_per_day > 0) {
        auto sums = co_await sources_.stats({tenant, day_of(now), now});
        if (!sums) {
            co_return fail(std::move(sums.error()));
        }
        read.gpu_seconds_day = seconds(sums->totals.gpu);
        read.usd_day = sums->totals.cost_usd;
    }
    if (allowance.gpu_seconds_per_month > 0 || allowance.usd_per_month > 0) {
        auto sums = co_await sources_.stats({tenant, month_of(now), now});
        if (!sums) {
            co_return fail(std::move(sums.error()));
        }
        read.gpu_seconds_month = seconds(sums->totals.gpu);
        read.usd_month = sums->totals.cost_usd;
    }
    if (allowance.stored_mb_max > 0) {
        auto bytes = co_await sources_.stored_bytes(tenant);
        if (!bytes) {
            co_return fail(std::move(bytes.error()));
        }
        read.stored_mb = static_cast<double>(*bytes) / kMegabyte;
    }
    const Lock lock(mutex_);
    spent_.use(tenant) = read;
    co_return read;
}

Task<Result<>> Quotas::may_store(std::string tenant, std::uint64_t bytes) {
    if (auto room = sources_.has_room(); !room) {
        co_return fail(std::move(room.error()));
    }
    const double limit = book_.of(tenant, {}).stored_mb_max;
    if (limit <= 0) {
        co_return Result<>();
    }
    auto stored = co_await sources_.stored_bytes(std::move(tenant));
    if (!stored) {
        co_return fail(std::move(stored.error()));
    }
    if (static_cast<double>(*stored) + static_cast<double>(bytes) > limit * kMegabyte) {
        ++refused_;
        co_return fail(full_for_tenant(limit));
    }
    co_return Result<>();
}

}  // namespace comfyd::limits
