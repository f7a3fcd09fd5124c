#include "app/prewarm_study.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/config/part_options.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr std::chrono::hours kPast{7 * 24};
constexpr std::size_t kJobsMax = 20'000;  // the newest
constexpr std::chrono::seconds kFirst{60};
// Bytes per second at which this type of GPU loads models.
double load_rate(
    const scheduler::Predictor& predictor,
    const std::map<std::string, std::uint64_t>& models,
    const std::string& gpu_type
) {
    constexpr double kUsual = 1.5e9;  // where nothing was learned
    double bytes = 0;
    double seconds = 0;
    for (const auto& [name, size] : models) {
        bytes += static_cast<double>(size);
        seconds += predictor.load_seconds({name, size}, gpu_type, {});
    }
    return seconds > 0 && bytes > 0 ? bytes / seconds : kUsual;
}

const std::string kOwnDomain = "main";

void let_others_go_first() {
    constexpr int kLeast = 19;
    ::pthread_setname_np(::pthread_self(), "study");
    static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLeast));
}

}  // namespace

PrewarmStudy::PrewarmStudy(const Parts& parts, std::filesystem::path data)
    : p_(parts), data_(std::move(data)), tasks_(parts.core) {}

void PrewarmStudy::start() {
    set(p_.config.scheduler_prewarm == Config::Prewarm::on);
    if (p_.config.scheduler_prewarm != Config::Prewarm::off && !data_.empty()) {
        tasks_.spawn("replays of past jobs", keep_studying());
    }
}

Task<> PrewarmStudy::stop() {
    is_over_ = true;
    tasks_.cancel();
    co_await tasks_.join();
}

void PrewarmStudy::set(bool is_on) {
    is_on_ = is_on;
    const auto& pinned = p_.config.scheduler_prewarm_models;
    p_.jobs.set_prewarming({is_on, {pinned.begin(), pinned.end()}});
}

Task<> PrewarmStudy::keep_studying() {
    const Millis every = std::chrono::seconds(p_.config.scheduler_prewarm_replay_s);
    bool goes_on = co_await sleep_for(std::min<Millis>(every, kFirst));
    while (goes_on) {
        co_await study();
        goes_on = co_await sleep_for(every);
    }
}

Task<> PrewarmStudy::study() {
    const Time now = p_.clock.now();
    simulate::GpuType own;  // times are compared with times of the same workers
    own.name = "own";
    auto past = co_await thread_.run([this, now, own] {
        let_others_go_first();
        return record_past(data_, now - kPast, now + Millis(1), own, kJobsMax, [this] {
            return !is_over_.load();
        });
    });
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return;
    }
    if (!past) {
        log::warning("past jobs could not be read", {{"error", past.error().message}});
        co_return;
    }
    p_.jobs.remember_kinds(kOwnDomain, past->kinds);
    simulate::Fleet fleet = fleet_for(past->trace);
    const bool decides = p_.config.scheduler_prewarm == Config::Prewarm::automatic;
    if (!decides || fleet.empty() || past->trace.jobs.empty()) {
        co_return;
    }
    const jobs::ServiceOptions options = service_options(p_.config);
    simulate::Settings settings;
    settings.merge_max = options.scheduling.merge_max;
    settings.load_jitter = 0;  // chance must not decide
    const auto& pinned = p_.config.scheduler_prewarm_models;
    settings.pinned = {pinned.begin(), pinned.end()};
    const std::string policy(scheduler::to_string(options.scheduling.policy));
    auto gain = co_await thread_.run(
        [this, trace = std::move(past->trace), fleet = std::move(fleet), policy, settings] {
            return find_prewarm_gain(trace, fleet, policy, settings, [this](std::uint64_t) {
                return !is_over_.load();
            });
        }
    );
    const bool is_over = co_await is_cancelled();
    if (is_over || !gain) {
        co_return;
    }
    if (told_ != gain->is_gain()) {
        told_ = gain->is_gain();
        log::info("past jobs were replayed", {{"prewarm", gain->sentence()}});
    }
    set(gain->is_gain());
}

// What is compared is the same workers with themselves: that one GPU is faster than another does
// not count. A load takes as long as loads took.
simulate::Fleet PrewarmStudy::fleet_for(const simulate::Trace& trace) const {
    std::map<std::string, std::uint64_t> models;
    for (const simulate::TraceProfile& profile : trace.profiles) {
        for (const scheduler::Model& model : profile.profile->models) {
            models[model.name] = model.bytes;
        }
    }
    std::map<std::string, double> rates;  // of loads, by type of GPU
    simulate::Fleet fleet;
    for (const auto& office : p_.offices()) {
        for (const auto& worker : office->fleet().workers()) {
            const jobs::WorkerInfo info = worker->info();
            if (info.url == "engine:" || info.status == jobs::WorkerStatus::down) {
                continue;
            }
            simulate::GpuType& type = fleet.emplace_back();
            type.name = info.gpu;
            type.vram_bytes = info.vram_total;
            type.model_memory_bytes = info.model_memory_bytes;
            const auto [rate, is_new] = rates.emplace(info.gpu, 0);
            if (is_new) {
                rate->second = load_rate(p_.jobs.predictor(), models, info.gpu);
            }
            type.load_bytes_per_second = rate->second;
        }
    }
    return fleet;
}

void PrewarmStudy::collect(observe::Metrics::Gauges& gauges) const {
    gauges.set(
        "comfyd_prewarm_on", "1 while idle workers load models ahead of jobs.", {}, is_on_ ? 1 : 0
    );
}

}  // namespace comfyd::app
