// Event streams: order, resuming, listeners of every kind.
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

class Events : public testing::Test {
protected:
    Events() {
        DoubleOptions options;
        options.delay = Millis(400);
        options.previews = true;
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), options);
        worker_->start();
        ComfydOptions serve;
        serve.arguments = {"--no-engine", "--worker", worker_->url(), "--set", "fleet.poll_ms=100"};
        comfyd_ = std::make_unique<Comfyd>(serve);
        wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(1);
        });
    }
    ~Events() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Events, TheV2StreamTellsTheWholeStory) {
    const std::string id = comfyd_->submit(text_to_image("a"));
    auto stream = comfyd_->http().events("/api/v2/jobs/" + id + "/events?previews=1");
    ASSERT_TRUE(stream->wait_end());
    std::set<std::string> types;
    std::uint64_t last = 0;
    double progress = 0;
    for (const SseEvent& event : stream->events()) {
        types.insert(event.type);
        if (!event.id.empty()) {
            const std::uint64_t sequence = std::stoull(event.id);
            EXPECT_GE(sequence, last);
            last = sequence;
        }
        if (event.type == "progress") {
            const double value = event.json().at("value").to_number<double>();
            EXPECT_GE(value, progress);
            EXPECT_LT(value, 1.0);
            progress = value;
        }
    }
    EXPECT_TRUE(types.contains("status"));
    EXPECT_TRUE(types.contains("progress"));
    EXPECT_TRUE(types.contains("preview"));
    EXPECT_EQ(stream->events().back().json().at("status"), "succeeded");
}

TEST_F(Events, AResumedStreamMissesNothingAndRepeatsNothing) {
    const std::string id = comfyd_->submit(text_to_image("a"));
    const std::string path = "/v2/workflows/execution/" + id + "/events";
    std::vector<SseEvent> seen;
    std::string last_id;
    // Cut the connection after every event and go on from there.
    for (int round = 0; round < 200; ++round) {
        net::Headers headers;
        if (!last_id.empty()) {
            headers.set("Last-Event-ID", last_id);
        }
        auto stream = comfyd_->http().events(path, headers);
        const auto next = stream->wait_for([&](const SseEvent& event) {
            return !event.id.empty() || event.type == "close";
        });
        ASSERT_TRUE(next);
        if (next->type == "close") {
            break;
        }
        EXPECT_NE(next->id, last_id);
        last_id = next->id;
        seen.push_back(*next);
    }
    std::vector<std::uint64_t> sequences;
    for (const SseEvent& event : seen) {
        sequences.push_back(std::stoull(event.id));
    }
    EXPECT_TRUE(std::is_sorted(sequences.begin(), sequences.end()));
    EXPECT_EQ(std::adjacent_find(sequences.begin(), sequences.end()), sequences.end())
        << "nothing twice";
    EXPECT_EQ(seen.back().json().at("status"), "completed");
    const bool saw_start = std::any_of(seen.begin(), seen.end(), [](const SseEvent& event) {
        return event.json().at("status") == "processing";
    });
    EXPECT_TRUE(saw_start);
}

TEST_F(Events, TheWebSocketSendsStateProgressAndResult) {
    const std::string id = comfyd_->submit(text_to_image("a"));
    auto socket = comfyd_->http().ws("/v1/workflows/execution/" + id + "/ws");
    ASSERT_TRUE(socket->connected());
    const auto first = socket->next();
    ASSERT_TRUE(first);
    EXPECT_EQ(json::parse(first->data)->at("execution_id"), json::value(id));
    const auto done = socket->wait_for([](const json::value& message) {
        const auto* type = message.as_object().if_contains("type");
        return type != nullptr && *type == "completed";
    });
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->at("result").is_object());
    EXPECT_TRUE(socket->wait_end());
    const std::uint64_t last = done->at("sequence").to_number<std::uint64_t>();
    auto resumed = comfyd_->http().ws(
        "/v1/workflows/execution/" + id + "/ws?since=" + std::to_string(last - 1)
    );
    const auto repeated = resumed->next();
    ASSERT_TRUE(repeated);
    EXPECT_EQ(json::parse(repeated->data)->at("type"), "completed");
}

TEST_F(Events, CancelByWebSocket) {
    const std::string id = comfyd_->submit(text_to_image("a", "hang_interruptible"));
    auto socket = comfyd_->http().ws("/v1/workflows/execution/" + id + "/ws");
    ASSERT_TRUE(socket->connected());
    socket->send("this is not JSON");
    socket->send(R"({"type": "cancel"})");
    const auto cancelled = socket->wait_for([](const json::value& message) {
        const auto* status = message.as_object().if_contains("status");
        return status != nullptr && *status == "cancelled";
    });
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "canceled");
}

TEST_F(Events, AStreamGoesOnAfterARestartOfTheServer) {
    const std::string id = comfyd_->submit(text_to_image("a", "slow=1500"));
    const std::string path = "/v2/workflows/execution/" + id + "/events";
    auto before = comfyd_->http().events(path);
    const auto started = before->wait_for([](const SseEvent& event) {
        return !event.id.empty() && event.json().at("status") == "processing";
    });
    ASSERT_TRUE(started);
    before.reset();
    comfyd_->restart();
    net::Headers headers;
    headers.set("Last-Event-ID", started->id);
    auto after = comfyd_->http().events(path, headers);
    ASSERT_TRUE(after->wait_end());
    for (const SseEvent& event : after->events()) {
        if (!event.id.empty()) {
            EXPECT_GT(std::stoull(event.id), std::stoull(started->id));
        }
    }
    const auto events = after->events();
    ASSERT_GE(events.size(), 2U);
    EXPECT_EQ(events.back().type, "close");
    EXPECT_EQ(events[events.size() - 2].json().at("status"), "completed");
}

TEST_F(Events, TheStreamOfAnEndedJobEnds) {
    const std::string id = comfyd_->submit(text_to_image("a"));
    comfyd_->wait_finished(id);
    for (const std::string& path :
         {"/api/v2/jobs/" + id + "/events",
          "/v1/workflows/execution/" + id + "/events",
          "/api/v1/tasks/" + id + "/events"}) {
        auto stream = comfyd_->http().events(path);
        EXPECT_TRUE(stream->wait_end()) << path;
        EXPECT_FALSE(stream->events().empty()) << path;
    }
}

}  // namespace
}  // namespace comfyd::support
