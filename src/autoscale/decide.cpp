#include "autoscale/decide.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd::autoscale {
namespace {

constexpr Millis kBurstHolds = std::chrono::seconds(60);
constexpr Millis kUnusedFor = std::chrono::seconds(15);
constexpr Millis kNoUseFor = std::chrono::minutes(10);
constexpr double kSecondsPerHour = 3600;

class Decider {
public:
    Decider(const PoolView& pool, Memory& memory, Time now)
        : pool_(pool), settings_(pool.settings), memory_(memory), now_(now) {}

    Decision run() {
        numbers_ = look(pool_, memory_, now_);
        choose_offers();
        if (is_burst(numbers_, pool_)) {
            memory_.burst_until = now_ + kBurstHolds;
        }
        find_need();
        made_.machines = numbers_.need;
        numbers_.need > total() ? grow() : shrink();
        pay();
        if (made_.machines > total()) {
            memory_.grew_at = now_;
        }
        made_.were = total();
        made_.numbers = numbers_;
        made_.sentence = sentence_of(made_, pool_, is_in_burst());
        return std::move(made_);
    }

private:
    int total() const { return numbers_.total(); }
    bool is_in_burst() const { return memory_.burst_until && now_ < *memory_.burst_until; }
    Millis start_p90() const {
        constexpr double kMost = 86'400;
        return Millis(static_cast<std::int64_t>(std::min(numbers_.start_p90_s, kMost) * 1000));
    }

    void choose_offers() {
        double load_s = 0;
        for (const Work& work : pool_.waiting) {
            load_s = std::max(load_s, work.load_s);
        }
        made_.offers = cheapest_first(
            pool_.offers, memory_.starts, load_s, numbers_.waiting_s / std::max(1, total())
        );
        expect_start(numbers_, pool_, memory_, made_.offers.empty() ? 0 : made_.offers.front());
    }

    void find_need() {
        int need = within_use(need_of_work(numbers_, pool_, is_in_burst()));
        // Work that lasts is no less work while nothing comes.
        need = std::max(need, std::min(total(), static_cast<int>(std::ceil(memory_.busy - 0.5))));
        made_.why = is_no_use_                        ? Why::no_use
                    : need > total() && total() == 0  ? Why::zero
                    : need > total() && is_in_burst() ? Why::burst
                    : need > total()                  ? Why::work
                                                      : Why::enough;
        const auto raise = [&](int to, Why why) {
            if (to > need) {
                need = to;
                made_.why = to > total() ? why : Why::enough;
            }
        };
        if (numbers_.others > 0) {
            const int others = need_of_others(numbers_);
            need += others;
            made_.why = need > total() ? Why::others : made_.why;
            raise(total() + std::max(0, others - numbers_.coming), Why::others);
        }
        if (settings_.spare > 0 && numbers_.busy > 0) {
            raise(numbers_.busy + settings_.spare, Why::spare);
        }
        raise(best_effort(), Why::batch);
        raise(foreseen(), Why::forecast);
        raise(minimum(), Why::minimum);
        if (need > settings_.max) {
            need = settings_.max;
            made_.why = total() >= settings_.max ? Why::most : made_.why;
        }
        numbers_.need = need;
        if (memory_.needs.empty()) {
            memory_.needs.note(now_, total(), settings_.idle_timeout);
        }
        memory_.needs.note(now_, need, settings_.idle_timeout);
        numbers_.recent = memory_.needs.most();
    }

    // Machines that idle say that more are of no use.
    int within_use(int need) {
        const bool is_unused = numbers_.waiting > 0 && numbers_.ready > numbers_.working;
        if (!is_unused) {
            memory_.unused_since.reset();
        } else if (!memory_.unused_since) {
            memory_.unused_since = now_;
        } else if (now_ - *memory_.unused_since >= kUnusedFor) {
            memory_.useful = std::max(numbers_.working, 1);
            memory_.useful_until = now_ + kNoUseFor;
        }
        if (memory_.useful_until && (now_ >= *memory_.useful_until || numbers_.waiting == 0)) {
            memory_.useful_until.reset();
        }
        is_no_use_ = memory_.useful_until && need > memory_.useful;
        return is_no_use_ ? memory_.useful : need;
    }

