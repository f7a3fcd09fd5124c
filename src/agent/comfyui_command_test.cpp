#include "agent/comfyui_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "agent/program.hpp"
#include "net/descriptor.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::agent {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

TEST(ComfyUiEnvironment, HasWhatComputesAndNoSecret) {
    const std::vector<std::string> all{
        "PATH=/usr/bin",
        "CUDA_VISIBLE_DEVICES=GPU-1",
        "PYTORCH_CUDA_ALLOC_CONF=x",
        "COMFYD_WORKER_TOKEN=secret",
        "COMFYD_GATEWAY=https://x",
        "RUNPOD_API_KEY=secret",
        "HF_TOKEN=secret",
        "AWS_SECRET_ACCESS_KEY=secret",
        "NVIDIA_API_KEY=secret",
        "PYTHON_PASSWORD=secret",
        "EDITOR=vi",
        "HTTP_PROXY=http://user:pass@x",
    };
    EXPECT_THAT(
        clean_environment(all, {}),
        ElementsAre("PATH=/usr/bin", "CUDA_VISIBLE_DEVICES=GPU-1", "PYTORCH_CUDA_ALLOC_CONF=x")
    );
    // What is asked for by name comes along, but for what is ours.
    EXPECT_THAT(
        clean_environment(all, {"HF_TOKEN", "COMFYD_WORKER_TOKEN", "EDITOR"}),
        UnorderedElementsAre(
            "PATH=/usr/bin",
            "CUDA_VISIBLE_DEVICES=GPU-1",
            "PYTORCH_CUDA_ALLOC_CONF=x",
            "HF_TOKEN=secret",
            "EDITOR=vi"
        )
    );
}

TEST(ComfyUiCommand, HasFoldersOfItsOwnAndListensOnLoopbackAlone) {
    const support::TempDir folder;
    folder.write("ComfyUI/main.py", "");
    folder.write("pack/__init__.py", "");
    CommandOptions options;
    options.comfyui = folder / "ComfyUI";
    options.python = "/bin/sh";
    options.folder = folder / "one";
    options.node_pack = folder / "pack";
    options.arguments = {"--lowvram"};
    ASSERT_TRUE(prepare(options));
    ASSERT_TRUE(prepare(options));  // again, as after a restart
    const auto command = comfyui_command(options, 8200, {});
    ASSERT_TRUE(command) << command.error().message;
    EXPECT_THAT(
        command->arguments,
        IsSupersetOf({
            std::string("/bin/sh"),
            folder / "ComfyUI/main.py",
            std::string("--listen"),
            std::string("127.0.0.1"),
            std::string("8200"),
            std::string("--disable-auto-launch"),
            folder / "one/output",
            folder / "one/temp",
            folder / "one/input",
            folder / "one/user",
            "sqlite:///" + (folder / "one/user/comfyui.db"),
            std::string("--lowvram"),
        })
    );
    EXPECT_TRUE(std::filesystem::is_directory(folder / "one/output"));
    EXPECT_TRUE(std::filesystem::exists(folder / "one/custom_nodes/pack/__init__.py"));
}

TEST(ComfyUiCommand, PacksThatComeLaterHaveAFolderThatIsEmptyAtFirst) {
    const support::TempDir folder;
    folder.write("ComfyUI/main.py", "");
    folder.write("ComfyUI/custom_nodes/theirs/__init__.py", "");
    folder.write("ComfyUI/comfyd_nodes/of-before/__init__.py", "");
    folder.write("pack/__init__.py", "");
    CommandOptions options;
    options.comfyui = folder / "ComfyUI";
    options.python = "/bin/sh";
    options.folder = folder / "ComfyUI";  // whoever has one for both loses nothing
    options.node_pack = folder / "pack";
    options.has_packs = true;
    ASSERT_TRUE(prepare(options));
    EXPECT_TRUE(std::filesystem::is_empty(packs_of(options)));
    EXPECT_TRUE(std::filesystem::exists(folder / "ComfyUI/custom_nodes/theirs/__init__.py"));
    const auto command = comfyui_command(options, 8200, {});
    ASSERT_TRUE(command);
    const auto flag = std::ranges::find(command->arguments, "--extra-model-paths-config");
    ASSERT_NE(flag, command->arguments.end());
    EXPECT_EQ(
        support::read_file(*std::next(flag)),
        "comfyd:\n  custom_nodes: \"" + (folder / "ComfyUI/custom_nodes") + "\\n" +
            (folder / "ComfyUI/comfyd_nodes") + "\\n\"\n"
    );
}

TEST(ComfyUiCommand, WhatCannotBeIsSaid) {
    const support::TempDir folder;
    folder.write("ComfyUI/main.py", "");
    CommandOptions good;
    good.comfyui = folder / "ComfyUI";
    good.python = "sh";
    good.folder = folder / "one";
    ASSERT_TRUE(prepare(good));
    CommandOptions options = good;
    options.comfyui = folder.path();
    EXPECT_EQ(prepare(options).error().code, Code::config_invalid);
    options = good;
    options.python = "no-such-python";
    EXPECT_EQ(prepare(options).error().code, Code::config_invalid);
    for (const char* flag : {"--listen", "--listen=0.0.0.0", "--port"}) {
        options = good;
        options.arguments = {flag, "0.0.0.0"};
        EXPECT_EQ(prepare(options).error().code, Code::config_invalid) << flag;
    }
    options = good;
    options.node_pack = folder / "no-pack";
    EXPECT_EQ(prepare(options).error().code, Code::config_invalid);
    options = good;
    options.sandbox = SandboxLevel::basic;
    EXPECT_FALSE(comfyui_command(options, 1, {}));  // of a system that can do nothing
}

TEST(FreePort, AnotherOneWhereItIsTaken) {
    const net::Descriptor taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(taken.number(), name, size), 0);
    ASSERT_EQ(::listen(taken.number(), 1), 0);
    ASSERT_EQ(::getsockname(taken.number(), name, &size), 0);
    const std::uint16_t port = free_port(ntohs(address.sin_port));
    EXPECT_NE(port, 0);
    EXPECT_NE(port, ntohs(address.sin_port));
}

TEST(Processes, TheirMemoryAndAge) {
    EXPECT_GT(memory_of(::getpid()), 1U << 20);
    EXPECT_EQ(memory_of(0), 0U);
    EXPECT_GT(started_at(::getpid()), 0U);
    EXPECT_EQ(started_at(0x3fffffff), 0U);
}

}  // namespace
}  // namespace comfyd::agent
