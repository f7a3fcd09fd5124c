#include "fleet/providers/local_pool.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "support/temp_dir.hpp"

namespace comfyd::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LocalPools : public testing::Test {
protected:
    LocalPools() {
        for (const char* file : {"main.py", "nodes.py", "comfy/sd.py"}) {
            folder_.write(std::string("ComfyUI/") + file, "");
        }
        settings_.dir = folder_ / "ComfyUI";
        settings_.python = program("python", "echo; echo looked");
        gpus_ = {
            "",
            program(
                "nvidia-smi",
                "case $1 in --query-gpu*)\n"
                "echo GPU-a, 24000, 2000, RTX 4090\necho GPU-b, 80000, 80000, H100\nesac"
            ),
            Millis(30'000)
        };
    }
    std::string program(const std::string& name, const std::string& script) {
        const std::string file = folder_.write(name, "#!/bin/sh\n" + script + "\n");
        ::chmod(file.c_str(), 0700);
        return file;
    }
    Result<LocalPool> pool() { return local_pool(settings_, folder_.path() / "machines", gpus_); }
    std::string refusal() {
        const auto made = pool();
        EXPECT_FALSE(made);
        EXPECT_TRUE(made || made.error().code == Code::config_invalid);
        return made ? "" : made.error().message;
    }

    support::TempDir folder_;
    LocalSettings settings_;
    GpuSources gpus_;
};

TEST_F(LocalPools, FillTheGpusThatThereAre) {
    settings_.per_gpu = 3;
    settings_.recycle_jobs = 500;
    settings_.arguments = {"--fast"};
    const auto made = pool();
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->size, 6);
    EXPECT_EQ(made->provider.comfyui, folder_.path() / "ComfyUI");
    EXPECT_EQ(made->provider.python, settings_.python);
    EXPECT_EQ(made->provider.folder, folder_.path() / "machines");
    EXPECT_EQ(made->provider.sharing.per_gpu, 3);
    EXPECT_THAT(made->provider.gpus_used, ElementsAre("GPU-a", "GPU-b"));
    EXPECT_THAT(made->provider.gpu_kinds, ElementsAre("RTX 4090", "H100"));
    EXPECT_THAT(made->provider.comfyui_arguments, ElementsAre("--fast"));
    EXPECT_EQ(made->provider.environment.at("COMFYD_RECYCLE_JOBS"), "500");
}

TEST_F(LocalPools, AsManyAsTheMemoryAllows) {
    settings_.per_gpu = 8;
    settings_.gpu_memory_mb = 20'000;
    EXPECT_EQ(pool().value().size, 1 + 4);
    settings_.gpu_memory_mb = 500'000;
    EXPECT_THAT(refusal(), HasSubstr("too much for every GPU"));
}

TEST_F(LocalPools, GpusAreChosenByNumberOrUuid) {
    settings_.gpus = {"1", "GPU-b"};
    const auto made = pool();
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->size, 1);
    EXPECT_THAT(made->provider.gpus_used, ElementsAre("GPU-b"));
    settings_.gpus = {"2"};
    EXPECT_THAT(refusal(), HasSubstr("none of the GPUs here: 0 = GPU-a (RTX 4090), 1 = GPU-b"));
}

