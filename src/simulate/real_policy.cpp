#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "scheduler/prewarmer.hpp"
#include "scheduler/scheduler.hpp"
#include "simulate/policy.hpp"
#include "simulate/pressure_policy.hpp"

namespace comfyd::simulate {
namespace {

Time to_time(std::int64_t ms) {
    return Time(Millis(ms));
}

// The default without its knowledge of which jobs do the same, to show what that is worth.
constexpr std::string_view kWithoutContents = "no-results";

// Ids that sort as the jobs came.
JobId job_id(std::uint32_t job) {
    JobId id;
    for (std::size_t byte = 0; byte < 4; ++byte) {
        id.uuid.bytes[15 - byte] = static_cast<std::uint8_t>(job >> (8 * byte));
    }
    return id;
}
std::uint32_t job_of(const JobId& id) {
    std::uint32_t job = 0;
    for (std::size_t byte = 12; byte < 16; ++byte) {
        job = (job << 8U) | id.uuid.bytes[byte];
    }
    return job;
}

class RealPolicy final : public Policy {
public:
    RealPolicy(const Scene& scene, scheduler::Options options, bool knows_contents)
        : scene_(scene), scheduler_(scene.estimates, options), knows_contents_(knows_contents) {
        prewarmer_.pin(scene.pinned);
        for (std::uint32_t worker = 0; worker < scene.fleet.size(); ++worker) {
            ids_.push_back(worker_id(scene.fleet, worker));
            workers_.emplace(ids_.back(), worker);
            scheduler_.set_worker(state_of(worker, true));
        }
    }

    void add(std::uint32_t job, const std::vector<std::uint32_t>& failed_on) override {
        const TraceJob& from = scene_.trace.jobs[job];
        scheduler::JobKeys keys;
        keys.priority = from.priority;
        keys.batch = from.batch;
        keys.tenant = scene_.trace.tenants[from.tenant];
        keys.profile = scene_.trace.profiles[from.profile].profile;
        keys.queued_at = to_time(from.at_ms);
        keys.content = knows_contents_ ? from.content : 0;
        for (const std::uint32_t worker : failed_on) {
            keys.avoid.push_back(ids_[worker]);
        }
        scheduler_.add(job_id(job), std::move(keys));
    }

    std::optional<Action> next(std::int64_t now_ms) override {
        const auto decision = scheduler_.next(to_time(now_ms));
        if (!decision) {
            return std::nullopt;
        }
        Action action;
        action.worker = workers_.at(decision->worker);
        action.jobs.push_back(job_of(decision->job));
        for (const auto& other : decision->batched) {
            action.jobs.push_back(job_of(other.job));
        }
        action.profile = scene_.trace.jobs[action.jobs.front()].profile;
        return action;
    }

    std::optional<std::int64_t> wake_at() const override {
        const auto at = scheduler_.wake_at();
        return at ? std::optional(at->time_since_epoch().count()) : std::nullopt;
    }

    void finished(const Action& action, double gpu_seconds, std::int64_t now_ms) override {
        for (const std::uint32_t job : action.jobs) {
            scheduler_.finished(job_id(job), gpu_seconds, to_time(now_ms));
            if (scene_.prewarms) {  // as in the server, which loads what jobs that ran have loaded
                const TraceJob& ran = scene_.trace.jobs[job];
                prewarmer_.arrived(scene_.trace.profiles[ran.profile].profile, to_time(now_ms));
            }
        }
    }

    void set_up(std::uint32_t worker, bool up) override {
        scheduler_.set_worker(state_of(worker, up));
        if (!up) {
            scheduler_.forget_models(ids_[worker]);
        }
    }

    std::size_t waiting() const override { return scheduler_.size(); }

    std::vector<Action> prewarm(std::int64_t now_ms) override {
        std::vector<Action> actions;
        if (scene_.prewarms) {
            for (const auto& order : prewarmer_.look(scheduler_, to_time(now_ms))) {
                actions.push_back({workers_.at(order.worker), profile_of(order.profile), {}});
            }
        }
        return actions;
    }
    std::optional<std::int64_t> prewarms_at() const override {
        return scene_.prewarms ? std::optional(prewarmer_.next_look().time_since_epoch().count())
                               : std::nullopt;
    }
    void prewarmed(std::uint32_t worker, std::int64_t now_ms) override {
        prewarmer_.ended(ids_[worker], false, to_time(now_ms));
    }

private:
    scheduler::WorkerState state_of(std::uint32_t worker, bool up) const {
        const GpuType& type = scene_.fleet[worker];
        scheduler::WorkerState state;
        state.id = ids_[worker];
        state.gpu_type = type.name;
        state.vram_bytes = type.vram_bytes;
        state.model_memory_bytes = type.model_memory_bytes;
        state.available = up;
        state.merges = scene_.merge_max > 1;
        state.abilities = "all";
        return state;
    }

    std::uint32_t profile_of(const scheduler::ProfilePtr& profile) const {
        const auto found =
            std::ranges::find(scene_.trace.profiles, profile, &TraceProfile::profile);
        return static_cast<std::uint32_t>(found - scene_.trace.profiles.begin());
    }

    Scene scene_;
    std::vector<std::string> ids_;
    std::unordered_map<std::string, std::uint32_t> workers_;
    scheduler::Scheduler scheduler_;
    scheduler::Prewarmer prewarmer_;
    const bool knows_contents_;
};

}  // namespace

std::string worker_id(const Fleet& fleet, std::uint32_t worker) {
    return fleet[worker].name + "-" + std::to_string(worker + 1);
}

std::vector<std::string> policy_names() {
    return {"finish-time", "score", "fifo", "pressure", std::string(kWithoutContents)};
}

bool may_prewarm(std::string_view policy) {
    return scheduler::parse_policy(policy).has_value();
}

std::unique_ptr<Policy> make_policy(std::string_view name, const Scene& scene) {
    if (name == "pressure") {
        return std::make_unique<PressurePolicy>(scene);
    }
    const bool knows_contents = name != kWithoutContents;
    const auto policy = scheduler::parse_policy(knows_contents ? name : "finish-time");
    if (!policy) {
        return nullptr;
    }
    scheduler::Options options;
    options.policy = *policy;
    options.merge_max = scene.merge_max;
    return std::make_unique<RealPolicy>(scene, options, knows_contents);
}

}  // namespace comfyd::simulate
