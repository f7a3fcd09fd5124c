#include "fleet/comfy_attempt.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "fleet/test_support.hpp"
#include "support/fault_proxy.hpp"

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

using ComfyAttemptTest = FleetTest;

TEST_F(ComfyAttemptTest, RunsAWorkflowAndStoresItsPicture) {
    start({.delay = Millis(10)});
    auto made = begin(assignment(kPicture));
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), 1U);
    const auto& output = result->outputs[0];
    EXPECT_EQ(output.node_id, "3");
    EXPECT_EQ(output.type, "image");
    EXPECT_EQ(output.content_type, "image/png");
    EXPECT_EQ(output.folder, "output");
    EXPECT_THAT(output.name, HasSubstr("test_"));
    EXPECT_THAT(output.hash, HasSubstr("blake3:"));
    EXPECT_EQ(
        result->ui_outputs.at("3").at("images").at(0).at("filename").as_string(), output.name
    );
    EXPECT_EQ(made->recorder.outputs(), 1U);

    const auto asset = wait(store_->get("local", output.asset));
    ASSERT_TRUE(asset);
    EXPECT_EQ(asset->job, made->assignment.job);
    EXPECT_EQ(asset->size_bytes, output.size_bytes);
    const auto bytes = wait(store_->read(*asset, 1'000'000));
    EXPECT_THAT(*bytes, HasSubstr("PNG"));

    const auto progress = made->recorder.progress();
    ASSERT_FALSE(progress.empty());
    EXPECT_EQ(progress.back().nodes_total, 3);
    EXPECT_EQ(progress.back().nodes_done, 3);
    EXPECT_LT(progress.back().value, 1);
    EXPECT_EQ(executions(made->assignment.prompt), 1U);
    const auto info = worker_info();
    EXPECT_EQ(info.completed, 1U);
    EXPECT_EQ(info.failed, 0U);
    EXPECT_EQ(info.status, jobs::WorkerStatus::idle);
}

TEST_F(ComfyAttemptTest, SendsItsOwnIdsAndExtraData) {
    start();
    auto job = assignment(kPicture);
    job.extra_data["extra_pnginfo"] = json::object{{"workflow", json::object{{"id", "w"}}}};
    const std::string prompt_id = job.prompt.to_string();
    ASSERT_TRUE(run(std::move(job)));
    const auto prompts = comfy_->accepted_prompts();
    ASSERT_EQ(prompts.size(), 1U);
    EXPECT_EQ(prompts[0].at("prompt_id").as_string(), prompt_id);
    EXPECT_TRUE(prompts[0].at("extra_data").at("client_id").as_string().starts_with("comfyd-"));
    EXPECT_EQ(prompts[0].at("extra_data").at("extra_pnginfo").at("workflow").at("id"), "w");
}

TEST_F(ComfyAttemptTest, CachedPromptsHaveTheirOutputsToo) {
    start({.cache = true});
    const auto first = run(assignment(kPicture));
    const auto second = run(assignment(kPicture));
    ASSERT_TRUE(first && second);
    ASSERT_EQ(second->outputs.size(), 1U);
    EXPECT_EQ(second->outputs[0].name, first->outputs[0].name);
    EXPECT_EQ(second->outputs[0].hash, first->outputs[0].hash);
    EXPECT_NE(second->outputs[0].asset, first->outputs[0].asset);
}

// The history would not answer.
TEST_F(ComfyAttemptTest, ARunWhoseMessagesAllCameNeedsNoHistory) {
    start();
    support::Faults faults;
    faults.http_500 = 1'000;
    faults.http_500_path = "/history";
    comfy_->set_faults(faults);
    for (const auto& workflow : {std::string(kPicture), picture_with("out_of_order")}) {
        const auto result = run(assignment(workflow));
        ASSERT_TRUE(result) << result.error().message;
        ASSERT_EQ(result->outputs.size(), 1U);
        EXPECT_TRUE(result->ui_outputs.contains("3"));
    }
}

