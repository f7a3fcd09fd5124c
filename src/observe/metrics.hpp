// The process's Prometheus series. Children are looked up once, at construction; the hot path only
// increments. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace comfyd::observe {

class Metrics {
public:
    Metrics();
    ~Metrics();

    // comfyd_http_requests_total{route,method,status}, comfyd_http_request_seconds{route}
    void http_request(std::string_view route, std::string_view method, int status, double seconds);
    // comfyd_jobs_submitted_total{dialect}
    void job_submitted(std::string_view dialect);
    // comfyd_jobs_finished_total{state}; comfyd_job_queue_seconds and _execution_seconds where >= 0
    void job_finished(std::string_view state, double queue_seconds, double execution_seconds);

    // comfyd_attempts_failed_total{cause,then}: "retry" or "fail"
    void attempt_failed(std::string_view cause, bool is_retried);

    // comfyd_prewarms_total{outcome}
    void prewarmed(std::string_view outcome);

    // comfyd_jobs_purged_total, comfyd_files_removed_total
    void purged(int jobs, int files);

    // comfyd_core_stall_seconds
    void core_stalled(double seconds);

    // comfyd_gpu_seconds_total{worker}, comfyd_model_load_seconds_total{worker},
    // comfyd_images_total{worker}, comfyd_cost_usd_total{worker}
    struct WorkerUse {
        double gpu_seconds;
        double model_load_seconds;
        double images;
        double cost_usd;
    };
    void worker_used(std::string_view worker, const WorkerUse& use);

    // comfyd_tenant_images_total{tenant}, comfyd_tenant_cost_usd_total{tenant}, and the same by
    // workflow: of the first kNamesMax names; all others are "(others)".
    static constexpr std::size_t kNamesMax = 100;
    void job_used(
        std::string_view tenant, std::string_view workflow, double images, double cost_usd
    );

    // Gauges are set by collectors, just before each scrape: set("comfyd_queue_jobs", "help",
    // {{"state","queued"}}, 3).
    class Gauges {
    public:
        virtual ~Gauges() = default;
        virtual void set(
            const std::string& name,
            const std::string& help,
            std::initializer_list<std::pair<std::string, std::string>> labels,
            double value
        ) = 0;
        // Of what somebody else has counted: of each bound those that were not above it but above
        // the one before, at last those above all.
        struct Buckets {
            std::vector<double> bounds;
            std::vector<double> counts;
            double sum = 0;
        };
        virtual void set_histogram(
            const std::string& name,
            const std::string& help,
            std::initializer_list<std::pair<std::string, std::string>> labels,
            const Buckets& buckets
        ) = 0;
    };

    // The text exposition; `collect` fills in the gauges first.
    std::string render(const std::function<void(Gauges&)>& collect);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::observe
