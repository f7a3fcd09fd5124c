// What a run has made waits on its worker while comfyd has no room for it, and is not made again.
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/shared_number.hpp"

namespace comfyd::support {
namespace {

class HeldOutputs : public testing::Test {
protected:
    HeldOutputs() {
        thread_.start();
        DoubleOptions options;
        options.output_bytes = 200'000;  // a file, not kept with its record
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), options);
        worker_->start();
        ComfydOptions comfyd;
        comfyd.arguments = {
            "--no-engine", "--worker", worker_->url(), "--set", "fleet.poll_ms=100"
        };
        comfyd.environment = {
            {"LD_PRELOAD", COMFYD_FAULTY_DISK}, {"COMFYD_TEST_DISK", disk_.path()}
        };
        comfyd_ = std::make_unique<Comfyd>(comfyd);
    }
    ~HeldOutputs() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }
    bool has_logged(const std::string& text) {
        return wait_until([&] { return comfyd_->log().find(text) != std::string::npos; });
    }

    TempDir folder_;
    SharedNumber disk_{folder_ / "disk"};
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(HeldOutputs, ArriveWhenThereIsRoomAgainAfterOneRun) {
    const std::string id = comfyd_->submit(text_to_image("held", "slow=1500"));
    ASSERT_TRUE(wait_until([&] { return worker_->executions().total == 1; }));
    ASSERT_TRUE(comfyd_->wait_status(id, "running"));
    disk_.set(kDiskIsFull);
    ASSERT_TRUE(has_logged("an output waits on its worker until it can be stored"))
        << comfyd_->log();
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(id)), "running");
    disk_.set(0);
    const json::value job = comfyd_->wait_finished(id);
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    const std::string link(job.at("outputs").at(0).at("url").as_string());
    const Reply picture = comfyd_->http().get(link.substr(comfyd_->url().size()));
    EXPECT_EQ(picture.status, 200);
    EXPECT_NE(picture.body.find("held"), std::string::npos);
    EXPECT_EQ(worker_->executions().total, 1U);
}

}  // namespace
}  // namespace comfyd::support
