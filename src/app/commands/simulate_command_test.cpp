#include "app/commands/simulate_command.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/id.hpp"
#include "ledger/sqlite_ledger.hpp"
#include "net/test_support.hpp"

namespace comfyd::app {
namespace {

using testing::HasSubstr;

class SimulateCommand : public testing::Test {
protected:
    SimulateCommand() {
        std::filesystem::create_directories(folder_);
        flags_.synthetic = true;
        flags_.made.jobs = 200;
        flags_.fleet = "2xL40S";
    }
    ~SimulateCommand() override { std::filesystem::remove_all(folder_); }

    std::string file(const char* name) const { return (folder_ / name).string(); }
    static std::string read(const std::string& path) {
        std::ifstream in(path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::string refusal() const {
        const auto text = simulate_text(flags_, true);
        EXPECT_FALSE(text);
        return text ? "" : text.error().message;
    }

    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() /
        ("comfyd-simulate-" + Uuid::make(SystemClock().now()).to_string());
    SimulateFlags flags_;
};

TEST_F(SimulateCommand, ComparesPoliciesAndFleets) {
    flags_.policies = "finish-time,pressure";
    flags_.add = "3xL40S";
    const auto text = simulate_text(flags_, true);
    ASSERT_TRUE(text) << text.error().message;
    for (const char* part :
         {"200 jobs", "finish-time +3xL40S", "pressure +3xL40S", "makespan", "assumptions"}) {
        EXPECT_THAT(*text, HasSubstr(part));
    }
    EXPECT_EQ(*simulate_text(flags_, true), *text) << "the same every time";
}

TEST_F(SimulateCommand, SaysWhetherLoadsAheadOfJobsPay) {
    flags_.prewarm = true;
    flags_.policies = "finish-time,pressure";
    flags_.made.rate = 0.05;
    flags_.made.models = 20;
    const auto text = simulate_text(flags_, true);
    ASSERT_TRUE(text) << text.error().message;
    for (const char* part :
         {"finish-time +prewarm", "loads ahead of jobs", "finish-time: Loading models ahead of"}) {
        EXPECT_THAT(*text, HasSubstr(part));
    }
    EXPECT_THAT(*text, testing::Not(HasSubstr("pressure +prewarm"))) << "it is no policy of ours";
    EXPECT_EQ(*simulate_text(flags_, true), *text) << "the same every time";
}

TEST_F(SimulateCommand, ScalingIsComparedWithFixedFleetsAndTheRulesOfOthers) {
    flags_.elastic.is_wanted = true;
    flags_.made.rate = 0.5;
    const auto text = simulate_text(flags_, true);
    ASSERT_TRUE(text) << text.error().message;
    for (const char* part : {"200 jobs", "comfyd, idle 300 s", "fixed", "Knative", "KEDA", "%"}) {
        EXPECT_THAT(*text, HasSubstr(part));
    }
    EXPECT_EQ(*simulate_text(flags_, true), *text) << "the same every time";
    flags_.elastic.usd_per_hour = 0.4;
    flags_.elastic.spot_hours = 4;
    flags_.settings.merge_max = 8;
    EXPECT_THAT(
        *simulate_text(flags_, true),
        HasSubstr("With 0 to 60 machines at 0.40 USD an hour, taken back after 4 h on average, and "
                  "up to 8 jobs in a run, this would have cost ")
    );
    flags_.elastic.stock_outs = 2;
    EXPECT_THAT(*simulate_text(flags_, true), HasSubstr("on average, 2 times out of stock, and"));
}

TEST_F(SimulateCommand, AMadeUpDayHasMachinesThatAreTakenBackAndTimesWithoutStock) {
    flags_ = {};
    flags_.elastic.is_wanted = true;
    const auto text = simulate_text(flags_, true);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_THAT(*text, HasSubstr("taken back after 4 h on average, 3 times out of stock"));
    EXPECT_THAT(*text, HasSubstr("who knew all beforehand"));
}

TEST_F(SimulateCommand, WhatCannotBeScaledSoIsRefusedByItsFlag) {
    flags_.elastic.is_wanted = true;
    const auto refused = [this](const char* flag, auto change) {
        const SimulateFlags before = flags_;
        change(flags_);
        EXPECT_THAT(refusal(), HasSubstr(flag));
        flags_ = before;
    };
    refused("--min", [](SimulateFlags& flags) { flags.elastic.min = 100; });
    refused("--max", [](SimulateFlags& flags) { flags.elastic.max = 0; });
    refused("--spare", [](SimulateFlags& flags) { flags.elastic.spare = -1; });
    refused("--idle-timeout", [](SimulateFlags& flags) { flags.elastic.idle_timeout_s = -1; });
    refused("--start-seconds", [](SimulateFlags& flags) { flags.elastic.start_s = 1e9; });
    refused("--spot-hours", [](SimulateFlags& flags) { flags.elastic.spot_hours = 0.005; });
    refused("--spot-hours", [](SimulateFlags& flags) { flags.elastic.spot_hours = -1; });
    refused("--stock-outs", [](SimulateFlags& flags) { flags.elastic.stock_outs = -1; });
    refused("--usd-per-hour", [](SimulateFlags& flags) { flags.elastic.usd_per_hour = -1; });
    refused("--merge", [](SimulateFlags& flags) { flags.settings.merge_max = 0; });
    refused("--html", [](SimulateFlags& flags) { flags.html = "page.html"; });
    refused("--days", [](SimulateFlags& flags) {
        flags.synthetic = false;
        flags.elastic.days = 99;
    });
}

TEST_F(SimulateCommand, ATraceThatWasWrittenGivesTheSameAnswer) {
    flags_.output = file("trace.jsonl");
    flags_.html = file("page.html");
    flags_.svg = file("plots.svg");
    const auto made = simulate_text(flags_, true);
    ASSERT_TRUE(made);
    EXPECT_THAT(read(flags_.html), HasSubstr("</html>"));
    EXPECT_THAT(read(flags_.svg), HasSubstr("</svg>"));
    SimulateFlags again;
    again.trace = flags_.output;
    again.fleet = flags_.fleet;
    const auto read_back = simulate_text(again, true);
    ASSERT_TRUE(read_back);
    EXPECT_THAT(*read_back, HasSubstr("200 jobs"));
}

TEST_F(SimulateCommand, AFileOfGpuTypesCounts) {
    std::ofstream(file("gpus.json")) << R"({"Mine": {"speed": 4, "load_mb_per_s": 5000}})";
    flags_.gpus = file("gpus.json");
    flags_.fleet = "1xMine";
    EXPECT_TRUE(simulate_text(flags_, true));
    std::ofstream(file("gpus.json")) << R"({"Mine": {"speed": -4}})";
    EXPECT_THAT(refusal(), HasSubstr("Mine"));
    std::ofstream(file("gpus.json")) << "nonsense";
    EXPECT_THAT(refusal(), HasSubstr("gpus.json"));
}

TEST_F(SimulateCommand, RecordsWhatAServerWasAskedFor) {
    net::test::Loop loop;  // outlives the ledger, which resumes its callers there
    const auto succeeds = [&](auto task) { EXPECT_TRUE(loop.run(std::move(task))); };
    SystemClock clock;
    const auto ledger = ledger::SqliteLedger::open({.path = folder_ / "comfyd.db"}, clock);
    ASSERT_TRUE(ledger);
    scheduler::Profile profile;
    profile.shape = "a shape";
    profile.models = {{"checkpoint/a.safetensors", 4'000'000'000}};
    for (int i = 0; i < 12; ++i) {
        jobs::Spec spec;
        spec.tenant = i % 3 == 0 ? "small" : "large";
        spec.dialect = "test";
        spec.workflow = "{}";
        spec.requirement = Requirement::decode("KSampler");
        profile.requirement = spec.requirement;
        spec.profile = i % 4 == 0 ? nullptr : std::make_shared<scheduler::Profile>(profile);
        const Time now = clock.now();
        jobs::NewJob job{jobs::make_job(JobId::make(now), spec, now), spec};
        const jobs::Job made = job.change.job;
        succeeds((*ledger)->accept(std::move(job)));
        if (i == 0) {
            continue;  // still waits
        }
        auto started = jobs::start(made, "w1", made.sequence + 1, now);
        succeeds((*ledger)->commit(*started));
        const Time end = now + Millis(i == 5 ? 60'000 : 2'000);
        auto completed = jobs::complete(started->job, {}, {}, started->job.sequence + 1, end);
        succeeds((*ledger)->commit(*completed));
    }
    flags_.synthetic = false;
    flags_.record = folder_.string();
    flags_.output = file("trace.jsonl");
    const auto text = simulate_text(flags_, true);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_THAT(*text, HasSubstr("12 jobs"));
    EXPECT_THAT(*text, HasSubstr("2 kinds, 2 tenants"));
    std::ifstream in(flags_.output);
    const auto trace = simulate::read_trace(in);
    ASSERT_TRUE(trace);
    for (const simulate::TraceProfile& one : trace->profiles) {
        EXPECT_NEAR(one.seconds, 2, 1e-6) << one.profile->shape;
    }
    for (const simulate::TraceJob& job : trace->jobs) {
        EXPECT_EQ(job.factor, 1) << "the one that took a minute has loaded models";
    }
    EXPECT_THAT(read(flags_.output), HasSubstr("checkpoint/a.safetensors"));
}

TEST_F(SimulateCommand, SaysWhatIsWrong) {
    flags_.fleet = "8xAbacus";
    EXPECT_THAT(refusal(), HasSubstr("L40S"));
    flags_.fleet = "1xL40S";
    flags_.policies = "clever";
    EXPECT_THAT(refusal(), HasSubstr("finish-time"));
    flags_.policies = "fifo";
    flags_.arrivals = "never";
    EXPECT_THAT(refusal(), HasSubstr("bursty"));
    flags_.arrivals = "poisson";
    flags_.trace = "x";
    EXPECT_THAT(refusal(), HasSubstr("--record"));
    flags_.synthetic = false;
    flags_.trace = file("absent.jsonl");
    EXPECT_THAT(refusal(), HasSubstr("absent.jsonl"));
    flags_.trace.clear();
    flags_.record = folder_.string();
    EXPECT_THAT(refusal(), HasSubstr("comfyd.db"));
}

}  // namespace
}  // namespace comfyd::app
