#include "base/gpus.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/find_program.hpp"
#include "base/nvidia_smi.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::uint64_t kGib = 1ULL << 30;

class Gpus : public testing::Test {
protected:
    // The driver's library, which tells this.
    GpuReader library(const std::string& lines, Millis time_max = Millis(30'000)) {
        tell(lines);
        return GpuReader({COMFYD_FAKE_NVML, "", time_max});
    }
    void tell(const std::string& lines) {
        ::setenv("COMFYD_FAKE_GPUS", folder_.write("gpus", lines).c_str(), 1);
    }
    std::string program(const std::string& script) {
        const std::string file = folder_.write("nvidia-smi", "#!/bin/sh\n" + script);
        ::chmod(file.c_str(), 0700);
        return file;
    }
    GpuReading ask_program(const std::string& script, Millis time_max = Millis(30'000)) {
        return GpuReader({"", program(script), time_max}).look();
    }

    support::TempDir folder_;
};

TEST_F(Gpus, TheLibraryTellsThemAndWhoUsesThem) {
    const auto reading = library(
                             "GPU-5a|NVIDIA H200|150000000000|149000000000|812:2566000000 90:?\n"
                             "GPU-6b|NVIDIA GeForce RTX 4090|25000000000|25000000000|\n"
    )
                             .look();
    EXPECT_EQ(reading.source, "NVML");
    ASSERT_THAT(reading.gpus, SizeIs(2)) << reading.problem;
    EXPECT_EQ(reading.gpus[0].uuid, "GPU-5a");
    EXPECT_EQ(reading.gpus[0].name, "NVIDIA H200");
    EXPECT_EQ(reading.gpus[0].memory_total_bytes, 150'000'000'000U);
    EXPECT_EQ(reading.gpus[0].memory_free_bytes, 149'000'000'000U);
    ASSERT_THAT(reading.gpus[0].processes, SizeIs(2));
    EXPECT_EQ(reading.gpus[0].processes[0].pid, 812);
    EXPECT_EQ(reading.gpus[0].processes[0].memory_bytes, 2'566'000'000U);
    EXPECT_FALSE(reading.gpus[0].processes[1].memory_bytes);
    EXPECT_EQ(reading.gpus[1].uuid, "GPU-6b");
    EXPECT_THAT(reading.gpus[1].processes, SizeIs(0));
}

TEST_F(Gpus, ManyProcessesAreAllTold) {
    std::string line = "GPU-1|H200|10|10|";
    for (int pid = 1; pid <= 1'000; ++pid) {
        line += std::to_string(pid) + ":5 ";
    }
    const auto reading = library(line + "\n").look();
    ASSERT_THAT(reading.gpus, SizeIs(1)) << reading.problem;
    EXPECT_THAT(reading.gpus[0].processes, SizeIs(1'000));
}

TEST_F(Gpus, NonsenseOfTheLibraryIsLeftOut) {
    const auto reading = library(
                             "count 4000000000\n"
                             "|no name|1|1|\n"
                             "GPU-a,GPU-b|two in one|1|1|\n"
                             "GPU-1\tLD_PRELOAD=x|tab|1|1|\n" +
                             ("GPU-" + std::string(500, 'a')) +
                             "|endless|1|1|\n"
                             "GPU-7|bad \x01\xff name|100|900|\n"
                             "GPU-8|shares the computer's memory|0|0|\n"
    )
                             .look();
    ASSERT_THAT(reading.gpus, SizeIs(2)) << reading.problem;
    EXPECT_EQ(reading.gpus[0].name, "bad ?? name");
    EXPECT_EQ(reading.gpus[0].memory_free_bytes, 100U);
    EXPECT_EQ(reading.gpus[1].memory_total_bytes, 0U);
}

TEST_F(Gpus, ALibraryWithoutADriverSaysSo) {
    const auto reading = library("init 9\n").look();
    EXPECT_TRUE(reading.gpus.empty());
    EXPECT_EQ(reading.source, "");
    EXPECT_THAT(reading.problem, HasSubstr("Driver Not Loaded"));
    EXPECT_THAT(library("init 999\n").look().problem, HasSubstr("error 999"));
}

TEST_F(Gpus, ADriverThatHangsHoldsNobodyUp) {
    const std::string goes_on = folder_ / "goes_on";
    const GpuReader reader = library("hang " + goes_on + "\nGPU-1|H200|10|10|\n", Millis(50));
    for (int i = 0; i < 3; ++i) {
        const auto reading = reader.look();
        EXPECT_TRUE(reading.gpus.empty());
        EXPECT_THAT(reading.problem, HasSubstr("did not answer"));
    }
    folder_.write("goes_on", "");
    EXPECT_TRUE(support::wait_until([&] { return reader.look().gpus.size() == 1; }));
}

TEST_F(Gpus, WhatChangesIsSeen) {
    const GpuReader reader = library("GPU-1|H200|10|10|\n");
    EXPECT_EQ(reader.look().gpus.at(0).memory_free_bytes, 10U);
    tell("GPU-1|H200|10|4|\nGPU-2|H200|10|10|\n");
    const auto reading = reader.look();
    ASSERT_THAT(reading.gpus, SizeIs(2));
    EXPECT_EQ(reading.gpus[0].memory_free_bytes, 4U);
}

TEST_F(Gpus, WhereThereIsNoLibraryTheProgramIsAsked) {
    const std::string smi = program(R"(
case "$1" in
--query-gpu=*) echo "GPU-77, 24564, 23000, NVIDIA GeForce RTX 3090, Founders"
               echo "GPU-78, [N/A], [N/A], NVIDIA GB10" ;;
*) echo "GPU-77, 41, 1024"; echo "GPU-77, 42, [N/A]"; echo "GPU-none, 43, 1" ;;
esac
)");
    const auto reading = GpuReader({"libno-such-library.so.1", smi, Millis(30'000)}).look();
    EXPECT_EQ(reading.source, "nvidia-smi");
    ASSERT_THAT(reading.gpus, SizeIs(2)) << reading.problem;
    EXPECT_EQ(reading.gpus[0].name, "NVIDIA GeForce RTX 3090, Founders");
    EXPECT_EQ(reading.gpus[0].memory_total_bytes, 24'564ULL << 20);
    ASSERT_THAT(reading.gpus[0].processes, SizeIs(2));
    EXPECT_EQ(reading.gpus[0].processes[0].memory_bytes, kGib);
    EXPECT_FALSE(reading.gpus[0].processes[1].memory_bytes);
    EXPECT_EQ(reading.gpus[1].memory_total_bytes, 0U);
}

TEST_F(Gpus, TheProgramIsFoundByItsName) {
    program("echo GPU-5, 10, 10, H200");
    const std::string before = std::getenv("PATH");
    ::setenv("PATH", (folder_.path().string() + "::.:" + before).c_str(), 1);
    const auto reading = GpuReader({"", "nvidia-smi", Millis(30'000)}).look();
    const std::string none = find_program("comfyd-has-no-such-program");
    ::setenv("PATH", before.c_str(), 1);
    EXPECT_THAT(reading.gpus, SizeIs(1)) << reading.problem;
    EXPECT_EQ(none, "");
}

TEST_F(Gpus, AProgramThatFailsHangsOrTalksNonsenseIsNoGpu) {
    EXPECT_THAT(ask_program("exit 9").problem, HasSubstr("status 9"));
    EXPECT_THAT(ask_program("sleep 600 & wait", Millis(50)).problem, HasSubstr("ms"));
    EXPECT_THAT(ask_program("exec cat /dev/zero").problem, HasSubstr("too much"));
    EXPECT_THAT(ask_program("echo NVIDIA-SMI has failed").problem, HasSubstr("form"));
    EXPECT_THAT(ask_program("head -c 100000 /dev/urandom").gpus, SizeIs(0));
    const auto none = ask_program("true");
    EXPECT_EQ(none.source, "nvidia-smi");
    EXPECT_THAT(none.gpus, SizeIs(0));
}

TEST_F(Gpus, ComputersWithoutAnySayWhy) {
    const auto reading = GpuReader({"libno-such.so", "/no/such/program", Millis(30'000)}).look();
    EXPECT_TRUE(reading.gpus.empty());
    EXPECT_THAT(reading.problem, HasSubstr("libno-such.so"));
    EXPECT_THAT(reading.problem, HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace comfyd