TEST_F(ComfyAttemptTest, WhatOneOfItsMessagesDidNotSayIsReadFromTheHistory) {
    start();
    for (const char* fault : {"bad_json", "garbage", "duplicate", "ws_disconnect=4"}) {
        const auto result = run(assignment(picture_with(fault)));
        ASSERT_TRUE(result) << fault << ": " << result.error().message;
        ASSERT_EQ(result->outputs.size(), 1U) << fault;
        EXPECT_EQ(result->outputs[0].node_id, "3") << fault;
        ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    }
}

// Nobody waits for it: it is heard all the same, a little later.
TEST_F(ComfyAttemptTest, ProgressThatNobodyWaitsForIsStillTold) {
    start({.delay = Millis(200)});
    wants_progress_ = false;
    auto made = begin(assignment(kPicture));
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    const auto told = made->recorder.progress();
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().nodes_total, 3);
    EXPECT_TRUE(std::ranges::is_sorted(told, {}, &jobs::Progress::value));
}

TEST_F(ComfyAttemptTest, TextsAndTemporaryPicturesAreOutputs) {
    start();
    const auto result = run(assignment(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 3, "color": 1}},
        "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}},
        "3": {"class_type": "PreviewAny", "inputs": {"source": "hello"}}})"));
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), 4U);
    int texts = 0;
    for (const auto& output : result->outputs) {
        if (output.type == "text") {
            ++texts;
            EXPECT_EQ(output.name, "3_0.txt");
        } else {
            EXPECT_EQ(output.folder, "temp");
        }
    }
    EXPECT_EQ(texts, 1);
}

TEST_F(ComfyAttemptTest, PicturesSentByWebSocketAreOutputs) {
    start();
    const auto result = run(assignment(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 2, "color": 1}},
        "2": {"class_type": "SaveImageWebsocket", "inputs": {"images": ["1", 0]}}})"));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(result->outputs.empty());
    for (const auto& output : result->outputs) {
        EXPECT_EQ(output.content_type, "image/png");
        EXPECT_EQ(output.node_id, "2");
    }
}

TEST_F(ComfyAttemptTest, FilesOfAWorkerThatWasStartedAnewAreNotTakenForItsOwn) {
    options_.download_retry = Millis(1);
    options_.download_tries = 14;
    support::Faults hidden;
    hidden.missing_output = 1'000'000;
    start({.faults = hidden});
    auto first = begin(assignment(kPicture));
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle)) << "its prompt has ended there";

    const std::uint16_t port = comfy_->port();
    comfy_->crash();
    // Another process, whose disk is empty: it counts its files from the beginning.
    comfy_ = std::make_unique<support::ComfyDouble>(
        double_thread_.context(), support::DoubleOptions{.port = port}
    );
    comfy_->start();
    std::string other(kPicture);
    const auto color = other.find("\"color\"");
    ASSERT_NE(color, std::string::npos);
    other.insert(other.find_first_of("0123456789", color), "7");
    std::optional<RunResult> second;
    ASSERT_TRUE(support::wait_until([&] {
        second = run(assignment(other));
        return second->has_value();
    }));
    ASSERT_EQ((*second)->outputs.size(), 1U);

    const auto result = end(*first);
    ASSERT_FALSE(result) << result->outputs[0].hash << " " << (*second)->outputs[0].hash;
    EXPECT_EQ(result.error().code, Code::worker_lost) << result.error().message;
}

TEST_F(ComfyAttemptTest, NoOutputsIsASuccess) {
    start();
    // Its pictures are only sent by WebSocket, and nothing is sent.
    const auto result = run(assignment(R"({
        "1": {"class_type": "EmptyImage",
              "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 1, "_fault": "ws_silence"}},
        "2": {"class_type": "SaveImageWebsocket", "inputs": {"images": ["1", 0]}}})"));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->outputs.empty());
}

TEST_F(ComfyAttemptTest, ARefusedWorkflowSaysWhere) {
    start();
    const auto result = run(assignment(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "missing.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "x"}}})")
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_rejected);
    EXPECT_THAT(result.error().message, HasSubstr("node 1 (LoadImage)"));
    EXPECT_TRUE(result.error().details.contains("error"));
    EXPECT_TRUE(result.error().details.at("node_errors").as_object().contains("1"));
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle) << "the worker is not to blame";
}

