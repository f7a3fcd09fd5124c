// The answers. predictor_learning.cpp makes them better, predictor_json.cpp keeps them.
#include "scheduler/predictor.hpp"

#include <algorithm>
#include <cmath>

#include "scheduler/predictor_keys.hpp"

namespace comfyd::scheduler {
namespace {

constexpr double kLoadSecondsPerByte = 1 / 1.5e9;  // until anything was loaded
constexpr double kLoadSecondsMin = 0.001;
constexpr double kSimilarityMin = 0.7;

// Standard deviations of the logarithm: what is never known, however many samples agree.
constexpr double kOneSample = 0.25;
constexpr double kMixedSample = 0.5;
constexpr double kOtherGpu = 0.2;
constexpr double kOtherGpuUnknown = 0.7;
constexpr double kSimilar = 0.35;
constexpr double kHeuristicLearned = 0.5;
constexpr double kHeuristic = 1.0;

template <class Recent>
double deviation(const Recent& recent, double floor) {
    return std::hypot(
               recent.spread(), kOneSample / std::sqrt(static_cast<double>(recent.count()))
           ) +
           floor;
}

Expectation expectation(double log_seconds, double log_deviation, Basis basis) {
    return {std::exp(log_seconds), std::expm1(std::min(log_deviation, 5.0)), basis};
}

double jaccard(const std::vector<std::uint64_t>& left, const std::vector<std::uint64_t>& right) {
    std::size_t common = 0;
    for (std::size_t l = 0, r = 0; l < left.size() && r < right.size();) {
        common += left[l] == right[r] ? 1U : 0U;
        const bool left_is_smaller = left[l] <= right[r];
        r += left[l] >= right[r] ? 1U : 0U;
        l += left_is_smaller ? 1U : 0U;
    }
    const std::size_t all = left.size() + right.size() - common;
    return all == 0 ? 0 : static_cast<double>(common) / static_cast<double>(all);
}

}  // namespace

std::string_view to_string(Basis basis) {
    switch (basis) {
        case Basis::history:
            return "history";
        case Basis::other_gpu:
            return "other_gpu";
        case Basis::similar:
            return "similar";
        case Basis::heuristic:
            return "heuristic";
    }
    return "heuristic";
}

Predictor::Predictor() : Predictor(Limits()) {}
Predictor::Predictor(const Limits& limits)
    : limits_(limits),
      shapes_(limits.shapes),
      class_sets_(limits.class_sets),
      gpu_types_(limits.gpu_types),
      loads_(limits.loads),
      load_rates_(limits.workers) {}

std::vector<std::string> Predictor::gpu_types() const {
    std::vector<std::string> types;
    for (const auto& [name, type] : gpu_types_.entries()) {
        types.push_back(name);
    }
    return types;
}

std::map<std::string, double> Predictor::gpu_speeds() const {
    std::map<std::string, double> speeds;
    const std::vector<std::string> types = gpu_types();
    for (const std::string& type : types) {
        if (type == types.front()) {
            speeds[type] = 1;
        } else if (const auto ratio = log_ratio(type, types.front())) {
            speeds[type] = std::exp(-ratio->first);
        }
    }
    return speeds;
}

const Predictor::OnGpu* Predictor::find_on(const Shape& shape, std::string_view gpu_type) {
    const auto found = std::ranges::find(shape.on, gpu_type, &OnGpu::gpu_type);
    return found == shape.on.end() ? nullptr : &*found;
}

double Predictor::run_seconds(const Profile& profile, const std::string& gpu_type) const {
    return expect_run(profile, gpu_type).seconds;
}

Expectation Predictor::expect_run(const Profile& profile, std::string_view gpu_type) const {
    if (const Shape* shape = profile.shape.empty() ? nullptr : shapes_.find(profile.shape)) {
        const OnGpu* here = find_on(*shape, gpu_type);
        if (here != nullptr && !here->log_seconds.empty()) {
            return expectation(
                here->log_seconds.median(),
                deviation(here->log_seconds, here->mixed ? kMixedSample : 0),
                Basis::history
            );
        }
        if (const auto merged = here == nullptr ? std::nullopt : here->batches.alone_seconds()) {
            return expectation(std::log(*merged), kMixedSample, Basis::history);
        }
        if (const auto elsewhere = from_other_gpu(*shape, gpu_type)) {
            return *elsewhere;
        }
    }
    if (const auto similar = from_similar(profile, gpu_type)) {
        return *similar;
    }
    return from_heuristic(profile, gpu_type);
}

std::optional<Expectation> Predictor::from_other_gpu(const Shape& shape, std::string_view gpu_type)
    const {
    std::optional<Expectation> best;
    for (const OnGpu& other : shape.on) {
        if (other.log_seconds.empty()) {
            continue;
        }
        const auto ratio = log_ratio(gpu_type, other.gpu_type);
        const double unsure = std::hypot(
                                  deviation(other.log_seconds, other.mixed ? kMixedSample : 0),
                                  ratio ? ratio->second : kOtherGpuUnknown
                              ) +
                              kOtherGpu;
        const auto made = expectation(
            other.log_seconds.median() + (ratio ? ratio->first : 0), unsure, Basis::other_gpu
        );
        if (!best || made.relative_error < best->relative_error) {
            best = made;
        }
    }
    return best;
}

// The logarithm of how many times as long a run takes on the one as on the other, and how sure that
// is.
std::optional<std::pair<double, double>> Predictor::log_ratio(
    std::string_view gpu_type, std::string_view other
) const {
    const GpuType* here = gpu_types_.find(gpu_type);
    const GpuType* there = gpu_types_.find(other);
    const auto direct = [](const GpuType* of, std::string_view against) {
        const auto* found = of == nullptr ? nullptr : find_entry(of->log_ratios, against);
        return found == nullptr || found->empty() ? nullptr : found;
    };
    if (const auto* ratio = direct(here, other)) {
        return std::pair(ratio->median(), deviation(*ratio, 0));
    }
    if (const auto* ratio = direct(there, gpu_type)) {
        return std::pair(-ratio->median(), deviation(*ratio, 0));
    }
    if (here == nullptr || there == nullptr || here->log_factor.empty() ||
        there->log_factor.empty()) {
        return std::nullopt;
    }
    return std::pair(
        here->log_factor.median() - there->log_factor.median(),
        std::hypot(deviation(here->log_factor, 0), deviation(there->log_factor, 0))
    );
}

std::optional<Expectation> Predictor::from_similar(
    const Profile& profile, std::string_view gpu_type
) const {
    if (profile.work_units <= 0) {
        return std::nullopt;
    }
    const std::vector<std::uint64_t> classes = hashed_classes(profile.requirement);
    const Recent* best = nullptr;
    double best_similarity = kSimilarityMin;
    for (const auto& [key, set] : class_sets_.entries()) {
        const Recent* rate = find_entry(set.log_rates, gpu_type);
        if (rate == nullptr || rate->empty()) {
            continue;
        }
        const double similarity = jaccard(classes, set.classes);
        if (similarity > best_similarity ||
            (best != nullptr && similarity == best_similarity && rate->count() > best->count())) {
            best = rate;
            best_similarity = similarity;
        }
    }
    if (best == nullptr) {
        return std::nullopt;
    }
    return expectation(
        best->median() + std::log(profile.work_units),
        deviation(*best, kSimilar + (1 - best_similarity)),
        Basis::similar
    );
}

Expectation Predictor::from_heuristic(const Profile& profile, std::string_view gpu_type) const {
    const double log_seconds = std::log(std::max(profile.heuristic_seconds, 1e-3));
    const GpuType* type = gpu_types_.find(gpu_type);
    if (type == nullptr || type->log_factor.empty()) {
        return expectation(log_seconds, kHeuristic, Basis::heuristic);
    }
    return expectation(
        log_seconds + type->log_factor.median(),
        deviation(type->log_factor, kHeuristicLearned),
        Basis::heuristic
    );
}

bool Predictor::knows_runs(const Profile& profile, const std::string& gpu_type) const {
    if (profile.shape.empty()) {
        return false;
    }
    const GpuType* type = gpu_types_.find(gpu_type);
    return (type != nullptr && !type->log_factor.empty()) ||
           expect_run(profile, gpu_type).basis != Basis::heuristic;
}

double Predictor::load_seconds(
    const Model& model, const std::string& gpu_type, const std::string& worker
) const {
    for (const std::string& key :
         {load_key(worker, model.name), load_key(type_key(gpu_type), model.name)}) {
        const Recent* known = loads_.find(key);
        if (known != nullptr && !known->empty()) {
            return std::exp(known->median());
        }
    }
    const auto bytes = static_cast<double>(model.bytes);
    for (const std::string& key : {worker, type_key(gpu_type)}) {
        const Recent* rate = load_rates_.find(key);
        if (rate != nullptr && !rate->empty()) {
            return std::max(bytes * std::exp(rate->median()), kLoadSecondsMin);
        }
    }
    return std::max(bytes * kLoadSecondsPerByte, kLoadSecondsMin);
}

std::uint64_t Predictor::vram_bytes(const Profile& profile, const std::string& gpu_type) const {
    const Shape* shape = profile.shape.empty() ? nullptr : shapes_.find(profile.shape);
    if (shape == nullptr) {
        return profile.vram_bytes;
    }
    const OnGpu* here = find_on(*shape, gpu_type);
    if (here != nullptr && here->vram > 0) {
        return static_cast<std::uint64_t>(here->vram);
    }
    // The need hardly depends on the type: what another one taught is better than the estimate.
    double most = 0;
    for (const OnGpu& other : shape->on) {
        most = std::max(most, other.vram);
    }
    return most > 0 ? static_cast<std::uint64_t>(most) : profile.vram_bytes;
}

double Predictor::batch_seconds(const Profile& profile, const std::string& gpu_type, int jobs)
    const {
    const Shape* shape = profile.shape.empty() ? nullptr : shapes_.find(profile.shape);
    const OnGpu* here = shape == nullptr ? nullptr : find_on(*shape, gpu_type);
    const double alone_s = run_seconds(profile, gpu_type);
    return here == nullptr ? BatchTimes().seconds(jobs, alone_s)
                           : here->batches.seconds(jobs, alone_s);
}

std::uint64_t Predictor::batched_bytes(const Profile& profile, const std::string& gpu_type) const {
    const Shape* shape = profile.shape.empty() ? nullptr : shapes_.find(profile.shape);
    const OnGpu* here = shape == nullptr ? nullptr : find_on(*shape, gpu_type);
    return here != nullptr && here->batched_vram > 0
               ? static_cast<std::uint64_t>(here->batched_vram)
               : Estimates::batched_bytes(profile, gpu_type);
}

Expectation remaining_time(const Expectation& whole, double elapsed_s, double progress) {
    const double done = std::clamp(std::isfinite(progress) ? progress : 0.0, 0.0, 0.999);
    const double elapsed = std::max(std::isfinite(elapsed_s) ? elapsed_s : 0.0, 0.0);
    Expectation left = whole;
    double total = std::max(whole.seconds, 1e-3);
    if (done > 0.001 && elapsed > 0) {
        // What the run itself contradicts counts less.
        const double contradiction = std::abs(std::log(elapsed / done / total)) * done;
        const double expected_deviation =
            std::hypot(std::max(std::log1p(whole.relative_error), 0.02), contradiction);
        const double pace_deviation = 0.03 + 0.4 * (1 - done) / std::sqrt(done);
        const double expected_weight = 1 / (expected_deviation * expected_deviation);
        const double pace_weight = 1 / (pace_deviation * pace_deviation);
        const double weights = expected_weight + pace_weight;
        total = std::exp(
            (std::log(total) * expected_weight + std::log(elapsed / done) * pace_weight) / weights
        );
        left.relative_error = std::expm1(1 / std::sqrt(weights));
    }
    // A run that takes longer than it should is still not at its end before its progress is.
    left.seconds = std::max(total - elapsed, 0.5 * total * (1 - done));
    return left;
}

}  // namespace comfyd::scheduler
