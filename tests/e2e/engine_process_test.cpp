// The engine of `comfyd serve` is a process of its own: what a workflow does to
// it costs that workflow's job, and nobody else.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

// Of the process, by /proc; those that have ended and wait for it are none.
std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (entry.path().filename().native().find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        const std::string text = read_file(entry.path() / "stat");
        const auto name_end = text.rfind(") ");
        if (name_end == std::string::npos) {
            continue;
        }
        char state = 0;
        pid_t of = 0;
        std::istringstream(text.substr(name_end + 2)) >> state >> of;
        if (of == parent && state != 'Z') {
            children.push_back(std::stoi(entry.path().filename()));
        }
    }
    return children;
}

pid_t engine_of(Comfyd& comfyd) {
    std::vector<pid_t> children;
    wait_until([&] {
        children = children_of(comfyd.process().pid());
        return children.size() == 1;
    });
    return children.size() == 1 ? children.front() : 0;
}

bool is_alive(pid_t pid) {
    return ::kill(pid, 0) == 0;
}

// Blurs for much longer than it takes to see that it runs.
json::object long_work() {
    json::object prompt;
    prompt["1"] = {
        {"class_type", "EmptyImage"},
        {"inputs", {{"width", 1024}, {"height", 1024}, {"batch_size", 1}, {"color", 255}}}
    };
    std::string before = "1";
    for (int i = 2; i < 80; ++i) {
        const json::array image{json::value(before), 0};
        before = std::to_string(i);
        prompt[before] = {
            {"class_type", "ImageBlur"},
            {"inputs", {{"image", image}, {"blur_radius", 31}, {"sigma", 10.0}}}
        };
    }
    prompt["shown"] = {
        {"class_type", "PreviewImage"},
        {"inputs", {{"images", json::array{json::value(before), 0}}}}
    };
    return prompt;
}

bool wait_running(Comfyd& comfyd, const std::string& id, int attempt) {
    return wait_until([&] {
        const json::value job = comfyd.job(id);
        return Comfyd::status_of(job) == "running" && job.at("attempt") == attempt;
    });
}

// The engine has the prompt and works on it.
bool wait_progress(Comfyd& comfyd, const std::string& id, int attempt) {
    return wait_until([&] {
        const json::value job = comfyd.job(id);
        return Comfyd::status_of(job) == "running" && job.at("attempt") == attempt &&
               !job.at("progress").is_null();
    });
}

TEST(EngineProcess, IsAWorkerFromTheStart) {
    Comfyd comfyd;
    const Reply workers = comfyd.http().get("/admin/v1/workers");
    EXPECT_EQ(workers.json_at("/workers/0/id"), "engine");
    EXPECT_EQ(workers.json_at("/workers/0/url"), "engine:");
    EXPECT_EQ(workers.json_at("/workers/0/status"), "idle");
    EXPECT_EQ(workers.json_at("/workers/0/gpu"), "cpu");
    EXPECT_EQ(workers.json_at("/workers/0/vram_total"), 0);
    const json::value job = comfyd.wait_finished(comfyd.submit(small_picture()));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
}

TEST(EngineProcess, ItsEndUsesAnAttemptAndTheSecondOneIsTheLast) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    const std::string next = comfyd.submit(small_picture(7));
    for (const int attempt : {1, 2}) {
        ASSERT_TRUE(wait_progress(comfyd, id, attempt));
        const pid_t engine = engine_of(comfyd);
        ASSERT_NE(engine, 0);
        ::kill(engine, SIGKILL);
        ASSERT_TRUE(wait_until([&] { return !is_alive(engine); }));
    }
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
    EXPECT_EQ(job.at("attempt"), 2);
    const std::string message(job.at("error").at("message").as_string());
    EXPECT_NE(message.find("ended twice"), std::string::npos) << message;
    // Others are not held up by it, and the gateway has noticed nothing.
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(next)), "succeeded");
    EXPECT_NE(comfyd.http().get("/metrics").body.find("comfyd_engine_ends 2"), std::string::npos);
}

// As a workflow ends it that meets a defect: by an assertion, a wrong address, a limit.
TEST(EngineProcess, HoweverItEndsItIsThereAgain) {
    Comfyd comfyd;
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGXCPU}) {
        const std::string id = comfyd.submit(long_work());
        ASSERT_TRUE(wait_progress(comfyd, id, 1)) << signal;
        const pid_t engine = engine_of(comfyd);
        ASSERT_NE(engine, 0);
        ::kill(engine, signal);
        ASSERT_TRUE(wait_progress(comfyd, id, 2)) << signal;
        EXPECT_FALSE(is_alive(engine)) << signal;
        comfyd.http().post_json("/api/v2/jobs/" + id + "/cancel", {});
        const json::value next = comfyd.wait_finished(comfyd.submit(small_picture(signal)));
        EXPECT_EQ(Comfyd::status_of(next), "succeeded") << signal << json::serialize(next);
    }
}

