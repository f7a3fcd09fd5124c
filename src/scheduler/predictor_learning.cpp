// What a finished run changes.
#include <algorithm>
#include <cmath>

#include "scheduler/predictor.hpp"
#include "scheduler/predictor_keys.hpp"

namespace comfyd::scheduler {
namespace {

constexpr double kSecondsMax = 7 * 24 * 3600.0;
constexpr double kVramMax = 1e13;
constexpr double kMemoryRaise = 1.25;  // after a run was out of memory
constexpr double kMemoryLowering =
    0.1;                                // share of the difference that one measured peak takes away
constexpr double kMemoryMargin = 1.05;  // above a measured peak
constexpr double kBatchedBytesMin = 1e6;  // where a merged run seems to need no more than one job
// A load and a run that are known explain a time up to so many times their sum.
constexpr double kExplained = 2;
constexpr double kNotableLoad = 0.1;  // of a run's time, where it is not known what the rest is
constexpr double kLeastPart = 0.02;   // of a run's time that a load took
constexpr double kNoticeable = 0.1;   // of a logarithm: changes that others should hear of

bool is_time(double seconds) {
    return std::isfinite(seconds) && seconds > 0 && seconds <= kSecondsMax;
}

// More memory than was believed is believed at once, less little by little.
double moved_towards(double believed, double measured) {
    return measured >= believed ? measured : believed + (measured - believed) * kMemoryLowering;
}

double beyond(double whole, double run) {
    return std::max(whole - run, kLeastPart * whole);
}

bool differs(double before, double after) {
    return std::abs(std::log(std::max(after, 1e-9) / std::max(before, 1e-9))) > kNoticeable;
}

}  // namespace

void Predictor::learn(const RunReport& report) {
    if (!is_time(report.seconds)) {
        return;
    }
    ++learned_;
    if (report.jobs > 1) {
        learn_batch(report);
        return;
    }
    if (report.loaded.empty()) {
        learn_run(report, report.seconds, false);
    } else if (report.load_seconds && says_where_time_went(report)) {
        const double load = std::clamp(*report.load_seconds, 0.0, report.seconds);
        learn_loads(report, load, true);
        learn_run(report, report.seconds - load, false);
    } else {
        learn_mixed(report);
    }
    if (report.peak_vram_bytes && *report.peak_vram_bytes > 0) {
        learn_peak(report.profile, report.gpu_type, static_cast<double>(*report.peak_vram_bytes));
    }
}

// Some workers load in a node that is no loader, or tell of all their nodes at once: what was
// measured is then a small part of the load.
bool Predictor::says_where_time_went(const RunReport& report) const {
    const double load = *report.load_seconds;
    const auto run = clean_run(report);
    return run ? report.seconds <= kExplained * (*run + load)
               : load >= kNotableLoad * report.seconds;
}

// Of the same shape on the same type of GPU, with all models in memory.
std::optional<double> Predictor::clean_run(const RunReport& report) const {
    const Shape* shape = shapes_.find(report.profile.shape);
    const OnGpu* here = shape == nullptr ? nullptr : find_on(*shape, report.gpu_type);
    const bool is_known = here != nullptr && !here->log_seconds.empty() && !here->mixed;
    return is_known ? std::optional(std::exp(here->log_seconds.median())) : std::nullopt;
}

// One number for two unknowns: what is better known is taken as it is, the rest is the other's.
void Predictor::learn_mixed(const RunReport& report) {
    if (const auto run = clean_run(report)) {
        learn_loads(report, beyond(report.seconds, *run), true);
        return;
    }
    double expected_load = 0;
    for (const Model& model : report.loaded) {
        expected_load += load_seconds(model, report.gpu_type, report.worker);
    }
    const double run = expect_run(report.profile, report.gpu_type).seconds;
    const double scale = report.seconds / (run + expected_load);
    learn_run(report, run * scale, true);
    learn_loads(report, expected_load * scale, false);
    if (report.profile.shape.empty()) {
        return;
    }
    auto& unsettled = use_on(report.profile.shape, report.gpu_type).unsettled;
    if (unsettled.size() < kRecent) {
        unsettled.push_back({report.worker, report.loaded, report.seconds});
    }
}

// Once a run without loads has come, what was guessed of earlier loads is known.
void Predictor::settle(
    const RunReport& clean, double clean_seconds, std::vector<Unsettled> guessed
) {
    for (const Unsettled& earlier : guessed) {
        for (const Model& model : earlier.loaded) {
            loads_.use(load_key(earlier.worker, model.name)).clear();
            loads_.use(load_key(type_key(clean.gpu_type), model.name)).clear();
        }
    }
    for (Unsettled& earlier : guessed) {
        RunReport then{
            clean.profile, clean.gpu_type, std::move(earlier.worker), earlier.seconds, {}
        };
        then.loaded = std::move(earlier.loaded);
        learn_loads(then, beyond(earlier.seconds, clean_seconds), true);
    }
}

// Many small steps in one direction are heard of as well.
void Predictor::tell(double& told, double now) {
    if (differs(told, now)) {
        told = now;
        ++version_;
    }
}

void Predictor::learn_run(const RunReport& report, double seconds, bool mixed) {
    if (!is_time(seconds)) {
        return;
    }
    const Profile& profile = report.profile;
    const double log_seconds = std::log(seconds);
    const double before = expect_run(profile, report.gpu_type).seconds;
    std::vector<Unsettled> guessed;
    if (!profile.shape.empty()) {
        OnGpu& here = use_on(profile.shape, report.gpu_type);
        if (here.mixed && !mixed) {
            here.log_seconds.clear();
            here.mixed = false;
            guessed = std::exchange(here.unsettled, {});
        }
        here.told_seconds = here.told_seconds > 0 ? here.told_seconds : before;
        here.log_seconds.add(log_seconds);
        tell(here.told_seconds, std::exp(here.log_seconds.median()));
        if (!mixed) {
            learn_ratios(*shapes_.find(profile.shape), report.gpu_type, log_seconds);
        }
    }
    if (!mixed) {
        learn_similar(profile, report.gpu_type, log_seconds);
        if (profile.heuristic_seconds > 0) {
            gpu_types_.use(report.gpu_type)
                .log_factor.add(log_seconds - std::log(profile.heuristic_seconds));
        }
    }
    if (profile.shape.empty()) {
        version_ += differs(before, expect_run(profile, report.gpu_type).seconds) ? 1U : 0U;
    }
    settle(report, seconds, std::move(guessed));
}

Predictor::OnGpu& Predictor::use_on(std::string_view shape, std::string_view gpu_type) {
    std::vector<OnGpu>& on = shapes_.use(shape).on;
    const auto found = std::ranges::find(on, gpu_type, &OnGpu::gpu_type);
    if (found != on.end()) {
        return *found;
    }
    if (on.size() >= limits_.gpu_types) {
        on.erase(on.begin());
    }
    OnGpu made;
    made.gpu_type = gpu_type;
    return on.emplace_back(std::move(made));
}

void Predictor::learn_ratios(const Shape& shape, const std::string& gpu_type, double log_seconds) {
    for (const OnGpu& other : shape.on) {
        if (other.gpu_type != gpu_type && !other.mixed && !other.log_seconds.empty()) {
            use_entry(gpu_types_.use(gpu_type).log_ratios, other.gpu_type, limits_.gpu_types)
                .add(log_seconds - other.log_seconds.median());
        }
    }
}

void Predictor::learn_similar(
    const Profile& profile, const std::string& gpu_type, double log_seconds
) {
    std::vector<std::uint64_t> classes = hashed_classes(profile.requirement);
    if (profile.work_units <= 0 || classes.empty()) {
        return;
    }
    ClassSet& set = class_sets_.use(class_set_key(classes));
    set.classes = std::move(classes);
    use_entry(set.log_rates, gpu_type, limits_.gpu_types)
        .add(log_seconds - std::log(profile.work_units));
}

void Predictor::learn_loads(const RunReport& report, double seconds, bool is_known) {
    if (!is_time(seconds)) {
        return;
    }
    double expected = 0;
    double bytes = 0;
    for (const Model& model : report.loaded) {
        expected += load_seconds(model, report.gpu_type, report.worker);
        bytes += static_cast<double>(model.bytes);
    }
    bool changed = false;
    const double scale = seconds / expected;
    const std::string type = type_key(report.gpu_type);
    for (const Model& model : report.loaded) {
        const double before = load_seconds(model, report.gpu_type, report.worker);
        const double log_share = std::log(before * scale);
        loads_.use(load_key(report.worker, model.name)).add(log_share);
        loads_.use(load_key(type, model.name)).add(log_share);
        changed |= differs(before, load_seconds(model, report.gpu_type, report.worker));
    }
    if (bytes > 0 && is_known) {
        load_rates_.use(report.worker).add(std::log(seconds / bytes));
        load_rates_.use(type).add(std::log(seconds / bytes));
    }
    version_ += changed ? 1U : 0U;
}

void Predictor::learn_peak(const Profile& profile, const std::string& gpu_type, double bytes) {
    if (profile.shape.empty() || bytes > kVramMax) {
        return;
    }
    const auto before = static_cast<double>(vram_bytes(profile, gpu_type));
    OnGpu& here = use_on(profile.shape, gpu_type);
    if (here.vram <= 0) {
        here.vram = before;
    }
    here.told_vram = here.told_vram > 0 ? here.told_vram : before;
    here.vram = moved_towards(here.vram, bytes * kMemoryMargin);
    tell(here.told_vram, here.vram);
}

// What a job takes among others says nothing of what it takes alone, and the other way round.
void Predictor::learn_batch(const RunReport& report) {
    const Profile& profile = report.profile;
    if (profile.shape.empty()) {
        return;
    }
    const double alone_bytes = static_cast<double>(vram_bytes(profile, report.gpu_type));
    const double batched_before = static_cast<double>(batched_bytes(profile, report.gpu_type));
    OnGpu& here = use_on(profile.shape, report.gpu_type);
    gpu_types_.use(report.gpu_type);
    if (report.loaded.empty() || report.load_seconds) {
        here.batches.learn(report.jobs, report.seconds - report.load_seconds.value_or(0));
        ++version_;  // such runs are rare enough
    }
    const auto peak = static_cast<double>(report.peak_vram_bytes.value_or(0));
    if (peak > 0 && peak < kVramMax) {
        const double each = (peak * kMemoryMargin - alone_bytes) / (report.jobs - 1);
        here.told_batched_vram =
            here.told_batched_vram > 0 ? here.told_batched_vram : batched_before;
        here.batched_vram = moved_towards(batched_before, std::max(each, kBatchedBytesMin));
        tell(here.told_batched_vram, here.batched_vram);
    }
}

void Predictor::learn_out_of_memory(
    const Profile& profile, std::string_view gpu_type, std::uint64_t at_least
) {
    if (profile.shape.empty()) {
        return;
    }
    const auto believed = static_cast<double>(vram_bytes(profile, std::string(gpu_type)));
    OnGpu& here = use_on(profile.shape, gpu_type);
    const auto estimated = static_cast<double>(profile.vram_bytes);
    const double raised = std::max(believed, estimated) * kMemoryRaise;
    here.vram = std::min(std::max(raised, static_cast<double>(at_least)), kVramMax);
    here.told_vram = here.vram;
    ++version_;
    ++learned_;
}

}  // namespace comfyd::scheduler
