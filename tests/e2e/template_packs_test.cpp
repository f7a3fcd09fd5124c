// Custom nodes that a pool's template names: installed by the agent before its ComfyUI starts, or
// the reason why that cannot be.
#include <gmock/gmock.h>

#include "local_comfyui_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

class TemplatePacks : public LocalComfyUi {
protected:
    void start_with(const std::string& packs) {
        machines_folder_ = "machines-desk";
        const std::string file = folder_.write(
            "comfyd.yaml",
            "fleet: {packs_allowed: [" + (folder_ / "packs/") +
                "]}\n"
                "providers:\n"
                "  desk: {kind: process, gpus: any, dir: " +
                (folder_ / "ComfyUI") + ", ports: " + ports() +
                "}\n"
                "pools:\n"
                "  - name: default\n"
                "    size: 1\n"
                "    template: {packs: [" +
                packs +
                "]}\n"
                "    offers: [{provider: desk}]\n"
        );
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments = {"--no-engine", "--config", file},
            .environment = {{"PYTHONPATH", folder_ / "modules"}},
            .data = folder_ / "data",
        });
    }
    // What is told of the machines, and of those that are gone.
    std::string fleet() { return comfyd_->http().get("/admin/v1/fleet").body; }
};

TEST_F(TemplatePacks, AreThereBeforeComfyUiStarts) {
    folder_.write("packs/mine/__init__.py", "NODE_CLASS_MAPPINGS = {}\n");
    start_with((folder_ / "packs/mine") + ", \"image:" + (folder_ / "packs/theirs") + "\"");
    ASSERT_TRUE(wait_until(
        [&] { return fleet().find("it is not in the image") != std::string::npos; }, kLong
    )) << fleet();
    EXPECT_EQ(ready(), 0U);
    folder_.write("packs/theirs/__init__.py", "");
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << fleet() << comfyd_->log();
    const auto names = machines();
    ASSERT_FALSE(names.empty());
    bool is_there = false;
    for (const std::string& name : names) {
        const std::string work = comfyd_->data() + "/machines-desk/" + name + "/work/";
        is_there = is_there || read_file(work + "comfyd_nodes/mine/__init__.py") ==
                                   "NODE_CLASS_MAPPINGS = {}\n";
        EXPECT_FALSE(std::filesystem::exists(work + "comfyd_nodes/theirs"));
    }
    EXPECT_TRUE(is_there);
}

TEST_F(TemplatePacks, OneThatCannotBeHadFailsTheStartAndSaysWhy) {
    start_with(folder_ / "packs/nowhere");
    EXPECT_TRUE(
        wait_until([&] { return fleet().find("packs/nowhere") != std::string::npos; }, kLong)
    ) << fleet();
    EXPECT_THAT(fleet(), HasSubstr("its ComfyUI failed: the node pack"));
    Process command({COMFYD_BINARY, "fleet", "--url", comfyd_->url()});
    EXPECT_EQ(command.wait(), 0) << command.errors();
    EXPECT_THAT(command.output(), HasSubstr("the node pack"));
}

TEST_F(TemplatePacks, OneThatIsNotAllowedIsRefusedAtTheStart) {
    const std::string file = folder_.write(
        "comfyd.yaml",
        "fleet: {packs_allowed: [/srv/packs/]}\n"
        "providers: {desk: {kind: docker}}\n"
        "pools:\n  - {name: studio, offers: [{provider: desk}], template: {packs: [/srv/other]}}\n"
    );
    Process process({COMFYD_BINARY, "serve", "--data", folder_ / "data", "--config", file});
    EXPECT_NE(process.wait().value_or(0), 0);
    EXPECT_THAT(process.errors(), HasSubstr("studio"));
    EXPECT_THAT(process.errors(), HasSubstr("/srv/other"));
    EXPECT_THAT(process.errors(), HasSubstr("fleet.packs_allowed"));
}

}  // namespace
}  // namespace comfyd::support