TEST_F(LocalPools, WithoutAnNvidiaGpuItIsSaidWhatToDo) {
    gpus_ = {"libno-such.so", "", Millis(30'000)};
    EXPECT_THAT(refusal(), HasSubstr("install NVIDIA's driver; for other GPUs set it to any"));
    settings_.gpus = {"any"};
    settings_.per_gpu = 2;
    EXPECT_EQ(pool().value().size, 2);
    EXPECT_TRUE(pool().value().provider.finds_gpu_itself);
    EXPECT_THAT(pool().value().provider.gpu_kinds, IsEmpty()) << "nobody knows";
    settings_.gpus = {};
    settings_.arguments = {"--cpu"};
    EXPECT_TRUE(pool().value().provider.finds_gpu_itself);
    EXPECT_THAT(pool().value().provider.gpu_kinds, ElementsAre("cpu"));
}

TEST_F(LocalPools, AFolderWithoutComfyUiIsRefused) {
    settings_.dir = folder_ / "nowhere";
    EXPECT_THAT(refusal(), HasSubstr("which is no folder"));
    settings_.dir = "";
    EXPECT_THAT(refusal(), HasSubstr("which is no folder"));
    settings_.dir = folder_.path();
    EXPECT_THAT(refusal(), HasSubstr("but ComfyUI is in '" + folder_ / "ComfyUI" + "'"));
    settings_.dir = folder_ / "ComfyUI/comfy";
    EXPECT_THAT(refusal(), HasSubstr("but ComfyUI is in '" + folder_ / "ComfyUI" + "'"));
    folder_.write("else/else/main.py", "");
    settings_.dir = folder_ / "else/else";
    EXPECT_THAT(refusal(), HasSubstr("there must be main.py, nodes.py and the folder comfy"));
}

TEST_F(LocalPools, PythonIsFoundAndLookedAt) {
    settings_.python = "";
    std::filesystem::create_directories(folder_ / "ComfyUI/venv/bin");
    const std::string own = program("ComfyUI/venv/bin/python", "echo; echo looked");
    EXPECT_EQ(pool().value().provider.python, own);
    program("ComfyUI/venv/bin/python", "echo torch,yaml; echo looked");
    EXPECT_THAT(refusal(), HasSubstr("lacks what ComfyUI needs (torch,yaml)"));
    program("ComfyUI/venv/bin/python", "exit 3");
    EXPECT_THAT(refusal(), HasSubstr("does not run Python code"));
    settings_.python = "/no/such/python";
    EXPECT_THAT(refusal(), HasSubstr("which is no program"));
}

TEST_F(LocalPools, TheRealPythonUnderstandsWhatItIsAsked) {
    settings_.python = "/usr/bin/python3";
    const auto made = pool();
    EXPECT_TRUE(made || made.error().message.find("lacks what ComfyUI needs") != std::string::npos)
        << made.error().message;
}

TEST_F(LocalPools, WallsAreTheAgents) {
    EXPECT_THAT(pool().value().provider.agent_arguments, IsEmpty());
    settings_.sandbox = "basic";
    settings_.readable = {folder_ / "ComfyUI/comfy/../comfy"};
    settings_.writable = {folder_.path()};
    EXPECT_THAT(
        pool().value().provider.agent_arguments,
        ElementsAre(
            "--sandbox",
            "basic",
            "--read",
            folder_ / "ComfyUI/comfy",
            "--write",
            folder_.path().string()
        )
    );
    settings_.readable = {"/no/such/folder"};
    EXPECT_THAT(refusal(), HasSubstr("'comfyui.readable' names '/no/such/folder'"));
}

TEST_F(LocalPools, PacksAreCheckedAtStart) {
    const std::string commit(40, 'a');
    settings_.packs = {"https://example.com/a/pack@" + commit, folder_ / "own"};
    EXPECT_THAT(refusal(), HasSubstr("not in the list of packs that are allowed"));
    settings_.packs_allowed = {"https://example.com/a/", folder_ / "own"};
    const auto made = pool();
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->provider.packs.size(), 2U);
    EXPECT_EQ(made->provider.packs[0].url, "https://example.com/a/pack");
    EXPECT_EQ(made->provider.packs[0].commit, commit);
    settings_.packs = {"https://example.com/a/pack@main"};
    EXPECT_THAT(refusal(), HasSubstr("all of its 40 digits"));
    settings_.packs = {"pack"};
    EXPECT_THAT(refusal(), HasSubstr("neither a folder nor https://…@COMMIT"));
}

TEST(LocalSettings, AreReadFromTexts) {
    const auto read = read_local_settings(
        {{"dir", "/opt/ComfyUI"},
         {"arguments", "--fast, --preview-method,auto"},
         {"gpus", "0,1"},
         {"per_gpu", "3"},
         {"gpu_memory_mb", "8000"},
         {"ports", "9000-9010"}}
    );
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->dir, "/opt/ComfyUI");
    EXPECT_THAT(read->arguments, ElementsAre("--fast", "--preview-method", "auto"));
    EXPECT_THAT(read->gpus, ElementsAre("0", "1"));
    EXPECT_EQ(read->per_gpu, 3);
    EXPECT_EQ(read->gpu_memory_mb, 8'000);
    EXPECT_EQ(read->port_first, 9'000);
    EXPECT_EQ(read->port_last, 9'010);
    EXPECT_THAT(read_local_settings({})->packs, IsEmpty());
}

TEST(LocalSettings, WhatIsWrongIsNamed) {
    const auto message = [](const std::string& name, const std::string& text) {
        const auto read = read_local_settings({{name, text}});
        return read ? std::string() : read.error().message;
    };
    EXPECT_THAT(message("per_gpu", "0"), HasSubstr("'comfyui.per_gpu' must be a number from 1"));
    EXPECT_THAT(message("per_gpu", "two"), HasSubstr("not 'two'"));
    EXPECT_THAT(message("gpu_memory_mb", "-1"), HasSubstr("gpu_memory_mb"));
    EXPECT_THAT(message("gpu_memory_mb", "99999999999999999999"), HasSubstr("gpu_memory_mb"));
    for (const char* ports : {"", "x", "9000-", "-1", "9010-9000", "1-70000", "1-2-3"}) {
        EXPECT_THAT(message("ports", ports), HasSubstr("as 8188-8288")) << ports;
    }
    EXPECT_EQ(message("ports", "9000"), "");
    EXPECT_THAT(message("sandbox", "none"), HasSubstr("minimal, basic or strict"));
    EXPECT_EQ(message("sandbox", "strict"), "");
    EXPECT_THAT(message("pergpu", "1"), HasSubstr("is no setting; there are"));
}

}  // namespace
}  // namespace comfyd::fleet
