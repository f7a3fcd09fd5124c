// comfyd's clock is set back by minutes while things wait for a time of day.
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/shared_number.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

constexpr int kBackS = 3'600;

class ClockSetBack : public testing::Test {
protected:
    ClockSetBack() : double_(thread_.context(), {}) {
        thread_.start();
        double_.start();
        ComfydOptions options;
        options.arguments = {
            "--no-engine",
            "--worker",
            double_.url(),
            "--set",
            "fleet.poll_ms=50",
            "--set",
            "webhooks.first_retry_ms=2000",
        };
        options.environment = {
            {"LD_PRELOAD", COMFYD_SHIFTED_CLOCK}, {"COMFYD_TEST_CLOCK", clock_.path()}
        };
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    ~ClockSetBack() override {
        comfyd_.reset();
        double_.stop();
        thread_.stop();
    }
    std::string submit(const std::string& prompt, json::object more = {}) {
        return comfyd_->submit(text_to_image(prompt), std::move(more));
    }

    TempDir folder_;
    SharedNumber clock_{folder_ / "clock"};
    WebhookReceiver receiver_;
    net::IoThread thread_{"double"};
    ComfyDouble double_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(ClockSetBack, AWebhookIsTriedAgainAfterItsPause) {
    receiver_.script_statuses({503});
    submit("told", {{"webhook_url", receiver_.url()}});
    ASSERT_TRUE(receiver_.wait_for(1)) << comfyd_->log();
    clock_.set(-kBackS);
    EXPECT_TRUE(receiver_.wait_for(2)) << comfyd_->log();
}

TEST_F(ClockSetBack, AJobIsTriedAgainAfterItsPause) {
    Faults faults;
    faults.run.interrupted = true;
    faults.run_prompts = 1;
    double_.set_faults(faults);
    const std::string id = submit("again");
    ASSERT_TRUE(wait_until([&] {
        return json::serialize(comfyd_->job(id)).find("interrupted") != std::string::npos;
    })) << comfyd_->log();
    clock_.set(-kBackS);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded") << comfyd_->log();
}

}  // namespace
}  // namespace comfyd::support
