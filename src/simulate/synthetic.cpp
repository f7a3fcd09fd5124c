#include "simulate/synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

#include "simulate/random.hpp"

namespace comfyd::simulate {
namespace {

constexpr double kHeuristicError = 0.5;  // of its logarithm
constexpr std::size_t kRecent = 20;      // jobs that are asked for again
constexpr double kUnitSeconds = 0.05;    // what the plan of a workflow assumes for a unit of work

// Where a number from 0 to 1 falls among parts of the given sizes.
class Shares {
public:
    Shares(std::size_t count, double exponent) {
        double sum = 0;
        for (std::size_t at = 0; at < count; ++at) {
            sum += std::pow(static_cast<double>(at + 1), -exponent);
            sums_.push_back(sum);
        }
    }
    std::uint32_t pick(Random& random) const {
        const double at = random.uniform() * sums_.back();
        const auto found = std::ranges::upper_bound(sums_, at);
        return static_cast<std::uint32_t>(
            std::min<std::ptrdiff_t>(found - sums_.begin(), std::ssize(sums_) - 1)
        );
    }

private:
    std::vector<double> sums_;
};

class Maker {
public:
    explicit Maker(const SyntheticOptions& options)
        : options_(options),
          random_(options.seed),
          models_(options.models, options.zipf),
          tenants_(options.tenants, 1) {}

    Trace run() {
        for (std::size_t model = 0; model < options_.models; ++model) {
            for (std::size_t size = 0; size < options_.sizes; ++size) {
                trace_.profiles.push_back(make_profile(model, size));
            }
        }
        for (std::size_t tenant = 0; tenant < options_.tenants; ++tenant) {
            trace_.tenants.push_back("tenant-" + std::to_string(tenant + 1));
        }
        trace_.jobs.reserve(options_.jobs);
        double now = 0;
        while (trace_.jobs.size() < options_.jobs) {
            if (options_.arrivals == Arrivals::bursty) {
                now += random_.exponential(options_.burst / options_.rate);
                add_burst(now);
            } else {
                const bool at_once = options_.arrivals == Arrivals::at_once;
                now += at_once ? 0 : random_.exponential(1 / options_.rate);
                add_job(now, models_.pick(random_), tenants_.pick(random_), pick_priority());
            }
        }
        sort_jobs(trace_.jobs);
        return std::move(trace_);
    }

private:
    struct Urgency {
        int priority;
        bool batch;
    };

    TraceProfile make_profile(std::size_t model, std::size_t size) {
        TraceProfile made;
        // Twice the work with every size, and as much less so that the mean stays what was asked
        // for.
        double mean = 0;
        for (std::size_t at = 0; at < options_.sizes; ++at) {
            mean += std::pow(2.0, static_cast<double>(at)) / static_cast<double>(options_.sizes);
        }
        made.kept_part = options_.kept_part;
        made.seconds = options_.seconds * std::pow(2.0, static_cast<double>(size)) / mean;
        scheduler::Profile profile;
        const std::string number = std::to_string(model + 1);
        const auto bytes = static_cast<std::uint64_t>(options_.model_gb * 1e9);
        profile.requirement = Requirement::of(
            {{"CLIPTextEncode"},
             {"CheckpointLoaderSimple"},
             {"EmptyLatentImage"},
             {"KSampler"},
             {"SaveImage"},
             {"VAEDecode"}}
        );
        profile.models = {{"checkpoint/model-" + number + ".safetensors", bytes}};
        profile.shape = "model-" + number + "/" + std::to_string(size + 1);
        profile.work_units = made.seconds / kUnitSeconds;
        // Nobody's guess is as good as that of the one who makes the times up.
        profile.heuristic_seconds = made.seconds * std::exp(kHeuristicError * random_.normal());
        profile.vram_bytes =
            bytes + static_cast<std::uint64_t>(1e9 * std::pow(2.0, static_cast<double>(size)));
        profile.can_be_merged = true;
        made.profile = std::make_shared<const scheduler::Profile>(std::move(profile));
        return made;
    }

    Urgency pick_priority() {
        const double at = random_.uniform();
        const auto one_of_three = static_cast<int>(random_.uniform() * 3);
        if (at < options_.high) {
            return {8 + one_of_three, false};
        }
        if (at < options_.high + options_.low) {
            return {1 + one_of_three, false};
        }
        return {5, at < options_.high + options_.low + options_.batch};
    }

