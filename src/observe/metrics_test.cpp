#include "observe/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace comfyd::observe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountsRequestsByRouteMethodAndStatus) {
    Metrics metrics;
    metrics.http_request("/api/v2/jobs/{id}", "GET", 200, 0.002);
    metrics.http_request("/api/v2/jobs/{id}", "GET", 200, 0.004);
    metrics.http_request("/api/v2/jobs/{id}", "GET", 404, 0.001);
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr("# TYPE comfyd_http_requests_total counter"));
    EXPECT_THAT(
        text,
        HasSubstr(
            R"(comfyd_http_requests_total{method="GET",route="/api/v2/jobs/{id}",status="200"} 2)"
        )
    );
    EXPECT_THAT(
        text,
        HasSubstr(
            R"(comfyd_http_requests_total{method="GET",route="/api/v2/jobs/{id}",status="404"} 1)"
        )
    );
    EXPECT_THAT(
        text, HasSubstr(R"(comfyd_http_request_seconds_count{route="/api/v2/jobs/{id}"} 3)")
    );
    EXPECT_THAT(
        text,
        HasSubstr(R"(comfyd_http_request_seconds_bucket{route="/api/v2/jobs/{id}",le="0.0025"} 2)")
    );
}

TEST(Metrics, ShowsWhatOthersHaveCountedInBuckets) {
    Metrics metrics;
    const std::string text = metrics.render([](Metrics::Gauges& gauges) {
        gauges.set_histogram("starts_seconds", "Help.", {{"phase", "a"}}, {{1, 10}, {2, 3, 1}, 60});
        gauges.set_histogram("starts_seconds", "Help.", {{"phase", "b"}}, {{1, 10}, {0, 1, 0}, 4});
    });
    EXPECT_THAT(text, HasSubstr("# TYPE starts_seconds histogram"));
    EXPECT_THAT(text, HasSubstr(R"(starts_seconds_bucket{phase="a",le="1"} 2)"));
    EXPECT_THAT(text, HasSubstr(R"(starts_seconds_bucket{phase="a",le="10"} 5)"));
    EXPECT_THAT(text, HasSubstr(R"(starts_seconds_bucket{phase="a",le="+Inf"} 6)"));
    EXPECT_THAT(text, HasSubstr(R"(starts_seconds_sum{phase="a"} 60)"));
    EXPECT_THAT(text, HasSubstr(R"(starts_seconds_count{phase="b"} 1)"));
}

TEST(Metrics, CountsWhatWorkersUsed) {
    Metrics metrics;
    metrics.worker_used("gpu-1", {1.5, 0.5, 2, 0.001});
    metrics.worker_used("gpu-1", {2, 0, 1, 0.002});
    metrics.worker_used("engine", {0, 0, 4, 0});
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr("# TYPE comfyd_gpu_seconds_total counter"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_gpu_seconds_total{worker="gpu-1"} 3.5)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_model_load_seconds_total{worker="gpu-1"} 0.5)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_images_total{worker="gpu-1"} 3)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_images_total{worker="engine"} 4)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_cost_usd_total{worker="gpu-1"} 0.003)"));
}

TEST(Metrics, TellsWhatJobsCostByTenantAndWorkflowOfSoManyNames) {
    Metrics metrics;
    metrics.job_used("acme", "portrait", 2, 0.25);
    metrics.job_used("acme", "", 1, 0.5);
    for (std::size_t i = 0; i < Metrics::kNamesMax + 20; ++i) {
        metrics.job_used("acme", "w" + std::to_string(i), 1, 0.001);
    }
    metrics.job_used("acme", "portrait", 1, 0.25);
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr(R"(comfyd_workflow_images_total{workflow="portrait"} 3)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_workflow_cost_usd_total{workflow="portrait"} 0.5)"));
    EXPECT_THAT(text, HasSubstr(R"x(comfyd_workflow_images_total{workflow="(none)"} 1)x"));
    EXPECT_THAT(text, HasSubstr(R"x(comfyd_workflow_images_total{workflow="(others)"} 22)x"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_tenant_images_total{tenant="acme"} 124)"));
    EXPECT_THAT(text, Not(HasSubstr(R"(workflow="w110")")));
}

