// A job that does the same as one before goes to the worker that still has its results.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

json::object plain_picture(int color) {
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 0}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "plain"}}})"
    );
    graph.at("1").at("inputs").as_object()["color"] = color;
    return graph;
}

TEST(ResultsKept, EqualJobsGoToOneWorker) {
    net::IoThread thread("doubles");
    thread.start();
    std::array<std::unique_ptr<ComfyDouble>, 2> gpus;
    ComfydOptions with;
    with.arguments = {"--no-engine", "--set", "fleet.poll_ms=100"};
    for (auto& gpu : gpus) {
        gpu = std::make_unique<ComfyDouble>(thread.context(), DoubleOptions{});
        gpu->start();
        with.arguments.insert(with.arguments.end(), {"--worker", gpu->url()});
    }
    {
        Comfyd comfyd(with);
        ASSERT_TRUE(wait_until([&] {
            return comfyd.http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 2;
        })) << comfyd.log();
        for (int i = 0; i < 5; ++i) {
            const std::string id = comfyd.submit(plain_picture(7));
            EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded");
        }
    }
    const auto [least, most] =
        std::minmax({gpus[0]->executions().total, gpus[1]->executions().total});
    EXPECT_EQ(least, 0U);
    EXPECT_EQ(most, 5U);
    gpus = {};
    thread.stop();
}

}  // namespace
}  // namespace comfyd::support
