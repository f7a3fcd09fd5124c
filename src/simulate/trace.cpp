#include "simulate/trace.hpp"

#include <algorithm>
#include <cmath>
#include <istream>
#include <ostream>
#include <tuple>
#include <unordered_map>

#include "base/json.hpp"

namespace comfyd::simulate {
namespace {

constexpr int kVersion = 1;
constexpr double kSecondsMax = 1e9;
constexpr std::size_t kTenantsMax = 100'000;
constexpr std::size_t kProfilesMax = 1'000'000;
constexpr double kContentMax = 9e15;  // what JSON's numbers hold exactly

class Reader {
public:
    Result<> line(const std::string& text) {
        auto parsed = json::parse_object(text);
        if (!parsed) {
            return fail(std::move(parsed.error()));
        }
        if (!headed_) {
            const json::value* kind = json::find(*parsed, "kind");
            const json::value* version = json::find(*parsed, "version");
            if (kind == nullptr || *kind != "comfyd trace" || version == nullptr ||
                *version != kVersion) {
                return fail(Code::invalid_argument, "this is no trace that this comfyd can read");
            }
            headed_ = true;
            return {};
        }
        return json::find(*parsed, "at_ms") != nullptr ? read_job(*parsed) : read_profile(*parsed);
    }

    Trace take() {
        sort_jobs(trace_.jobs);
        return std::move(trace_);
    }
    bool headed() const { return headed_; }

private:
    // `otherwise` when absent; failures are kept for the end of the line.
    double number(const json::object& from, const char* key, double otherwise) {
        const auto found = json::find_number(from, key);
        const double value = found ? found->value_or(otherwise) : NAN;
        if (!(value >= 0 && value <= 1e18)) {
            wrong_ = key;
            return 0;
        }
        return value;
    }
    std::string text(const json::object& from, const char* key, std::string otherwise) {
        auto found = json::find_string(from, key);
        if (!found) {
            wrong_ = key;
            return {};
        }
        return std::move(*found).value_or(std::move(otherwise));
    }
    bool flag(const json::object& from, const char* key) {
        const auto found = json::find_bool(from, key);
        wrong_ = found ? wrong_ : key;
        return found && found->value_or(false);
    }
    Result<> verdict() {
        return wrong_.empty()
                   ? Result<>()
                   : fail(Code::invalid_argument, "'" + wrong_ + "' is not as it should be");
    }

    Result<> read_profile(const json::object& from) {
        scheduler::Profile made;
        const std::string name = text(from, "profile", "");
        TraceProfile profile;
        profile.seconds = number(from, "seconds", 1);
        profile.images = number(from, "images", 1);
        made.shape = text(from, "shape", name);
        // The workers of the model stand nowhere.
        const Requirement recorded = Requirement::decode(text(from, "requirement", ""));
        MachineWish machine = recorded.machine();
        machine.region.clear();
        made.requirement = recorded.on(machine);
        made.work_units = number(from, "work_units", profile.seconds * 10);
        made.heuristic_seconds = number(from, "heuristic_seconds", profile.seconds);
        made.vram_bytes = static_cast<std::uint64_t>(number(from, "vram_bytes", 0));
        made.can_be_merged = flag(from, "can_be_merged");
        const auto models = json::find_array(from, "models");
        wrong_ = models ? wrong_ : "models";
        if (models && *models != nullptr) {
            for (const json::value& model : **models) {
                if (!model.is_object()) {
                    wrong_ = "models";
                    break;
                }
                made.models.push_back(
                    {text(model.get_object(), "name", ""),
                     static_cast<std::uint64_t>(number(model.get_object(), "bytes", 0))}
                );
            }
        }
        std::ranges::sort(made.models, {}, &scheduler::Model::name);
        profile.kept_part = number(from, "kept_part", 0);
        wrong_ = profile.kept_part > 1 ? "kept_part" : wrong_;
        if (profile.seconds <= 0 || profile.seconds > kSecondsMax) {
            wrong_ = "seconds";
        }
        profile.profile = std::make_shared<const scheduler::Profile>(std::move(made));
        if (trace_.profiles.size() >= kProfilesMax ||
            !profiles_.emplace(name, static_cast<std::uint32_t>(trace_.profiles.size())).second) {
            wrong_ = "profile";
        }
        trace_.profiles.push_back(std::move(profile));
        return verdict();
    }

