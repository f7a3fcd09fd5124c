// What is older than its retention is gone from every API and from the disk; what is younger, or
// has not ended, is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

class RetentionE2e : public testing::Test {
protected:
    RetentionE2e() {
        thread_.start();
        DoubleOptions worker;
        worker.output_bytes = 60'000;  // a file, not kept with its record
        for (auto& gpu : gpus_) {
            gpu = std::make_unique<ComfyDouble>(thread_.context(), worker);
            gpu->start();
        }
    }
    ~RetentionE2e() override {
        comfyd_.reset();
        gpus_ = {};
        thread_.stop();
    }

    void start(const std::string& days) {
        ComfydOptions options;
        options.arguments = {"--no-engine", "--set", "fleet.poll_ms=100"};
        options.arguments.insert(options.arguments.end(), {"--set", "retention_days=" + days});
        for (const auto& gpu : gpus_) {
            options.arguments.insert(options.arguments.end(), {"--worker", gpu->url()});
        }
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    int status(const std::string& path) { return comfyd_->http().get(path).status; }
    std::size_t blobs() {
        std::size_t count = 0;
        namespace fs = std::filesystem;
        for (const auto& entry : fs::recursive_directory_iterator(comfyd_->data() + "/assets")) {
            count += entry.is_regular_file() ? 1 : 0;
        }
        return count;
    }

    net::IoThread thread_{"doubles"};
    std::array<std::unique_ptr<ComfyDouble>, 2> gpus_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(RetentionE2e, AJobIsGoneFromEveryApiWithItsFilesAfterItsTime) {
    start("0.00005");  // some four seconds
    const std::string running = comfyd_->submit(text_to_image("runs", "hang_interruptible"));
    const std::string old = comfyd_->submit(text_to_image("old"));
    const json::value ended = comfyd_->wait_finished(old);
    ASSERT_EQ(Comfyd::status_of(ended), "succeeded") << comfyd_->log();
    const std::string asset(ended.at("outputs").at(0).at("id").as_string());
    ASSERT_EQ(blobs(), 1U);

    ASSERT_TRUE(wait_until([&] { return status("/api/v2/jobs/" + old) == 404; }));
    const std::string young = comfyd_->submit(text_to_image("young"));
    EXPECT_EQ(status("/v2/workflows/execution/" + old), 404);
    EXPECT_EQ(status("/v1/workflows/execution/" + old), 404);
    EXPECT_EQ(status("/v2/workflows/execution/" + old + "/metrics"), 404);
    EXPECT_EQ(status("/v2/workflows/execution/" + old + "/events"), 404);
    EXPECT_EQ(status("/api/v1/tasks/" + old), 404);
    EXPECT_EQ(status("/api/v2/assets/" + asset), 404);
    EXPECT_EQ(comfyd_->http().get("/history/" + old).json(), json::value(json::object()));
    const std::string listed = comfyd_->http().get("/v2/workflows/executions").body;
    EXPECT_EQ(listed.find(old), std::string::npos);
    EXPECT_NE(listed.find(running), std::string::npos);

    ASSERT_EQ(Comfyd::status_of(comfyd_->wait_finished(young)), "succeeded");
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(running)), "running");
    EXPECT_TRUE(wait_until([&] { return blobs() <= 1; })) << "the file of the old one";
    EXPECT_THAT(
        comfyd_->http().get("/metrics").body, testing::Not(HasSubstr("comfyd_jobs_purged_total 0"))
    );
    EXPECT_THAT(comfyd_->log(), HasSubstr("removed what is old"));
    EXPECT_TRUE(wait_until([&] { return status("/api/v2/jobs/" + young) == 404; }));
    EXPECT_TRUE(wait_until([&] { return blobs() == 0; }));
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(running)), "running") << "however old";
}

TEST_F(RetentionE2e, AnEndedExecutionIsDeletedAtOnceAndOneThatRunsIsCancelled) {
    start("0.00005");
    const std::string running = comfyd_->submit(text_to_image("runs", "hang_interruptible"));
    const std::string ended = comfyd_->submit(text_to_image("ended"));
    ASSERT_EQ(Comfyd::status_of(comfyd_->wait_finished(ended)), "succeeded") << comfyd_->log();
    const Reply deleted = comfyd_->http().del("/v2/workflows/execution/" + ended);
    EXPECT_EQ(deleted.status, 200);
    EXPECT_EQ(deleted.json_at("/status"), "completed");
    EXPECT_EQ(status("/v2/workflows/execution/" + ended), 404);
    EXPECT_TRUE(wait_until([&] { return blobs() == 0; })) << "by the next sweep";

    ASSERT_TRUE(comfyd_->wait_status(running, "running"));
    const Reply cancelled = comfyd_->http().del("/v2/workflows/execution/" + running);
    EXPECT_EQ(cancelled.status, 200);
    EXPECT_TRUE(comfyd_->wait_status(running, "canceled"));
}

TEST_F(RetentionE2e, AnOutputOfAnEndedJobCanBeDeleted) {
    start("30");
    const std::string id = comfyd_->submit(text_to_image("picture"));
    const json::value job = comfyd_->wait_finished(id);
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << comfyd_->log();
    const std::string asset(job.at("outputs").at(0).at("id").as_string());
    EXPECT_EQ(comfyd_->http().del("/api/v2/assets/" + asset).status, 204);
    EXPECT_EQ(status("/api/v2/assets/" + asset), 404);
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(id)), "succeeded");
}

}  // namespace
}  // namespace comfyd::support