json::object node(std::string_view class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

json::object pictures_without_end() {
    json::object prompt;
    for (int i = 0; i < 64; ++i) {
        const std::string id = std::to_string(i);
        prompt[id] = node(
            "EmptyImage", {{"width", 4096}, {"height", 4096}, {"batch_size", 16}, {"color", i}}
        );
        prompt["shown" + id] = node("PreviewImage", {{"images", json::array{json::value(id), 0}}});
    }
    return prompt;
}

json::object text_without_end() {
    json::object prompt;
    prompt["0"] = node("PrimitiveString", {{"value", "again and "}});
    for (int i = 1; i < 60; ++i) {
        const json::array before{json::value(std::to_string(i - 1)), 0};
        prompt[std::to_string(i)] = node(
            "StringConcatenate", {{"string_a", before}, {"string_b", before}, {"delimiter", ""}}
        );
    }
    prompt["shown"] = node("PreviewAny", {{"source", json::array{"59", 0}}});
    return prompt;
}

json::object previews_without_end() {
    json::object prompt;
    prompt["0"] = node("PrimitiveString", {{"value", std::string(200'000, 'x')}});
    for (int i = 0; i < 3'000; ++i) {
        const std::string id = std::to_string(i + 1);
        prompt[id] = node(
            "StringConcatenate",
            {{"string_a", json::array{"0", 0}}, {"string_b", id}, {"delimiter", ""}}
        );
        prompt["shown" + id] = node("PreviewAny", {{"source", json::array{json::value(id), 0}}});
    }
    return prompt;
}

TEST(EngineProcess, WhatWouldTakeAllMemoryFailsAndNobodyElseDoes) {
    constexpr std::chrono::seconds kPatience{120};  // to fill it takes long where others compute
    Comfyd comfyd({.arguments = {"--set", "engine.memory_mb=256"}});
    const pid_t engine = engine_of(comfyd);
    for (const auto& bomb : {pictures_without_end(), text_without_end(), previews_without_end()}) {
        const std::string id = comfyd.submit(bomb);
        const std::string next = comfyd.submit(small_picture(static_cast<int>(bomb.size())));
        const json::value job = comfyd.wait_finished(id, kPatience);
        EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
        const std::string why = json::serialize(job.at("error"));
        EXPECT_NE(why.find("emory"), std::string::npos) << why;
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(next, kPatience)), "succeeded");
    }
    EXPECT_EQ(engine_of(comfyd), engine) << "it told what was too much and went on";
}

// A stopped process stands for one that computes and listens to nobody.
TEST(EngineProcess, AJobPastItsTimeIsEndedWhateverTheProcessDoes) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work(), {{"timeout", 3}});
    ASSERT_TRUE(wait_progress(comfyd, id, 1));
    const pid_t engine = engine_of(comfyd);
    ASSERT_NE(engine, 0);
    ::kill(engine, SIGSTOP);
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "failed");
    EXPECT_EQ(job.at("error").at("code"), "execution_timeout") << json::serialize(job);
    EXPECT_TRUE(wait_until([&] { return !is_alive(engine); }));
    const json::value next = comfyd.wait_finished(comfyd.submit(small_picture()));
    EXPECT_EQ(Comfyd::status_of(next), "succeeded") << json::serialize(next);
}

TEST(EngineProcess, ACancelledJobIsEndedWhateverTheProcessDoes) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    ASSERT_TRUE(wait_progress(comfyd, id, 1));
    const pid_t engine = engine_of(comfyd);
    ASSERT_NE(engine, 0);
    ::kill(engine, SIGSTOP);
    comfyd.http().post_json("/api/v2/jobs/" + id + "/cancel", {});
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "canceled");
    EXPECT_TRUE(wait_until([&] { return !is_alive(engine); }, std::chrono::minutes(3)))
        << comfyd.log();
}

TEST(EngineProcess, HasNothingOfTheGatewaysButItsWork) {
    Comfyd comfyd({.environment = {{"COMFYD_TEST_SECRET", "do not tell"}}});
    const pid_t engine = engine_of(comfyd);
    const std::filesystem::path about = "/proc/" + std::to_string(engine);
    EXPECT_EQ(read_file(about / "environ").find("do not tell"), std::string::npos);
    const std::string status = read_file(about / "status");
    EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
    EXPECT_NE(status.find("Seccomp:\t2"), std::string::npos) << status;
    EXPECT_GT(
        ::getpriority(PRIO_PROCESS, static_cast<id_t>(engine)), ::getpriority(PRIO_PROCESS, 0)
    ) << "the gateway goes first, as nice as this process";
}

TEST(EngineProcess, DoesNotOutliveTheGateway) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    ASSERT_TRUE(wait_running(comfyd, id, 1));
    const pid_t engine = engine_of(comfyd);
    ASSERT_NE(engine, 0);
    comfyd.kill();
    EXPECT_TRUE(wait_until([&] { return !is_alive(engine); }));
    comfyd.start();
    // The gateway's end says nothing about the job.
    ASSERT_TRUE(wait_running(comfyd, id, 1));
    comfyd.http().post_json("/api/v2/jobs/" + id + "/cancel", {});
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "canceled");
    const pid_t second = engine_of(comfyd);
    EXPECT_EQ(comfyd.stop(), 0);
    EXPECT_FALSE(is_alive(second));
}

TEST(EngineProcess, AnOrderlyStopUsesNoAttempt) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    for (int stops = 0; stops < 3; ++stops) {
        ASSERT_TRUE(wait_running(comfyd, id, 1));
        comfyd.stop();
        comfyd.start();
    }
    ASSERT_TRUE(wait_running(comfyd, id, 1));
    comfyd.http().post_json("/api/v2/jobs/" + id + "/cancel", {});
    comfyd.wait_finished(id);
}

TEST(EngineOfRoot, WorksInTheHomeOfAUser) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root serves from folders that others own";
    }
    constexpr uid_t kSomebody = 65'534;
    const TempDir home;
    ASSERT_EQ(::chown(home.path().c_str(), kSomebody, kSomebody), 0);
    ASSERT_EQ(::chmod(home.path().c_str(), 0700), 0);
    ComfydOptions options;
    options.data = home / "comfyd-data";
    Comfyd comfyd(options);
    const json::value job = comfyd.wait_finished(comfyd.submit(small_picture()));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << comfyd.log();
}

}  // namespace
}  // namespace comfyd::support