    Result<> read_job(const json::object& from) {
        const double at_ms = number(from, "at_ms", 0);
        const auto profile = profiles_.find(text(from, "profile", ""));
        wrong_ = profile == profiles_.end() ? "profile" : wrong_;
        wrong_ = at_ms > kSecondsMax * 1000 ? "at_ms" : wrong_;
        TraceJob job;
        job.at_ms = static_cast<std::int64_t>(std::min(at_ms, kSecondsMax * 1000));
        job.profile = profile == profiles_.end() ? 0 : profile->second;
        job.tenant = tenant(text(from, "tenant", "local"));
        const double priority = number(from, "priority", 5);
        wrong_ = priority < 1 || priority > 10 ? "priority" : wrong_;
        job.priority = static_cast<std::uint8_t>(std::clamp(priority, 1.0, 10.0));
        job.batch = flag(from, "batch");
        const double factor = number(from, "factor", 1);
        wrong_ = factor <= 0 || factor > 1e6 ? "factor" : wrong_;
        job.factor = static_cast<float>(factor);
        const double content = number(from, "content", 0);
        wrong_ = content > kContentMax ? "content" : wrong_;
        job.content = static_cast<std::uint64_t>(std::min(content, kContentMax));
        if (trace_.jobs.size() >= kTraceJobsMax) {
            return fail(
                Code::invalid_argument,
                "a trace has at most " + std::to_string(kTraceJobsMax) + " jobs"
            );
        }
        trace_.jobs.push_back(job);
        return verdict();
    }

    std::uint32_t tenant(const std::string& name) {
        const auto next = static_cast<std::uint32_t>(trace_.tenants.size());
        const auto [entry, is_new] = tenants_.emplace(name, next);
        if (is_new) {
            wrong_ = next >= kTenantsMax ? "tenant" : wrong_;
            trace_.tenants.push_back(name);
        }
        return entry->second;
    }

    Trace trace_;
    bool headed_ = false;
    std::string wrong_;
    std::unordered_map<std::string, std::uint32_t> profiles_;
    std::unordered_map<std::string, std::uint32_t> tenants_;
};

json::object profile_json(const TraceProfile& from, std::size_t number) {
    const scheduler::Profile& profile = *from.profile;
    json::array models;
    for (const scheduler::Model& model : profile.models) {
        models.emplace_back(json::object{{"name", model.name}, {"bytes", model.bytes}});
    }
    json::object made{
        {"profile", "p" + std::to_string(number)},
        {"seconds", from.seconds},
        {"images", from.images},
        {"shape", profile.shape},
        {"requirement", profile.requirement.encoded()},
        {"models", std::move(models)},
        {"work_units", profile.work_units},
        {"heuristic_seconds", profile.heuristic_seconds},
        {"vram_bytes", profile.vram_bytes},
        {"can_be_merged", profile.can_be_merged},
    };
    if (from.kept_part > 0) {
        made["kept_part"] = from.kept_part;
    }
    return made;
}

}  // namespace

void sort_jobs(std::vector<TraceJob>& jobs) {
    if (std::ranges::is_sorted(jobs, {}, &TraceJob::at_ms)) {
        return;
    }
    const auto key = [](const TraceJob& job) {
        return std::tie(
            job.at_ms, job.tenant, job.profile, job.priority, job.factor, job.batch, job.content
        );
    };
    std::ranges::sort(jobs, [&](const TraceJob& left, const TraceJob& right) {
        return key(left) < key(right);
    });
}

Result<Trace> read_trace(std::istream& from) {
    Reader reader;
    std::string text;
    for (std::size_t number = 1; std::getline(from, text); ++number) {
        if (text.empty()) {
            continue;
        }
        if (auto read = reader.line(text); !read) {
            return fail(
                Code::invalid_argument,
                "line " + std::to_string(number) + " of the trace: " + read.error().message
            );
        }
    }
    if (!reader.headed()) {
        return fail(Code::invalid_argument, "the trace is empty");
    }
    return reader.take();
}

void write_trace(const Trace& trace, std::ostream& into) {
    into << json::serialize(json::object{{"kind", "comfyd trace"}, {"version", kVersion}}) << "\n";
    for (std::size_t at = 0; at < trace.profiles.size(); ++at) {
        into << json::serialize(profile_json(trace.profiles[at], at)) << "\n";
    }
    for (const TraceJob& job : trace.jobs) {
        json::object made{
            {"at_ms", job.at_ms},
            {"profile", "p" + std::to_string(job.profile)},
            {"tenant", trace.tenants[job.tenant]},
            {"priority", job.priority},
        };
        if (job.batch) {
            made["batch"] = true;
        }
        if (job.factor != 1) {
            made["factor"] = std::round(static_cast<double>(job.factor) * 1e4) / 1e4;
        }
        if (job.content != 0) {
            made["content"] = job.content;
        }
        into << json::serialize(made) << "\n";
    }
}

}  // namespace comfyd::simulate