TEST_F(ComfyAttemptTest, InputFilesAreUploadedOnce) {
    start();
    const auto added = wait(store_->add("picture bytes", new_input("local", "cat.png")));
    ASSERT_TRUE(added);
    json::object reference{{"__type", "core/ASSET"}};
    reference["info"] =
        json::object{{"id", added->asset.id.to_string()}, {"hash", added->asset.hash}};
    json::object prompt = *json::parse_object(R"({
        "1": {"class_type": "LoadImage", "inputs": {}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "x"}}})"
    );
    prompt.at("1").at("inputs").as_object()["image"] = reference;
    const std::string workflow = json::serialize(prompt);
    for (int i = 0; i < 2; ++i) {
        const auto result = run(assignment(workflow));
        ASSERT_TRUE(result) << result.error().message;
    }
    const auto prompts = comfy_->accepted_prompts();
    const auto name =
        std::string(prompts.at(0).at("prompt").at("1").at("inputs").at("image").as_string());
    EXPECT_THAT(name, testing::StartsWith("comfyd_"));
    EXPECT_THAT(name, testing::EndsWith(".png"));
    EXPECT_EQ(prompts.at(1).at("prompt").at("1").at("inputs").at("image").as_string(), name);
}

TEST_F(ComfyAttemptTest, AMissingInputIsNamed) {
    start();
    const auto result = run(assignment(
        R"({"1": {"class_type": "LoadImage", "inputs": {"image":
            {"__type": "core/ASSET", "info": {"id": "01900000-0000-7000-8000-000000000000"}}}}})"
    ));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::missing_asset);
    EXPECT_THAT(result.error().message, HasSubstr("node 1"));
    EXPECT_TRUE(comfy_->accepted_prompts().empty());
}

TEST_F(ComfyAttemptTest, AForeignTenantsInputIsNotUsed) {
    start();
    const auto added = wait(store_->add("secret", new_input("somebody", "cat.png")));
    for (const std::string& info :
         {R"({"id":")" + added->asset.id.to_string() + "\"}",
          R"({"hash":")" + added->asset.hash + "\"}"}) {
        const auto result = run(assignment(
            R"({"1": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": )" +
            info + "}}}}"
        ));
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, Code::missing_asset);
    }
}

TEST_F(ComfyAttemptTest, ANodeErrorIsToldWhole) {
    start();
    const auto result = run(assignment(picture_with("node_error")));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    const auto& details = result.error().details;
    EXPECT_FALSE(details.at("node_id").as_string().empty());
    EXPECT_FALSE(details.at("node_type").as_string().empty());
    EXPECT_FALSE(details.at("exception_type").as_string().empty());
    EXPECT_FALSE(details.at("traceback").as_array().empty());
    EXPECT_EQ(worker_info().failed, 1U);
}

TEST_F(ComfyAttemptTest, OutOfMemoryIsRecognised) {
    start();
    EXPECT_EQ(run(assignment(picture_with("oom"))).error().code, Code::out_of_memory);
}

TEST_F(ComfyAttemptTest, AnInterruptionBySomebodyElseMayBeTriedAgain) {
    start();
    EXPECT_EQ(run(assignment(picture_with("interrupted"))).error().code, Code::worker_lost);
}

TEST_F(ComfyAttemptTest, ASilentSocketLosesNothing) {
    start();
    const auto silent = run(assignment(picture_with("ws_silence")));
    ASSERT_TRUE(silent) << silent.error().message;
    EXPECT_EQ(silent->outputs.size(), 1U);
    const auto next = run(assignment(kPicture));
    ASSERT_TRUE(next) << next.error().message;
    const auto prompts = comfy_->accepted_prompts();
    const auto client_id = [&](std::size_t i) {
        return prompts.at(i).at("extra_data").at("client_id");
    };
    EXPECT_NE(client_id(0), client_id(1))
        << "a new id, whose socket nothing of the old one can silence";
}

TEST_F(ComfyAttemptTest, ARefusedSocketLosesNothing) {
    options_.socket_wait = Millis(20);
    support::DoubleOptions options;
    options.faults.ws_refuse = true;
    start(std::move(options));
    const auto result = run(assignment(kPicture));
    ASSERT_TRUE(result) << result.error().message;
}

