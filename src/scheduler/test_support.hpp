// A table of estimates and a world in virtual time for the tests and the benchmark of the
// scheduler.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler::testing {

inline constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;
inline constexpr Time kStart{Millis(1'700'000'000'000)};

inline Time at(double seconds) {
    return kStart + Millis(static_cast<std::int64_t>(std::llround(seconds * 1000)));
}

// Ids that sort in the order in which they were made, without a clock.
inline JobId job_id(std::uint64_t number) {
    JobId id;
    for (std::size_t i = 0; i < 8; ++i) {
        id.uuid.bytes[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
    }
    const std::uint64_t low = number * 0x9E3779B97F4A7C15ULL;
    std::memcpy(id.uuid.bytes.data() + 8, &low, sizeof low);
    return id;
}

class TableEstimates final : public Estimates {
public:
    double run_seconds(const Profile& profile, const std::string& gpu_type) const override {
        const auto speed = speeds.find(gpu_type);
        return profile.heuristic_seconds / (speed == speeds.end() ? 1 : speed->second);
    }
    double load_seconds(const Model&, const std::string&, const std::string&) const override {
        return load_s;
    }
    std::uint64_t vram_bytes(const Profile& profile, const std::string&) const override {
        return profile.vram_bytes;
    }
    bool knows_runs(const Profile&, const std::string&) const override { return knows; }
    std::uint64_t version() const override { return 1; }

    std::map<std::string, double> speeds;
    double load_s = 20;
    bool knows = true;
};

inline ProfilePtr profile(
    const std::string& checkpoint, double run_s = 1, std::uint64_t vram = 6 * kGiB
) {
    auto made = std::make_shared<Profile>();
    made->requirement = Requirement::decode("KSampler");
    if (!checkpoint.empty()) {
        made->models.push_back({"checkpoint/" + checkpoint, 4 * kGiB});
    }
    made->shape = "shape of " + checkpoint + " " + std::to_string(run_s);
    made->heuristic_seconds = run_s;
    made->vram_bytes = vram;
    return made;
}

inline JobKeys keys(
    ProfilePtr of, Time queued_at, int priority = 5, const std::string& tenant = "a"
) {
    JobKeys made;
    made.priority = priority;
    made.tenant = tenant;
    made.profile = std::move(of);
    made.queued_at = queued_at;
    return made;
}

inline WorkerState worker(const std::string& id, const std::string& gpu_type = "A") {
    WorkerState state;
    state.id = id;
    state.gpu_type = gpu_type;
    state.vram_bytes = 24 * kGiB;
    state.abilities = "all";
    return state;
}

// Runs what the scheduler decides, exactly as long as expected unless told otherwise.
class World {
public:
    struct Placed {
        Decision decision;
        double start_s = 0;
        double end_s = 0;
    };

    explicit World(Scheduler& scheduler) : scheduler_(scheduler) {}

    double now_s = 0;
    std::vector<Placed> placed;
    std::function<double(const Decision&)> lasts;  // seconds, load included
    std::function<void(const Decision&)> on_finished;

    void submit_at(double seconds, JobId job, JobKeys job_keys) {
        job_keys.queued_at = at(seconds);
        arrivals_.emplace(seconds, std::pair(job, std::move(job_keys)));
    }

    void place() {
        while (auto decision = scheduler_.next(at(now_s))) {
            const double seconds =
                lasts ? lasts(*decision) : decision->numbers.load_s + decision->numbers.run_s;
            ends_.emplace(now_s + seconds, placed.size());
            placed.push_back({std::move(*decision), now_s, now_s + seconds});
        }
    }

    // Until nothing runs or waits any more, or the time is over.
    void run(double until_s = 1e9) {
        place();
        for (;;) {
            const double arrival = arrivals_.empty() ? 1e18 : arrivals_.begin()->first;
            const double end = ends_.empty() ? 1e18 : ends_.begin()->first;
            const auto wake = scheduler_.wake_at();
            const double woken =
                wake ? std::max(now_s, static_cast<double>((*wake - kStart).count()) / 1000.0)
                     : 1e18;
            const double next = std::min({arrival, end, woken});
            if (next > until_s || next > 1e17) {
                break;
            }
            now_s = next;
            while (!arrivals_.empty() && arrivals_.begin()->first <= now_s) {
                auto& [job, job_keys] = arrivals_.begin()->second;
                scheduler_.add(job, std::move(job_keys));
                arrivals_.erase(arrivals_.begin());
            }
            while (!ends_.empty() && ends_.begin()->first <= now_s) {
                const Placed& done = placed[ends_.begin()->second];
                ends_.erase(ends_.begin());
                const double seconds = done.end_s - done.start_s;
                scheduler_.finished(done.decision.job, seconds, at(now_s));
                for (const auto& rider : done.decision.riders) {
                    scheduler_.finished(rider.job, seconds, at(now_s));
                }
                if (on_finished) {
                    on_finished(done.decision);
                }
            }
            place();
        }
    }

    bool is_idle() const { return ends_.empty(); }

private:
    Scheduler& scheduler_;
    std::multimap<double, std::pair<JobId, JobKeys>> arrivals_;
    std::multimap<double, std::size_t> ends_;
};

}  // namespace comfyd::scheduler::testing