    void add_burst(double now) {
        const auto size = static_cast<std::size_t>(1 + random_.exponential(options_.burst - 1));
        const std::uint32_t model = models_.pick(random_);
        const std::uint32_t tenant = tenants_.pick(random_);
        const Urgency urgency = pick_priority();
        for (std::size_t at = 0; at < size && trace_.jobs.size() < options_.jobs; ++at) {
            now += random_.exponential(0.05);
            add_job(now, model, tenant, urgency);
        }
    }

    void add_job(double now, std::uint32_t model, std::uint32_t tenant, Urgency urgency) {
        const auto size =
            static_cast<std::uint32_t>(random_.uniform() * static_cast<double>(options_.sizes));
        TraceJob job;
        job.at_ms = static_cast<std::int64_t>(now * 1000);
        job.profile = model * static_cast<std::uint32_t>(options_.sizes) + size;
        job.tenant = tenant;
        job.priority = static_cast<std::uint8_t>(urgency.priority);
        job.batch = urgency.batch;
        job.factor = static_cast<float>(std::exp(options_.noise * random_.normal()));
        if (options_.repeats > 0) {
            repeat_or_begin(job);
        }
        trace_.jobs.push_back(job);
    }

    // Whoever asks again does so soon: for one of the latest.
    void repeat_or_begin(TraceJob& job) {
        if (random_.uniform() < options_.repeats && !recent_.empty()) {
            const auto at = random_.uniform() * static_cast<double>(recent_.size());
            const Begun& same = recent_[static_cast<std::size_t>(at)];
            job.content = same.content;
            job.profile = same.profile;
            job.factor = same.factor;
            return;
        }
        job.content = ++contents_;
        recent_.push_back({job.content, job.profile, job.factor});
        if (recent_.size() > kRecent) {
            recent_.pop_front();
        }
    }

    struct Begun {
        std::uint64_t content;
        std::uint32_t profile;
        float factor;
    };
    const SyntheticOptions& options_;
    Random random_;
    std::deque<Begun> recent_;
    std::uint64_t contents_ = 0;
    Shares models_;
    Shares tenants_;
    Trace trace_;
};

Result<> check(const SyntheticOptions& options) {
    const auto within = [](double value, double min, double max) {
        return value >= min && value <= max;
    };
    const char* wrong = nullptr;
    wrong = options.jobs < 1 || options.jobs > kTraceJobsMax ? "the number of jobs" : wrong;
    wrong = options.models < 1 || options.models > 100'000 ? "the number of models" : wrong;
    wrong = options.tenants < 1 || options.tenants > 100'000 ? "the number of tenants" : wrong;
    wrong = options.sizes < 1 || options.sizes > 8 ? "the number of sizes" : wrong;
    wrong = within(options.rate, 1e-6, 1e6) ? wrong : "the rate";
    wrong = within(options.burst, 1, 1e6) ? wrong : "the size of bursts";
    wrong = within(options.zipf, 0, 10) ? wrong : "the exponent of Zipf's law";
    wrong = within(options.seconds, 1e-3, 1e6) ? wrong : "the length of a run";
    wrong = within(options.noise, 0, 3) ? wrong : "the noise";
    wrong = within(options.model_gb, 0, 1e4) ? wrong : "the size of models";
    wrong = within(options.repeats, 0, 1) && within(options.kept_part, 0, 1)
                ? wrong
                : "the part of repeats or of what is kept";
    wrong = within(options.high, 0, 1) && within(options.low, 0, 1) &&
                    within(options.batch, 0, 1) && options.high + options.low + options.batch <= 1
                ? wrong
                : "the parts of high, low and batch jobs";
    if (wrong != nullptr) {
        return fail(Code::invalid_argument, std::string(wrong) + " is out of range");
    }
    return {};
}

}  // namespace

std::optional<Arrivals> parse_arrivals(std::string_view text) {
    if (text == "at-once") {
        return Arrivals::at_once;
    }
    if (text == "poisson") {
        return Arrivals::poisson;
    }
    if (text == "bursty") {
        return Arrivals::bursty;
    }
    return std::nullopt;
}

Result<Trace> make_synthetic(const SyntheticOptions& options) {
    if (auto good = check(options); !good) {
        return fail(std::move(good.error()));
    }
    return Maker(options).run();
}

}  // namespace comfyd::simulate
