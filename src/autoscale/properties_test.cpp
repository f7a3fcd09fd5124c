// What holds of every decision, whatever comes: hundreds of hours of chance, each second looked at.
#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "autoscale/decide.hpp"

namespace comfyd::autoscale {
namespace {

using scheduler::WaitClass;
using std::chrono::seconds;

// A pool on machines that do what is decided, after a while: work comes in bursts, some of it that
// nobody can run, machines are lost, and money runs out.
class Hour {
public:
    explicit Hour(std::uint64_t seed) : chance_(seed) {
        pool_.settings.min = pick(0, 2);
        pool_.settings.max = pool_.settings.min + pick(1, 20);
        pool_.settings.spare = pick(0, 2);
        pool_.settings.slots = pick(1, 3);
        pool_.settings.idle_timeout = seconds(pick(20, 300));
        pool_.settings.up_cooldown = seconds(pick(0, 60));
        pool_.offers = {{"cloud", 1, false}, {"spot", 0.5, true}};
        if (pick(0, 2) == 0) {
            pool_.usd_per_hour_max = pick(1, 12);
        }
        has_budget_ = pick(0, 2) == 0;
        limit_usd_ = pick(1, 20) / 10.0;
    }

    void pass(int looks) {
        for (int i = 0; i < looks; ++i) {
            now_ += seconds(1);
            live();
            const Decision decision = decide(pool_, memory_, now_);
            judge(decision);
            follow(decision);
        }
    }

private:
    int pick(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(chance_);
    }

    void come(int jobs) {
        Work work;
        work.wait_class = static_cast<WaitClass>(pick(0, 3));
        work.jobs = static_cast<std::size_t>(jobs);
        work.seconds = jobs * pick(1, 120);
        work.load_s = pick(0, 20);
        work.is_runnable = pick(0, 9) > 0;
        work.is_for_others = pick(0, 19) == 0;
        pool_.arrived_s += work.wait_class == WaitClass::batch ? 0 : work.seconds;
        pool_.waiting.push_back(work);
    }

    void live() {
        if (pick(0, 60) == 0) {
            burst_ = pick(5, 60);
        }
        const bool is_burst = burst_-- > 0;
        if (pick(0, is_burst ? 1 : 30) == 0) {
            come(pick(1, is_burst ? 20 : 3));
        }
        for (Machine& machine : pool_.machines) {
            machine.ready_in_s = std::max(0.0, machine.ready_in_s - 1);
            machine.is_ready = machine.is_ready || machine.ready_in_s == 0;
            machine.left_s = std::max(0.0, machine.left_s - 1);
            if (machine.left_s == 0) {
                machine.jobs = machine.best_effort = 0;
            }
            if (machine.is_ready && machine.left_s == 0) {
                take(machine);
            }
            spent_usd_ += machine.usd_per_hour / 3'600;
        }
        if (pick(0, 300) == 0 && !pool_.machines.empty()) {
            pool_.machines.pop_back();  // its provider took it back
        }
        if (pick(0, 900) == 0) {
            spent_usd_ = 0;  // another day
        }
        if (has_budget_) {
            pool_.budget = Tightest{Span::day, limit_usd_, spent_usd_, now_ + seconds(100)};
        }
    }

    void take(Machine& machine) {
        for (Work& work : pool_.waiting) {
            if (work.jobs > 0 && work.is_runnable && !work.is_for_others) {
                const double each = work.seconds / static_cast<double>(work.jobs);
                machine.left_s = std::ceil(each);
                (work.wait_class == WaitClass::batch ? machine.best_effort : machine.jobs) = 1;
                work.seconds -= each;
                work.jobs -= 1;
                break;
            }
        }
        std::erase_if(pool_.waiting, [](const Work& work) { return work.jobs == 0; });
    }

    int total() const { return static_cast<int>(pool_.machines.size()); }
    double costs() const {
        double usd = 0;
        for (const Machine& machine : pool_.machines) {
            usd += machine.usd_per_hour;
        }
        return usd;
    }

    void judge(const Decision& made) {
        const Settings& settings = pool_.settings;
        const std::string told = made.sentence + ", at " + to_rfc3339(now_);
        const bool is_poor = made.why == Why::budget;
        EXPECT_FALSE(made.sentence.empty());
        EXPECT_EQ(made.were, total()) << told;
        EXPECT_LE(made.machines, std::max(settings.max, 0)) << told;
        EXPECT_TRUE(made.machines >= settings.min || is_poor) << told;
        EXPECT_TRUE(std::ranges::is_permutation(made.offers, std::vector<std::size_t>{0, 1}));
        // Nothing is bought that cannot be paid.
        if (made.machines > total()) {
            EXPECT_TRUE(!pool_.budget || pool_.budget->left_usd() > 0) << told;
            const double more = (made.machines - total()) * 0.5;
            EXPECT_TRUE(
                pool_.usd_per_hour_max <= 0 || costs() + more <= pool_.usd_per_hour_max + 1e-6
            ) << told;
        }
        if (pool_.budget && pool_.budget->left_usd() <= 0) {
            EXPECT_EQ(made.machines, 0) << told;
        }
        // Who works is let go for want of money alone.
        EXPECT_EQ(made.drains, pool_.budget && pool_.budget->left_usd() <= 0) << told;
        // Nothing flaps: what was wanted is kept for as long as it may idle.
        for (const auto& [at, machines] : grown_) {
            if (now_ - at < settings.idle_timeout && !is_poor) {
                EXPECT_GE(made.machines, std::min(total(), machines)) << told;
            }
        }
        if (made.machines > total() && total() > 0 && grew_at_ && made.why == Why::work) {
            EXPECT_GE(now_ - *grew_at_, settings.up_cooldown) << told;
        }
        if (made.machines > total()) {
            grown_.emplace_back(now_, made.machines);
            grew_at_ = now_;
        }
        // In a burst and the minute after it nothing shrinks.
        if (made.why == Why::burst) {
            burst_seen_ = now_;
        }
        if (burst_seen_ && now_ - *burst_seen_ < seconds(60) && !is_poor) {
            EXPECT_GE(made.machines, total()) << told;
        }
    }

    // As the planner does it: idle machines alone go, those that come before those that are there.
    void follow(const Decision& made) {
        while (total() < made.machines) {
            Machine machine;
            machine.ready_in_s = pick(10, 120);
            machine.usd_per_hour = 0.5;
            pool_.machines.push_back(machine);
        }
        int more = total() - made.machines;
        for (const bool is_ready : {false, true}) {
            std::erase_if(pool_.machines, [&](const Machine& machine) {
                const bool goes = more > 0 && machine.jobs == 0 && machine.is_ready == is_ready;
                more -= goes ? 1 : 0;
                return goes;
            });
        }
    }

    std::mt19937_64 chance_;
    PoolView pool_;
    Memory memory_;
    Time now_{Millis(1'700'000'000'000)};
    int burst_ = 0;
    bool has_budget_ = false;
    double limit_usd_ = 0;
    double spent_usd_ = 0;
    std::deque<std::pair<Time, int>> grown_;
    std::optional<Time> grew_at_;
    std::optional<Time> burst_seen_;
};

TEST(AutoscaleProperties, HoldInEveryHour) {
    constexpr std::uint64_t kHours = 300;
    for (std::uint64_t seed = 1; seed <= kHours && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Hour(seed).pass(1'800);
    }
}

}  // namespace
}  // namespace comfyd::autoscale
