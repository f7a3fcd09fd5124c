// Workers with little and with much main memory: models go where they fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kGiB = 1024LL * 1024 * 1024;

class MainMemory : public testing::Test {
protected:
    MainMemory() {
        thread_.start();
        little_.start();
        much_.start();
        const std::string file = folder_.write(
            "comfyd.yaml",
            "workers:\n  - {id: little, url: '" + little_.url() + "'}\n  - {id: much, url: '" +
                much_.url() +
                "'}\nfleet: {poll_ms: 100}\nmodels:\n  - {name: sd15.safetensors, bytes: 8GiB}\n"
        );
        comfyd_ =
            std::make_unique<Comfyd>(ComfydOptions{.arguments = {"--no-engine", "--config", file}});
    }
    ~MainMemory() override {
        comfyd_.reset();
        little_.stop();
        much_.stop();
        thread_.stop();
    }
    bool wait_until_idle(int workers) {
        return wait_until([&] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   workers;
        });
    }
    // The worker that ran it.
    std::string place_of(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
        return std::string(
            comfyd_->http().get("/api/v1/tasks/" + id).json_at("/worker_id").as_string()
        );
    }
    std::string submit(const std::string& text) { return comfyd_->submit(text_to_image(text)); }

    TempDir folder_;
    net::IoThread thread_{"doubles"};
    ComfyDouble little_{thread_.context(), {.ram_total = 4 * kGiB}};
    ComfyDouble much_{thread_.context(), {.ram_total = 64 * kGiB, .journal = folder_ / "journal"}};
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(MainMemory, AJobWaitsForAWorkerWhoseMemoryHoldsItsModels) {
    ASSERT_TRUE(wait_until_idle(2)) << comfyd_->log();
    Faults faults;
    faults.run.held = true;
    much_.set_faults(faults);
    const std::string first = submit("a cat");
    ASSERT_TRUE(wait_until([&] { return much_.executions().total == 1; })) << comfyd_->log();
    const std::string second = submit("a dog");
    EXPECT_THAT(
        comfyd_->http().get("/v2/workflows/execution/" + second + "/explain").body,
        HasSubstr("its machine has 4.0 GiB of memory, the job's models take 8.0 GiB")
    );
    EXPECT_EQ(little_.executions().total, 0U);
    folder_.write("let-go", "");
    EXPECT_EQ(place_of(first), "much");
    EXPECT_EQ(place_of(second), "much");
    // Where nobody has more, it may try.
    comfyd_->http().post("/admin/v1/workers/much/drain", "");
    EXPECT_EQ(place_of(submit("a fish")), "little");
}

}  // namespace
}  // namespace comfyd::support