    // One machine, if nobody else pays for one in a long time; it stays until all is done.
    int best_effort() {
        const bool runs = numbers_.working > numbers_.busy;
        if (numbers_.best_effort == 0 && !runs) {
            memory_.batch_since.reset();
            memory_.works_for_batch = false;
            return 0;
        }
        if (total() > 0 || pool_.others > 0) {
            memory_.batch_since.reset();
        } else {
            memory_.batch_since = memory_.batch_since.value_or(now_);
            memory_.works_for_batch =
                memory_.works_for_batch ||
                now_ - *memory_.batch_since >= scheduler::wait_target(scheduler::WaitClass::batch);
        }
        return memory_.works_for_batch ? 1 : 0;
    }

    // Those that must be there soon are started now.
    int minimum() {
        numbers_.minimum = settings_.min;
        for (const Minimum& one : settings_.schedule) {
            if (one.holds(now_) || one.holds(now_ + start_p90())) {
                numbers_.minimum = std::max(numbers_.minimum, one.machines);
            }
        }
        return numbers_.minimum;
    }

    int foreseen() const {
        double busy = 0;
        for (const Time at : {now_, now_ + start_p90()}) {
            const auto forecast = memory_.history.forecast(at);
            const bool counts = settings_.uses_forecast && forecast && forecast->is_trusted();
            busy = std::max(busy, counts ? forecast->machines : 0);
        }
        return static_cast<int>(std::lround((busy - pool_.others) / std::max(settings_.slots, 1)));
    }

    void grow() {
        const bool waits = memory_.grew_at && now_ - *memory_.grew_at < settings_.up_cooldown;
        if (waits && total() > 0 && !is_in_burst() && made_.why != Why::minimum) {
            const int least = std::min(numbers_.minimum, settings_.max);
            made_.machines = std::max(total(), least);
            made_.why = least > total() ? Why::minimum : Why::cooldown;
        }
    }

    void shrink() {
        const int kept = is_in_burst() ? total() : std::min(total(), numbers_.recent);
        made_.machines = std::min(std::max(made_.machines, kept), std::max(settings_.max, 0));
        if (made_.machines < total()) {
            made_.why = Why::idle;
        } else if (numbers_.need < total() && made_.why == Why::enough) {
            made_.why = Why::kept;
        }
    }

    // Where nothing is left, idle ones go, and the others once they have ended what they do: with
    // work in the queue none would ever idle.
    void pay() {
        const double price = next_price();
        if (pool_.budget) {
            numbers_.budget_left_usd = pool_.budget->left_usd();
            const double start_usd = price * numbers_.start_s / kSecondsPerHour;
            const bool is_empty = pool_.budget->left_usd() <= 0;
            numbers_.is_spent = is_empty || pool_.budget->left_usd() < start_usd;
            if (numbers_.is_spent) {
                spend_on(is_empty ? 0 : total());
                made_.drains = is_empty;
            }
        }
        if (pool_.usd_per_hour_max > 0 && price > 0) {
            double costs = 0;
            for (const Machine& machine : pool_.machines) {
                costs += machine.usd_per_hour;
            }
            constexpr double kMost = 1e6;
            const double more = std::floor((pool_.usd_per_hour_max - costs) / price + 1e-9);
            spend_on(total() + static_cast<int>(std::clamp(more, 0.0, kMost)));
        }
    }
    void spend_on(int machines) {
        if (machines < made_.machines) {
            made_.machines = machines;
            made_.why = Why::budget;
        }
    }
    double next_price() const {
        for (const std::size_t at : made_.offers) {
            if (pool_.offers[at].usd_per_hour) {
                return *pool_.offers[at].usd_per_hour;
            }
        }
        double most = 0;
        for (const Machine& machine : pool_.machines) {
            most = std::max(most, machine.usd_per_hour);
        }
        return most;
    }

    const PoolView& pool_;
    const Settings& settings_;
    Memory& memory_;
    const Time now_;
    Decision made_;
    Numbers numbers_;
    bool is_no_use_ = false;
};

}  // namespace

Decision decide(const PoolView& pool, Memory& memory, Time now) {
    return Decider(pool, memory, now).run();
}

std::string_view to_string(Why why) {
    switch (why) {
        case Why::enough:
            return "enough";
        case Why::work:
            return "work";
        case Why::zero:
            return "zero";
        case Why::burst:
            return "burst";
        case Why::others:
            return "others";
        case Why::minimum:
            return "minimum";
        case Why::forecast:
            return "forecast";
        case Why::spare:
            return "spare";
        case Why::batch:
            return "batch";
        case Why::idle:
            return "idle";
        case Why::kept:
            return "kept";
        case Why::cooldown:
            return "cooldown";
        case Why::most:
            return "most";
        case Why::no_use:
            return "no_use";
        case Why::budget:
            break;
    }
    return "budget";
}

}  // namespace comfyd::autoscale
