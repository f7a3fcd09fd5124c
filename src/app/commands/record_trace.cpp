#include "app/commands/record_trace.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ledger/history.hpp"

namespace comfyd::app {
namespace {

constexpr double kLoadedFactor = 2;  // above it a run has loaded models
constexpr double kQuickPart = 0.2;

class Recorder {
public:
    explicit Recorder(
        const simulate::GpuType& recorded_on, std::size_t jobs_max = simulate::kTraceJobsMax
    )
        : recorded_on_(recorded_on), jobs_max_(jobs_max) {}

    bool add(const jobs::Job& job, const jobs::Spec& spec) {
        if (job.reused_from) {
            return true;  // it needed no worker
        }
        scheduler::ProfilePtr profile = spec.profile;
        if (profile == nullptr || profile->shape.empty()) {
            auto made = std::make_shared<scheduler::Profile>();
            made->requirement = spec.requirement;
            made->shape = "without models\n" + spec.requirement.encoded();
            profile = std::move(made);
        }
        Entry entry;
        entry.at = job.created_at;
        entry.tenant = job.tenant;
        entry.priority = job.priority;
        entry.shape = use_shape(std::move(profile));
        Shape& shape = shapes_[entry.shape];
        if (const auto took = run_time(job); took > Millis(0)) {
            entry.seconds = std::chrono::duration<double>(took).count() * recorded_on_.speed;
            shape.seconds.push_back(entry.seconds);
            shape.images +=
                static_cast<double>(std::ranges::count(job.outputs, "image", &jobs::Output::type));
            shape.completed += 1;
            shape.sample = shape.sample.value_or(job.id);
        }
        entries_.push_back(std::move(entry));
        return entries_.size() < jobs_max_;
    }

    // REQUIRES: take() comes later.
    jobs::PastKinds kinds() const {
        jobs::PastKinds kinds;
        for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
            const Shape& shape = shapes_[entry->shape];
            if (entry->seconds > 0) {
                kinds.rates.arrived(shape.profile, entry->at);
                kinds.samples[scheduler::kind_of(*shape.profile)] = *shape.sample;
            }
        }
        return kinds;
    }

    simulate::Trace take() {
        simulate::Trace trace;
        for (Shape& shape : shapes_) {
            trace.profiles.push_back(finish(shape));
        }
        std::map<std::string, std::uint32_t> tenants;
        std::ranges::reverse(entries_);  // they came newest first
        for (const Entry& entry : entries_) {
            const auto next = static_cast<std::uint32_t>(tenants.size());
            const auto [tenant, is_new] = tenants.emplace(entry.tenant, next);
            if (is_new) {
                trace.tenants.push_back(entry.tenant);
            }
            simulate::TraceJob job;
            job.at_ms = (entry.at - entries_.front().at).count();
            job.profile = entry.shape;
            job.tenant = tenant->second;
            job.priority = static_cast<std::uint8_t>(entry.priority);
            const double factor = entry.seconds / trace.profiles[entry.shape].seconds;
            job.factor = static_cast<float>(factor <= 0 || factor > kLoadedFactor ? 1 : factor);
            trace.jobs.push_back(job);
        }
        simulate::sort_jobs(trace.jobs);
        return trace;
    }

private:
    struct Entry {
        Time at{};
        std::string tenant;
        int priority = 5;
        std::uint32_t shape = 0;
        double seconds = 0;  // on the GPU type with speed 1; 0: it did not run to its end
    };
    struct Shape {
        scheduler::ProfilePtr profile;
        std::vector<double> seconds;
        double images = 0;
        double completed = 0;
        std::optional<JobId> sample{};  // the latest that ran to its end
    };

    // Without loads where that was measured; 0: it did not run to its end.
    static Millis run_time(const jobs::Job& job) {
        if (job.state != jobs::State::completed) {
            return Millis(0);
        }
        if (job.usage && job.attempt == 1 && job.usage->inference > Millis(0)) {
            return job.usage->inference;
        }
        return job.execution_time().value_or(Millis(0));
    }

    std::uint32_t use_shape(scheduler::ProfilePtr profile) {
        const auto next = static_cast<std::uint32_t>(shapes_.size());
        const auto [entry, is_new] = shape_numbers_.emplace(profile->shape, next);
        if (is_new) {
            shapes_.emplace_back().profile = std::move(profile);
        }
        return entry->second;
    }

    simulate::TraceProfile finish(Shape& shape) const {
        simulate::TraceProfile made;
        made.seconds = std::max(shape.profile->heuristic_seconds, 1e-3);
        if (!shape.seconds.empty()) {
            const auto rank = static_cast<std::ptrdiff_t>(
                static_cast<double>(shape.seconds.size() - 1) * kQuickPart
            );
            std::nth_element(
                shape.seconds.begin(), shape.seconds.begin() + rank, shape.seconds.end()
            );
            made.seconds = shape.seconds[static_cast<std::size_t>(rank)];
        }
        made.images = shape.completed > 0 ? shape.images / shape.completed : 1;
        made.profile = shape.profile;
        return made;
    }

    const simulate::GpuType& recorded_on_;
    const std::size_t jobs_max_;
    std::vector<Entry> entries_;
    std::vector<Shape> shapes_;
    std::map<std::string, std::uint32_t> shape_numbers_;  // by the profile's
};

}  // namespace

Result<simulate::Trace> record_trace(
    const std::filesystem::path& data, Time since, Time until, const simulate::GpuType& recorded_on
) {
    Recorder recorder(recorded_on);
    auto read = ledger::read_history(
        data / "comfyd.db",
        since,
        until,
        [&](const jobs::Job& job, const jobs::Spec& spec) { return recorder.add(job, spec); }
    );
    if (!read) {
        return fail(std::move(read.error()));
    }
    return recorder.take();
}

Result<Recorded> record_past(
    const std::filesystem::path& data,
    Time since,
    Time until,
    const simulate::GpuType& recorded_on,
    std::size_t jobs_max,
    const std::function<bool()>& goes_on
) {
    Recorder recorder(recorded_on, jobs_max);
    auto read = ledger::read_history(
        data / "comfyd.db",
        since,
        until,
        [&](const jobs::Job& job, const jobs::Spec& spec) {
            return recorder.add(job, spec) && goes_on();
        }
    );
    if (!read) {
        return fail(std::move(read.error()));
    }
    jobs::PastKinds kinds = recorder.kinds();
    return Recorded{recorder.take(), std::move(kinds)};
}

}  // namespace comfyd::app