class StrangeMessages : public FleetTest, public testing::WithParamInterface<const char*> {};

TEST_P(StrangeMessages, DoNotMatter) {
    start({.delay = Millis(20)});
    const auto result = run(assignment(picture_with(GetParam())));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    StrangeMessages,
    testing::Values(
        "bad_json", "duplicate", "out_of_order", "garbage", "ws_disconnect=3", "big_preview=100000"
    )
);

TEST_F(ComfyAttemptTest, ALostPromptIsNoticed) {
    start();
    const auto result = run(assignment(picture_with("lose_prompt")));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_lost);
}

TEST_F(ComfyAttemptTest, ACrashIsNoticedAndTheWorkerComesBack) {
    start();
    auto made = begin(assignment(picture_with("hang_interruptible")));
    ASSERT_TRUE(support::wait_until([&] { return executions(made->assignment.prompt) == 1; }));
    comfy_->crash();
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_lost);
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    EXPECT_FALSE(worker_info().last_error.empty());
    comfy_->start();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    const auto again = run(assignment(kPicture));
    ASSERT_TRUE(again) << again.error().message;
}

TEST_F(ComfyAttemptTest, AQuickRestartIsNoticed) {
    start();
    auto made = begin(assignment(picture_with("hang_interruptible")));
    ASSERT_TRUE(support::wait_until([&] { return executions(made->assignment.prompt) == 1; }));
    comfy_->crash();
    comfy_->start();
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_lost);
}

TEST_F(ComfyAttemptTest, AnUnreachableWorkerIsGivenUpAndItsPromptTakenOffLater) {
    options_.lost_after = Millis(100);
    options_.timeouts.request = Millis(50);
    start();
    auto made = begin(assignment(picture_with("hang_interruptible")));
    ASSERT_TRUE(support::wait_until([&] { return executions(made->assignment.prompt) == 1; }));
    support::Faults faults;
    faults.slow_http = 200;
    comfy_->set_faults(faults);
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_lost);
    EXPECT_EQ(comfy_->queue_remaining(), 1U);
    comfy_->set_faults({});
    EXPECT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 0; }));
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
}

TEST_F(ComfyAttemptTest, AnUnansweredSubmissionIsNotRepeated) {
    support::DoubleOptions options;
    options.faults.no_response = 1;
    start(std::move(options));
    auto made = begin(assignment(kPicture));
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(executions(made->assignment.prompt), 1U);
    EXPECT_EQ(comfy_->accepted_prompts().size(), 1U);
}

TEST_F(ComfyAttemptTest, AServerErrorAtSubmissionIsTheWorkersFault) {
    start();
    support::Faults faults;
    faults.http_500 = 1;
    faults.http_500_path = "/prompt";
    comfy_->set_faults(faults);
    const auto result = run(assignment(kPicture));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_unavailable);
}

TEST_F(ComfyAttemptTest, OutputsThatComeLateAreWaitedFor) {
    start();
    support::Faults faults;
    faults.missing_output = 2;
    comfy_->set_faults(faults);
    const auto result = run(assignment(kPicture));
    ASSERT_TRUE(result) << result.error().message;
}

TEST_F(ComfyAttemptTest, OutputsThatNeverComeAreSaid) {
    start();
    support::Faults faults;
    faults.missing_output = 1000;
    comfy_->set_faults(faults);
    const auto result = run(assignment(kPicture));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::output_unavailable);
    EXPECT_THAT(result.error().message, HasSubstr("node 3"));
}

TEST_F(ComfyAttemptTest, NamesThatCannotBeStoredAreNotTheClientsFault) {
    start();
    auto graph = *json::parse_object(kPicture);
    graph["3"].as_object()["inputs"].as_object()["filename_prefix"] = "a\tb";
    const auto result = run(assignment(json::serialize(graph)));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::output_unavailable);
    EXPECT_THAT(result.error().message, HasSubstr("node 3"));
}

