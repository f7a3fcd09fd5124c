// A pool that has no machine now: what is asked of it is judged by what its machines could last
// run, also after a restart, until they would be made with other software.
#include <gmock/gmock.h>

#include "local_comfyui_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

constexpr int kRefused = 422;

class PoolAtZero : public LocalComfyUi {
protected:
    // The pool, with a template of its own.
    void start_with(const std::string& env, int size) {
        if (comfyd_) {
            comfyd_->stop();
        }
        machines_folder_ = "machines-desk";
        const std::string file = folder_.write(
            "comfyd.yaml",
            "providers:\n"
            "  desk: {kind: process, gpus: any, dir: " +
                (folder_ / "ComfyUI") + ", ports: " + ports() + "}\n" +
                "pools:\n"
                "  - name: default\n"
                "    size: " +
                std::to_string(size) + "\n" + "    template: {env: {MODE: " + env +
                "}}\n"
                "    offers: [{provider: desk}]\n"
        );
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments = {"--no-engine", "--config", file},
            .environment = {{"PYTHONPATH", folder_ / "modules"}},
            .data = folder_ / "data",
        });
    }
    bool is_empty() {
        return resize(0).status == 200 && wait_until([&] { return machines().empty(); }, kLong);
    }
    Reply submit(const json::object& workflow) {
        return comfyd_->http().post_json("/api/v2/jobs", {{"workflow", workflow}});
    }
    static json::object with_unknown_node() {
        json::object graph = text_to_image("a fox");
        graph["99"] = {{"class_type", "OfNoPack"}, {"inputs", json::object()}};
        graph["100"] = {
            {"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{"99", 0}}}}
        };
        return graph;
    }
    static json::object with_unknown_model() {
        json::object graph = text_to_image("a fox");
        for (auto& node : graph) {
            json::object& inputs = node.value().as_object().at("inputs").as_object();
            if (inputs.contains("ckpt_name")) {
                inputs["ckpt_name"] = "nobody-has-this.safetensors";
            }
        }
        return graph;
    }
    void expect_judged() {
        const Reply unknown = submit(with_unknown_node());
        EXPECT_EQ(unknown.status, kRefused) << unknown.body;
        EXPECT_THAT(unknown.body, HasSubstr("OfNoPack"));
        const Reply model = submit(with_unknown_model());
        EXPECT_EQ(model.status, kRefused) << model.body;
        EXPECT_THAT(model.body, HasSubstr("nobody-has-this"));
    }
};

TEST_F(PoolAtZero, IsJudgedByWhatItCouldLastRunUntilThatIsAnother) {
    start_with("first", 1);
    EXPECT_EQ(submit(with_unknown_node()).status, 201) << "nothing was known";
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    ASSERT_TRUE(wait_until([&] { return submit(with_unknown_node()).status == kRefused; }, kLong));
    expect_judged();
    ASSERT_TRUE(is_empty()) << comfyd_->log();
    expect_judged();
    for (int i = 0; i < 2; ++i) {
        start_with("first", 0);
        expect_judged();
        EXPECT_EQ(submit(text_to_image("a fox")).status, 201) << "it waits for a machine";
    }
    start_with("second", 0);
    EXPECT_EQ(submit(with_unknown_node()).status, 201) << "other machines may have it";
    EXPECT_EQ(submit(with_unknown_model()).status, 201);
    start_with("first", 0);
    expect_judged();
}

// A machine keeps the template that it was made from.
TEST_F(PoolAtZero, WhatAnOlderMachineCanRunSaysNothingOfTheNext) {
    start_with("first", 1);
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    ASSERT_TRUE(wait_until([&] { return submit(with_unknown_node()).status == kRefused; }, kLong));
    start_with("second", 1);
    ASSERT_TRUE(wait_until([&] { return submit(with_unknown_node()).status == kRefused; }, kLong))
        << "it is there";
    ASSERT_TRUE(is_empty()) << comfyd_->log();
    EXPECT_TRUE(wait_until([&] { return submit(with_unknown_node()).status == 201; }, kLong));
}

}  // namespace
}  // namespace comfyd::support
