// The settings of what is done about attempts that fail (jobs/doctor.hpp).
#include <charconv>

#include "app/config/setting_kinds.hpp"
#include "jobs/cause.hpp"

namespace comfyd::app {
namespace {

constexpr int kRetriesMax = 100;

Setting retries_of(jobs::Cause cause) {
    const std::string name(to_string(cause));
    const auto index = static_cast<std::size_t>(cause);
    return {
        "retries." + name,
        "Attempts of a job that failed by " + name + " and are followed by another one.",
        [name, index](Config& config, const std::string& text) -> Result<> {
            int count = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), count);
            if (error != std::errc() || end != text.data() + text.size() || count < 0 ||
                count > kRetriesMax) {
                return invalid(
                    "'retries." + name + "' must be a whole number from 0 to " +
                    std::to_string(kRetriesMax) + ", not '" + text + "'"
                );
            }
            config.failures.retries[index] = count;
            return {};
        },
        [index](const Config& config) { return std::to_string(config.failures.retries[index]); },
    };
}

}  // namespace

std::vector<Setting> retry_settings() {
    std::vector<Setting> rows;
    for (int i = 0; i < jobs::kCauses; ++i) {
        if (const auto cause = static_cast<jobs::Cause>(i); cause != jobs::Cause::poison) {
            rows.push_back(retries_of(cause));
        }
    }
    rows.push_back(number(
        "retries.workers_lost_max",
        "Workers that one job may take down; then it fails and gets no other.",
        &Config::poison_workers,
        1,
        100
    ));
    rows.push_back(decimal(
        "retries.timeout_factor",
        "How much longer an attempt may take that follows one that was too slow.",
        &Config::timeout_factor,
        1,
        10
    ));
    rows.push_back(decimal(
        "retries.percent",
        "Attempts of all jobs that may be repetitions, of a hundred that begin; beyond that, and "
        "beyond retries.per_minute, they wait.",
        &Config::retry_percent,
        0,
        1'000
    ));
    rows.push_back(decimal(
        "retries.per_minute",
        "Repetitions in a minute that are free beside retries.percent.",
        &Config::retries_per_minute,
        0.1,
        1'000'000
    ));
    return rows;
}

}  // namespace comfyd::app
