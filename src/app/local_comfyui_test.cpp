#include "app/local_comfyui.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "support/temp_dir.hpp"

namespace comfyd::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LocalComfyUiTest : public testing::Test {
protected:
    LocalComfyUiTest() {
        for (const char* file : {"main.py", "nodes.py", "comfy/sd.py"}) {
            folder_.write(std::string("ComfyUI/") + file, "");
        }
        config_.data = folder_ / "data";
        config_.comfyui = {
            {"dir", folder_ / "ComfyUI"},
            {"python", program("python", "echo; echo looked")},
            {"per_gpu", "3"},
        };
        gpus_.library = "";
        gpus_.program = program(
            "nvidia-smi", "case $1 in --query-gpu*) echo GPU-a, 24000, 24000, RTX 4090;; esac"
        );
    }
    std::string program(const std::string& name, const std::string& script) {
        const std::string file = folder_.write(name, "#!/bin/sh\n" + script + "\n");
        ::chmod(file.c_str(), 0700);
        return file;
    }

    support::TempDir folder_;
    Config config_;
    GpuSources gpus_;
};

TEST_F(LocalComfyUiTest, IsAPoolThatFillsTheGpus) {
    const auto added = add_local_comfyui(config_, gpus_);
    ASSERT_TRUE(added) << added.error().message;
    ASSERT_THAT(config_.fleet.providers, SizeIs(1));
    EXPECT_EQ(config_.fleet.providers[0].kind, "process");
    ASSERT_THAT(config_.fleet.pools, SizeIs(1));
    EXPECT_EQ(config_.fleet.pools[0].name, "default");
    EXPECT_EQ(config_.fleet.pools[0].size, 3);
    EXPECT_EQ(config_.fleet.pools[0].offers.at(0).provider, config_.fleet.providers[0].name);
    EXPECT_TRUE(check_config(config_));
}

TEST_F(LocalComfyUiTest, IsNothingWithoutAFolder) {
    config_.comfyui.erase("dir");
    EXPECT_TRUE(add_local_comfyui(config_, gpus_));
    EXPECT_THAT(config_.fleet.providers, IsEmpty());
    EXPECT_THAT(config_.fleet.pools, IsEmpty());
}

TEST_F(LocalComfyUiTest, IsRefusedWhereItCannotBe) {
    const auto refusal = [this] {
        const auto added = add_local_comfyui(config_, gpus_);
        return added ? std::string() : added.error().message;
    };
    config_.ledger = "postgres://db/comfyd";
    EXPECT_THAT(refusal(), HasSubstr("one comfyd by itself"));
    config_.ledger = "";
    config_.comfyui["dir"] = folder_ / "nowhere";
    EXPECT_THAT(refusal(), HasSubstr("which is no folder"));
    config_.comfyui["dir"] = folder_ / "ComfyUI";
    fleet::PoolSettings pool;
    pool.name = "default";
    config_.fleet.pools.push_back(pool);
    EXPECT_THAT(refusal(), HasSubstr("is configured already"));
}

}  // namespace
}  // namespace comfyd::app