TEST_F(ComfyAttemptTest, CancelStopsARunningPrompt) {
    start();
    auto made = begin(assignment(picture_with("hang_interruptible")));
    ASSERT_TRUE(support::wait_until([&] { return executions(made->assignment.prompt) == 1; }));
    stop(*made, Code::cancelled);
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_EQ(comfy_->queue_remaining(), 0U);
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle);
    EXPECT_TRUE(run(assignment(kPicture)));
}

TEST_F(ComfyAttemptTest, CancelDoesNotWaitForOutputsThatDoNotCome) {
    using support::FaultProxy;
    comfy_ =
        std::make_unique<support::ComfyDouble>(double_thread_.context(), support::DoubleOptions{});
    comfy_->start();
    FaultProxy network(comfy_->port());
    make_bare_fleet();
    on_core([&] {
        const std::string url = "http://127.0.0.1:" + std::to_string(network.port());
        EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = url}));
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    auto graph = *json::parse_object(kPicture);
    graph["1"].as_object()["inputs"].as_object()["batch_size"] = 3;
    network.inflict_after(FaultProxy::Way::to_server, "/view?", FaultProxy::Fault::swallow_both);
    auto made = begin(assignment(json::serialize(graph)));
    ASSERT_TRUE(support::wait_until([&] { return network.has_struck(); }));
    stop(*made, Code::cancelled);
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
}

TEST_F(ComfyAttemptTest, CancelTakesAWaitingPromptOutAndLeavesTheRunningOneAlone) {
    start();
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "same", .url = comfy_->url()})); });
    ASSERT_TRUE(support::wait_until([&] {
        return worker_info("same").status == jobs::WorkerStatus::idle;
    }));
    auto other = begin(assignment(picture_with("hang_interruptible")));
    ASSERT_TRUE(support::wait_until([&] { return executions(other->assignment.prompt) == 1; }));
    auto waiting = begin(assignment(kPicture), "same");
    ASSERT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 2; }));
    stop(*waiting, Code::cancelled);
    EXPECT_EQ(end(*waiting).error().code, Code::cancelled);
    EXPECT_EQ(executions(waiting->assignment.prompt), 0U);
    EXPECT_EQ(comfy_->queue_remaining(), 1U) << "the other one still runs";
    stop(*other, Code::cancelled);
    EXPECT_EQ(end(*other).error().code, Code::cancelled);
}

TEST_F(ComfyAttemptTest, OldWorkersAreInterruptedOnlyForOurOwnPrompt) {
    start({.version = "0.3.45"});
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "same", .url = comfy_->url()})); });
    ASSERT_TRUE(support::wait_until([&] {
        return worker_info("same").status == jobs::WorkerStatus::idle;
    }));
    auto other = begin(assignment(picture_with("slow=150")));
    ASSERT_TRUE(support::wait_until([&] { return executions(other->assignment.prompt) == 1; }));
    auto waiting = begin(assignment(kPicture), "same");
    ASSERT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 2; }));
    stop(*waiting, Code::cancelled);
    EXPECT_EQ(end(*waiting).error().code, Code::cancelled);
    EXPECT_TRUE(end(*other)) << "was not interrupted";
}

TEST_F(ComfyAttemptTest, TheTimeoutInterrupts) {
    start();
    auto job = assignment(picture_with("hang_interruptible"));
    job.timeout = Millis(100);
    const auto result = run(std::move(job));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::execution_timeout);
    EXPECT_EQ(comfy_->queue_remaining(), 0U);
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle);
}

TEST_F(ComfyAttemptTest, APromptThatDoesNotStopTakesTheWorkerDown) {
    options_.cancel_grace = Millis(100);
    start();
    auto job = assignment(picture_with("hang"));
    job.timeout = Millis(50);
    const auto result = run(std::move(job));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::execution_timeout);
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::down);
    EXPECT_THAT(worker_info().last_error, HasSubstr("does not stop"));
    comfy_->crash();
    comfy_->start();
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::idle)) << "a restart heals it";
}

TEST_F(ComfyAttemptTest, ADeadExecutionThreadIsRecognised) {
    start();
    support::Faults faults;
    faults.dead_worker = true;
    comfy_->set_faults(faults);
    const auto result = run(assignment(kPicture));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_lost);
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::down);
    EXPECT_THAT(worker_info().last_error, HasSubstr("dead"));
}