TEST(Metrics, CountsLoadsAheadOfJobs) {
    Metrics metrics;
    metrics.prewarmed("loaded");
    metrics.prewarmed("loaded");
    metrics.prewarmed("timeout");
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr(R"(comfyd_prewarms_total{outcome="loaded"} 2)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_prewarms_total{outcome="timeout"} 1)"));
}

TEST(Metrics, CountsJobs) {
    Metrics metrics;
    metrics.job_submitted("comfy-v2");
    metrics.job_submitted("tasks");
    metrics.purged(3, 2);
    metrics.job_submitted("comfy-v2");
    metrics.job_finished("completed", 1.5, 12);
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr(R"(comfyd_jobs_submitted_total{dialect="comfy-v2"} 2)"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_jobs_submitted_total{dialect="tasks"} 1)"));
    EXPECT_THAT(text, HasSubstr("comfyd_jobs_purged_total 3"));
    EXPECT_THAT(text, HasSubstr("comfyd_files_removed_total 2"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_jobs_finished_total{state="completed"} 1)"));
    EXPECT_THAT(text, HasSubstr("comfyd_job_queue_seconds_sum 1.5"));
    EXPECT_THAT(text, HasSubstr("comfyd_job_execution_seconds_sum 12"));
}

TEST(Metrics, MeasuresStallsOfTheCore) {
    Metrics metrics;
    EXPECT_THAT(metrics.render(nullptr), HasSubstr("comfyd_core_stall_seconds_count 0"));
    metrics.core_stalled(0.03);
    metrics.core_stalled(0.5);
    const std::string text = metrics.render(nullptr);
    EXPECT_THAT(text, HasSubstr("# TYPE comfyd_core_stall_seconds histogram"));
    EXPECT_THAT(text, HasSubstr(R"(comfyd_core_stall_seconds_bucket{le="0.05"} 1)"));
    EXPECT_THAT(text, HasSubstr("comfyd_core_stall_seconds_sum 0.53"));
}

TEST(Metrics, GaugesLiveForOneScrape) {
    Metrics metrics;
    const std::string first = metrics.render([](Metrics::Gauges& gauges) {
        gauges.set("comfyd_queue_jobs", "Jobs in the queue.", {{"state", "queued"}}, 3);
        gauges.set("comfyd_queue_jobs", "Jobs in the queue.", {{"state", "running"}}, 1);
        gauges.set("comfyd_queue_jobs", "Jobs in the queue.", {{"state", "queued"}}, 4);
        gauges.set("comfyd_up", "One while the process runs.", {}, 1);
    });
    EXPECT_THAT(first, HasSubstr("# HELP comfyd_queue_jobs Jobs in the queue."));
    EXPECT_THAT(first, HasSubstr(R"(comfyd_queue_jobs{state="queued"} 4)"));
    EXPECT_THAT(first, HasSubstr(R"(comfyd_queue_jobs{state="running"} 1)"));
    EXPECT_THAT(first, HasSubstr("comfyd_up 1"));
    EXPECT_THAT(metrics.render(nullptr), Not(HasSubstr("comfyd_queue_jobs")));
}

TEST(Metrics, EscapesLabelValues) {
    Metrics metrics;
    const std::string text = metrics.render([](Metrics::Gauges& gauges) {
        gauges.set("comfyd_worker_up", "Workers.", {{"worker", "a\"b\\c\nd"}}, 1);
    });
    EXPECT_THAT(text, HasSubstr(R"(worker="a\"b\\c\nd")"));
}

TEST(Metrics, CountsFromManyThreads) {
    Metrics metrics;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&metrics] {
            for (int i = 0; i < 1000; ++i) {
                metrics.http_request("/a", "GET", 200 + i % 3, 0.001);
            }
        });
    }
    threads.clear();
    EXPECT_THAT(
        metrics.render(nullptr), HasSubstr(R"(comfyd_http_request_seconds_count{route="/a"} 4000)")
    );
}

}  // namespace
}  // namespace comfyd::observe
