#include "fleet/attempt_relay.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace comfyd::fleet {
namespace {

class Listener final : public jobs::AttemptListener {
public:
    void on_progress(const jobs::Progress& progress) override {
        heard += "progress " + progress.current_node + "; ";
    }
    void on_preview(std::string bytes, std::string) override { heard += "preview " + bytes + "; "; }
    void on_output(const jobs::Output& output) override {
        heard += "output " + output.node_id + "; ";
    }
    void on_usage(const jobs::Usage& usage) override {
        heard += "usage " + std::to_string(usage.images) + "; ";
    }
    bool wants_worker_messages() const override { return is_curious; }

    std::string heard;
    bool is_curious = false;
};

jobs::Progress at_node(std::string node) {
    jobs::Progress progress;
    progress.current_node = std::move(node);
    return progress;
}

// The test stands for the machine's thread; the core is run when it says so.
class AttemptRelayTest : public testing::Test {
protected:
    std::size_t run_core() {
        core_.restart();
        return core_.poll();
    }

    boost::asio::io_context core_;
    Listener listener_;
    std::shared_ptr<AttemptRelay> relay_ =
        std::make_shared<AttemptRelay>(core_.get_executor(), listener_);
};

TEST_F(AttemptRelayTest, WhatHasComeIsOnePostAndInOrder) {
    jobs::Output output;
    output.node_id = "9";
    jobs::Usage usage;
    usage.images = 2;
    relay_->on_progress(at_node("1"));
    relay_->on_preview("picture", "image/png");
    relay_->on_progress(at_node("2"));
    relay_->on_output(output);
    relay_->on_usage(usage);
    EXPECT_EQ(listener_.heard, "");
    EXPECT_EQ(run_core(), 1U);
    EXPECT_EQ(listener_.heard, "progress 1; preview picture; progress 2; output 9; usage 2; ");
    EXPECT_EQ(run_core(), 0U);

    relay_->on_progress(at_node("3"));
    EXPECT_EQ(run_core(), 1U);
    EXPECT_TRUE(listener_.heard.ends_with("progress 3; "));
}

TEST_F(AttemptRelayTest, WorkerMessagesAreWantedAsTheCoreLastSaid) {
    EXPECT_FALSE(relay_->wants_worker_messages());
    listener_.is_curious = true;
    relay_->on_progress(at_node("1"));
    EXPECT_FALSE(relay_->wants_worker_messages());
    run_core();
    EXPECT_TRUE(relay_->wants_worker_messages());
}

}  // namespace
}  // namespace comfyd::fleet