TEST_F(ComfyAttemptTest, ShutdownLeavesThePromptAndAReattachFindsItRunning) {
    start();
    auto job = assignment(picture_with("slow=200"));
    auto first = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return executions(job.prompt) == 1; }));
    stop(*first, Code::shutting_down);
    EXPECT_EQ(end(*first).error().code, Code::shutting_down);
    EXPECT_EQ(comfy_->queue_remaining(), 1U);
    job.reattach = true;
    const auto result = run(job);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs.size(), 1U);
    EXPECT_EQ(executions(job.prompt), 1U) << "not run twice";
}

TEST_F(ComfyAttemptTest, AReattachThatIsStoppedWhileItLooksTakesThePromptBack) {
    start();
    auto job = assignment(picture_with("slow=600000"));
    auto first = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return executions(job.prompt) == 1; }));
    stop(*first, Code::shutting_down);
    end(*first);
    support::Faults faults;
    faults.slow_http = 300;
    comfy_->set_faults(faults);
    job.reattach = true;
    auto again = begin(job);
    stop(*again, Code::cancelled);
    EXPECT_EQ(end(*again).error().code, Code::cancelled);
    EXPECT_EQ(comfy_->queue_remaining(), 0U) << "nobody would stop it any more";
}

TEST_F(ComfyAttemptTest, AReattachFindsAFinishedPrompt) {
    start();
    auto job = assignment(kPicture);
    ASSERT_TRUE(run(job));
    job.reattach = true;
    const auto result = run(job);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs.size(), 1U);
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(ComfyAttemptTest, AReattachSubmitsWhatTheWorkerDoesNotHave) {
    start();
    auto job = assignment(kPicture);
    job.reattach = true;
    const auto result = run(job);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(executions(job.prompt), 1U);
}

TEST_F(ComfyAttemptTest, PreviewsArePassedOn) {
    for (const std::string version : {"0.33.0", "0.3.45"}) {
        start({.version = version, .delay = Millis(20), .previews = true});
        auto made = begin(assignment(R"({
            "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
            "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "cat", "clip": ["1", 1]}},
            "3": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
            "4": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "positive": ["2", 0], "negative": ["2", 0],
                  "latent_image": ["3", 0], "seed": 1, "steps": 4, "cfg": 7, "sampler_name": "euler",
                  "scheduler": "normal", "denoise": 1}},
            "5": {"class_type": "VAEDecode", "inputs": {"samples": ["4", 0], "vae": ["1", 2]}},
            "6": {"class_type": "SaveImage", "inputs": {"images": ["5", 0], "filename_prefix": "x"}}})"
        ));
        const auto result = end(*made);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_GT(made->recorder.previews(), 0U) << version;
        bool saw_steps = false;
        for (const auto& progress : made->recorder.progress()) {
            saw_steps =
                saw_steps || (progress.current_node_class == "KSampler" && progress.steps == 4);
        }
        EXPECT_TRUE(saw_steps) << version;
        wait(fleet_->stop());
        on_core([&] { fleet_.reset(); });
    }
}

// As on a machine under load: the history has the end long before the socket has brought all that
// was said until then.
TEST_F(ComfyAttemptTest, MessagesThatAreFarBehindAreWaitedFor) {
    options_.settle = Millis(1'000);
    wants_messages_ = true;
    start({.message_pause = Millis(200)});
    auto made = begin(assignment(kPicture));
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    const auto said = made->recorder.said();
    EXPECT_EQ(std::ranges::count(said, "execution_start"), 1);
    EXPECT_EQ(std::ranges::count(said, "executed"), 1) << testing::PrintToString(said);
    EXPECT_EQ(std::ranges::count(said, "execution_success"), 1) << testing::PrintToString(said);
}

TEST_F(ComfyAttemptTest, ABrokenWorkflowIsRefusedHere) {
    start();
    EXPECT_EQ(run(assignment("{\"1\":")).error().code, Code::invalid_workflow);
}

}  // namespace
}  // namespace comfyd::fleet
