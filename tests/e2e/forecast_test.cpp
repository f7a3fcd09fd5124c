// A forecast out of days that comfyd has seen, by the real binary: its wall clock jumps from one
// day to the next.
#include <gmock/gmock.h>

#include "local_comfyui_support.hpp"
#include "support/shared_number.hpp"

namespace comfyd::support {
namespace {

using testing::DoubleNear;

constexpr std::int64_t kHour = 3'600;
constexpr std::int64_t kDay = 24 * kHour;

class Forecast : public LocalComfyUi {
protected:
    // A pool of which is told what it would do: jobs wait, and no machine is started.
    void serve() {
        machines_folder_ = "machines-desk";
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments =
                {"--no-engine",
                 "--config",
                 folder_.write(
                     "comfyd.yaml",
                     "providers:\n  desk: {kind: process, gpus: any, dir: " +
                         (folder_ / "ComfyUI") +
                         "}\n"
                         "pools:\n  - name: default\n    size: 0\n    dry_run: true\n"
                         "    offers: [{provider: desk}]\n"
                 )},
            .environment =
                {{"PYTHONPATH", folder_ / "modules"},
                 {"LD_PRELOAD", COMFYD_SHIFTED_CLOCK},
                 {"COMFYD_TEST_CLOCK", clock_.path()}},
            .data = folder_ / "data",
        });
    }
    // In the tenth minute of an hour, so that none turns meanwhile.
    void go_to(std::int64_t after_first) {
        clock_.set(first_ + after_first - to_unix_ms(SystemClock().now()) / 1'000);
    }
    Time hour(std::int64_t after_first) const {
        return std::chrono::floor<std::chrono::hours>(from_unix_ms((first_ + after_first) * 1'000));
    }
    json::value decision() {
        return comfyd_->http().get("/admin/v1/fleet/decisions").json_at("/now/0");
    }
    bool decides(const std::function<bool(const json::value&)>& wanted) {
        return wait_until([&] {
            const json::value made = decision();
            return made.is_object() && wanted(made);
        });
    }
    bool waits(std::int64_t jobs) {
        return decides([jobs](const json::value& made) {
            return made.at("numbers").at("waiting") == jobs;
        });
    }
    // They come, are seen, and are given up; the GPU-seconds that they would have taken.
    double come(int jobs) {
        std::vector<std::string> ids;
        for (int i = 0; i < jobs; ++i) {
            json::object graph = text_to_image("fox " + std::to_string(++submitted_));
            graph.at("3").at("inputs").as_object()["steps"] = 10'000;
            ids.push_back(comfyd_->submit(graph));
        }
        EXPECT_TRUE(waits(jobs)) << json::serialize(decision()) << comfyd_->log();
        const double seconds =
            decision().at("numbers").at("waiting_gpu_seconds").to_number<double>();
        for (const std::string& id : ids) {
            comfyd_->http().post("/api/v2/jobs/" + id + "/cancel", "");
        }
        EXPECT_TRUE(waits(0)) << json::serialize(decision());
        return seconds;
    }
    json::value forecast() {
        return comfyd_->http().get("/v2/pools/default/forecast").json_at("/hours/0");
    }

    SharedNumber clock_{folder_ / "clock"};
    const std::int64_t first_ = to_unix_ms(SystemClock().now()) / 1'000 / kHour * kHour + 600;
    int submitted_ = 0;
};

TEST_F(Forecast, IsTheMedianOfPastDaysWithTheErrorThatItHadBefore) {
    constexpr int kJobs = 4;
    go_to(-kHour);
    serve();
    ASSERT_TRUE(decides([](const json::value&) { return true; })) << comfyd_->log();
    const auto told = comfyd_->http().get("/v2/pools/default/forecast").json();
    EXPECT_TRUE(told.at("hours").as_array().empty()) << "nothing is known yet";
    go_to(0);
    const double first = come(kJobs) / kHour;
    ASSERT_GT(first, 0.1) << "less would be as good as nothing";
    go_to(kDay);
    come(2 * kJobs);
    comfyd_->restart();
    go_to(2 * kDay);
    come(2 * kJobs);
    go_to(3 * kDay);
    EXPECT_TRUE(decides([](const json::value& made) { return made.at("because") == "forecast"; }))
        << json::serialize(decision());
    come(1);
    ASSERT_TRUE(wait_until([&] {
        const json::value made = forecast();
        return made.is_object() && made.at("days") == 3;
    })) << json::serialize(forecast());
    const json::value made = forecast();
    EXPECT_EQ(made.at("hour").as_string(), to_rfc3339(hour(3 * kDay)));
    EXPECT_THAT(made.at("machines").to_number<double>(), DoubleNear(2 * first, 0.01));
    // Of yesterday it would have been three times a half of what came on the first day.
    EXPECT_THAT(made.at("error").to_number<double>(), DoubleNear(0.25, 0.01));
    EXPECT_TRUE(made.at("trusted").as_bool());
}

}  // namespace
}  // namespace comfyd::support
