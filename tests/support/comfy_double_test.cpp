#include "support/comfy_double.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "net/io_threads.hpp"
#include "support/double/files.hpp"
#include "support/http.hpp"

namespace comfyd::support {
namespace {

json::object save_prompt(int color, std::string fault = {}) {
    json::object save{{"images", json::array{"1", 0}}, {"filename_prefix", "ComfyUI"}};
    if (!fault.empty()) {
        save["_fault"] = fault;
    }
    return {
        {"1",
         json::object{
             {"class_type", "EmptyImage"},
             {"inputs",
              json::object{{"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", color}}},
         }},
        {"2", json::object{{"class_type", "SaveImage"}, {"inputs", std::move(save)}}},
    };
}

json::object text_prompt(std::string text, std::string fault = {}) {
    json::object inputs{{"source", std::move(text)}};
    if (!fault.empty()) {
        inputs["_fault"] = fault;
    }
    return {{"1", json::object{{"class_type", "PreviewAny"}, {"inputs", std::move(inputs)}}}};
}

json::object sampler_prompt(int steps, int batch) {
    const auto node = [](const char* name, json::object inputs) {
        return json::object{{"class_type", name}, {"inputs", std::move(inputs)}};
    };
    const auto link = [](const char* id, int slot) { return json::array{id, slot}; };
    return {
        {"4", node("CheckpointLoaderSimple", {{"ckpt_name", "sd15.safetensors"}})},
        {"5", node("EmptyLatentImage", {{"width", 64}, {"height", 64}, {"batch_size", batch}})},
        {"6", node("CLIPTextEncode", {{"text", "a cat"}, {"clip", link("4", 1)}})},
        {"3",
         node(
             "KSampler",
             {{"seed", 5},
              {"steps", steps},
              {"cfg", 7.5},
              {"sampler_name", "euler"},
              {"scheduler", "normal"},
              {"denoise", 1},
              {"model", link("4", 0)},
              {"positive", link("6", 0)},
              {"negative", link("6", 0)},
              {"latent_image", link("5", 0)}}
         )},
        {"8", node("VAEDecode", {{"samples", link("3", 0)}, {"vae", link("4", 2)}})},
        {"9", node("SaveImage", {{"filename_prefix", "ComfyUI"}, {"images", link("8", 0)}})},
    };
}

class Double : public testing::Test {
protected:
    ~Double() override {
        socket_.reset();
        http_.reset();
        double_.reset();
    }

    void start(DoubleOptions options = {}) {
        thread_.start();
        double_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(options));
        double_->start();
        http_ = std::make_unique<Http>(double_->url());
    }

    void listen(const std::string& client = "me") { socket_ = http_->ws("/ws?clientId=" + client); }

    Reply submit(json::object prompt, json::object more = {}) {
        more["prompt"] = std::move(prompt);
        return http_->post_json("/prompt", more);
    }
    // Submits for the client "me" and returns the id.
    std::string run(json::object prompt) {
        const auto reply = submit(std::move(prompt), {{"client_id", "me"}});
        EXPECT_EQ(reply.status, 200) << reply.body;
        return reply.ok() ? std::string(reply.json().at("prompt_id").get_string()) : "";
    }

    json::value history(const std::string& id) {
        const auto reply = http_->get("/history/" + id);
        const auto document = reply.json();
        const auto* entry = document.is_object() ? document.get_object().if_contains(id) : nullptr;
        return entry ? *entry : kNull;
    }
    json::value wait_history(const std::string& id) {
        EXPECT_TRUE(wait_until([&] { return !history(id).is_null(); }));
        return history(id);
    }

    std::vector<std::string> types_heard() const {
        std::vector<std::string> types;
        for (const auto& message : socket_->json_messages()) {
            const auto* type =
                message.is_object() ? message.get_object().if_contains("type") : nullptr;
            const bool plain = type && type->is_string();
            types.push_back(plain ? std::string(type->get_string()) : "?");
        }
        return types;
    }
    std::size_t heard(const std::string& type) const {
        const auto types = types_heard();
        return static_cast<std::size_t>(std::count(types.begin(), types.end(), type));
    }
    bool wait_finished(const std::string& id) const {
        return socket_
            ->wait_for([&id](const json::value& message) {
                const auto* data =
                    message.is_object() ? message.get_object().if_contains("data") : nullptr;
                return message.is_object() && message.at("type") == json::value("executing") &&
                       data && data->at("node").is_null() &&
                       data->at("prompt_id") == json::value(id);
            })
            .has_value();
    }
    void set_faults(const char* faults) {
        ASSERT_EQ(http_->post("/_double/faults", faults).status, 200);
    }

    inline static const json::value kNull = nullptr;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> double_;
    std::unique_ptr<Http> http_;
    std::unique_ptr<WsStream> socket_;
};

TEST_F(Double, RunsAPromptAndServesItsPicture) {
    start();
    const auto id = run(save_prompt(1));
    const auto entry = wait_history(id);
    EXPECT_EQ(entry.at("status").at("status_str"), json::value("success"));
    const auto& image = entry.at("outputs").at("2").at("images").at(0);
    EXPECT_EQ(image.at("filename"), json::value("ComfyUI_00001_.png"));
    const auto picture = http_->get("/api/view?filename=ComfyUI_00001_.png&subfolder=&type=output");
    EXPECT_EQ(picture.status, 200);
    EXPECT_EQ(picture.headers.get("Content-Type"), "image/png");
    EXPECT_TRUE(picture.body.starts_with("\x89PNG\r\n\x1a\n"));
    EXPECT_NE(picture.body.find("\"EmptyImage\""), std::string::npos);
    net::Headers range;
    range.set("Range", "bytes=1-3");
    const auto part = http_->get("/view?filename=ComfyUI_00001_.png", range);
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "PNG");
    EXPECT_EQ(http_->get("/view?filename=other.png").status, 404);
    EXPECT_EQ(http_->get("/view?filename=../x.png").status, 400);
}

TEST_F(Double, PicturesDependOnThePromptOnly) {
    start();
    run(save_prompt(1));
    run(save_prompt(2));
    wait_history(run(save_prompt(1)));
    const auto first = http_->get("/view?filename=ComfyUI_00001_.png").body;
    EXPECT_NE(first, http_->get("/view?filename=ComfyUI_00002_.png").body);
    EXPECT_EQ(first, http_->get("/view?filename=ComfyUI_00003_.png").body);
    EXPECT_EQ(double_->executions().total, 3U);
    EXPECT_EQ(double_->executions().by_content.size(), 2U);
}

TEST_F(Double, AnotherCheckpointIsLoadedForItself) {
    start({.load = Millis(1)});
    const auto prompt = [](const char* checkpoint) {
        json::object graph = sampler_prompt(1, 1);
        graph.at("4").as_object().at("inputs").as_object()["ckpt_name"] = checkpoint;
        return graph;
    };
    run(prompt("sd15.safetensors"));
    run(prompt("sd15.safetensors"));
    wait_history(run(prompt("sub/xl.safetensors")));
    EXPECT_EQ(double_->executions().loads, 2U);
}

TEST_F(Double, ReportsStepsAndBatches) {
    start({.delay = Millis(20), .previews = true});
    listen();
    const auto id = run(sampler_prompt(5, 3));
    ASSERT_TRUE(wait_finished(id));
    EXPECT_EQ(heard("progress"), 5U);
    EXPECT_EQ(wait_history(id).at("outputs").at("9").at("images").get_array().size(), 3U);
    const auto messages = socket_->messages();
    const auto frames = std::count_if(messages.begin(), messages.end(), [](const auto& message) {
        return message.binary && message.data[3] == 1 && message.data[7] == 2;
    });
    EXPECT_EQ(frames, 5);
}

TEST_F(Double, RefusesWhatTheRealServerRefuses) {
    start();
    const auto type_of = [](const Reply& reply) { return reply.json_at("/error/type"); };
    EXPECT_EQ(http_->post("/prompt", "{").status, 500);
    EXPECT_EQ(type_of(http_->post("/prompt", "{}")), json::value("no_prompt"));
    EXPECT_EQ(type_of(submit({})), json::value("prompt_no_outputs"));
    auto unknown =
        submit({{"7", json::object{{"class_type", "Nope"}, {"inputs", json::object{}}}}});
    EXPECT_EQ(unknown.status, 400);
    EXPECT_EQ(type_of(unknown), json::value("missing_node_type"));
    EXPECT_EQ(unknown.json_at("/error/extra_info/class_type"), json::value("Nope"));
    EXPECT_EQ(
        type_of(submit(text_prompt("a"), {{"prompt_id", "my-id"}})),
        json::value("invalid_prompt_id")
    );

    auto prompt = save_prompt(1);
    prompt.at("1").at("inputs").as_object().erase("width");
    const auto missing = submit(prompt);
    EXPECT_EQ(type_of(missing), json::value("prompt_outputs_failed_validation"));
    EXPECT_EQ(
        missing.json_at("/node_errors/1/errors/0/type"), json::value("required_input_missing")
    );
    EXPECT_EQ(missing.json_at("/node_errors/1/dependent_outputs/0"), json::value("2"));

    prompt.at("1") =
        json::object{{"class_type", "LoadImage"}, {"inputs", json::object{{"image", "a.png"}}}};
    const auto no_file = submit(prompt);
    EXPECT_EQ(
        no_file.json_at("/node_errors/1/errors/0/type"), json::value("custom_validation_failed")
    );
    EXPECT_EQ(
        no_file.json_at("/node_errors/1/errors/0/details"),
        json::value("image - Invalid image file: a.png")
    );
    double_->add_input("a.png", "x");
    EXPECT_EQ(submit(prompt).status, 200);
}

TEST_F(Double, OldVersionsBehaveAsTheyDid) {
    start({.version = "0.3.45"});
    const auto unknown =
        submit({{"7", json::object{{"class_type", "Nope"}, {"inputs", json::object{}}}}});
    EXPECT_EQ(unknown.json_at("/error/type"), json::value("invalid_prompt"));
    EXPECT_EQ(http_->get("/api/jobs").status, 404);
    EXPECT_EQ(submit(text_prompt("a", "hang_interruptible"), {{"prompt_id", "my-id"}}).status, 200);
    ASSERT_TRUE(wait_until([this] { return double_->executions().total == 1; }));
    // The id is ignored: whatever runs is interrupted.
    http_->post("/interrupt", R"({"prompt_id": "another"})");
    EXPECT_EQ(
        wait_history("my-id").at("status").at("messages").at(2).at(0),
        json::value("execution_interrupted")
    );
}

TEST_F(Double, UploadsKeepBothOfTwoDifferentFiles) {
    start();
    const auto upload = [this](std::string data) {
        const auto reply =
            http_->upload("/upload/image", {{"image", "a.png", "image/png", std::move(data)}});
        return reply.json_at("/name");
    };
    EXPECT_EQ(upload("one"), json::value("a.png"));
    EXPECT_EQ(upload("one"), json::value("a.png"));
    EXPECT_EQ(upload("two"), json::value("a (1).png"));
    EXPECT_EQ(upload("two"), json::value("a (1).png"));
    EXPECT_EQ(http_->get("/view?filename=a%20(1).png&type=input").body, "two");
    EXPECT_EQ(http_->post("/upload/image", "").status, 400);
    const auto info = http_->get("/object_info/LoadImage").json();
    EXPECT_EQ(info.at_pointer("/LoadImage/input/required/image/0").get_array().size(), 2U);
}

TEST_F(Double, SecondSocketOfAClientTakesOverAndDiesWithTheFirst) {
    start();
    auto old = http_->ws("/ws?clientId=me");
    ASSERT_TRUE(old->next());
    listen();
    ASSERT_TRUE(socket_->next());
    ASSERT_TRUE(wait_finished(run(text_prompt("a"))));
    EXPECT_EQ(old->messages().size(), 1U);
    old.reset();
    ASSERT_TRUE(wait_until([this] { return double_->sockets_open() == 0; }));
    const auto before = socket_->messages().size();
    wait_history(run(text_prompt("b")));
    EXPECT_EQ(socket_->messages().size(), before);
    EXPECT_FALSE(socket_->ended());
}

TEST_F(Double, WithoutClientIdOnlyProgressIsHeardByAll) {
    start();
    listen();
    const auto reply = submit(sampler_prompt(2, 1));
    wait_history(std::string(reply.json().at("prompt_id").get_string()));
    ASSERT_TRUE(wait_until([this] { return heard("status") == 4; }));
    EXPECT_EQ(heard("progress"), 2U);
    EXPECT_GT(heard("progress_state"), 0U);
    EXPECT_EQ(
        heard("execution_start") + heard("executing") + heard("executed") +
            heard("execution_success"),
        0U
    );
}

TEST_F(Double, TellsAReconnectedClientWhatRuns) {
    start();
    run(text_prompt("a", "hang"));
    ASSERT_TRUE(wait_until([this] { return double_->executions().total == 1; }));
    listen();
    ASSERT_TRUE(socket_->next());
    const auto second = socket_->next();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->data, R"({"type": "executing", "data": {"node": "1"}})");
}

TEST_F(Double, JobsRouteKnowsEveryState) {
    start();
    const auto done = run(text_prompt("a"));
    wait_history(done);
    const auto running = run(text_prompt("b", "hang_interruptible"));
    const auto waiting = run(text_prompt("c"));
    ASSERT_TRUE(wait_until([this] { return double_->executions().total == 2; }));
    EXPECT_EQ(http_->get("/api/jobs").json_at("/pagination/total"), json::value(3));
    EXPECT_EQ(http_->get("/api/jobs/" + done).json_at("/status"), json::value("completed"));
    EXPECT_EQ(http_->get("/api/jobs/" + running).json_at("/status"), json::value("in_progress"));
    EXPECT_EQ(http_->get("/api/jobs/" + waiting).json_at("/status"), json::value("pending"));
    EXPECT_EQ(
        http_->post("/api/jobs/" + waiting + "/cancel", "").json_at("/cancelled"), json::value(true)
    );
    EXPECT_EQ(http_->get("/api/jobs/" + waiting).status, 404);
    EXPECT_EQ(
        http_->post("/api/jobs/" + running + "/cancel", "").json_at("/cancelled"), json::value(true)
    );
    wait_history(running);
    EXPECT_EQ(http_->get("/api/jobs/" + running).json_at("/status"), json::value("cancelled"));
}

TEST_F(Double, CacheAnswersWithTheOldOutputs) {
    start({.cache = true});
    const auto first = wait_history(run(save_prompt(1)));
    const auto second = wait_history(run(save_prompt(1)));
    EXPECT_EQ(first.at("outputs"), second.at("outputs"));
    EXPECT_EQ(second.at("status").at("messages").at(1).at(1).at("nodes").get_array().size(), 2U);
    EXPECT_EQ(double_->executions().total, 1U);
    http_->post("/free", R"({"free_memory": true})");
    wait_history(run(save_prompt(1)));
    EXPECT_EQ(double_->executions().total, 2U);
}

TEST_F(Double, EqualNumberAndIdKillTheWorker) {
    start();
    run(text_prompt("a", "hang_interruptible"));
    const json::object twice{{"number", 5}, {"prompt_id", "5b6f2f0e-93a1-4d49-8f7e-6a1f0c1b2d3e"}};
    EXPECT_EQ(submit(text_prompt("b"), twice).status, 200);
    EXPECT_EQ(submit(text_prompt("b"), twice).status, 500);
    http_->post("/interrupt", "");
    ASSERT_TRUE(wait_until([this] {
        return http_->get("/queue").json_at("/queue_running/0").is_null();
    }));
    EXPECT_EQ(double_->queue_remaining(), 1U);
}

TEST_F(Double, CrashForgetsQueueAndHistoryButNotWhatRan) {
    start();
    listen();
    const auto done = run(save_prompt(1));
    ASSERT_TRUE(wait_finished(done));
    run(text_prompt("b", "hang"));
    ASSERT_TRUE(wait_until([this] { return double_->executions().total == 2; }));
    const auto port = double_->port();
    double_->crash();
    EXPECT_TRUE(socket_->wait_end());
    EXPECT_EQ(http_->get("/queue").status, 0);
    EXPECT_EQ(double_->start(), port);
    EXPECT_TRUE(history(done).is_null());
    EXPECT_EQ(double_->queue_remaining(), 0U);
    EXPECT_EQ(http_->get("/view?filename=ComfyUI_00001_.png").status, 200);
    EXPECT_EQ(http_->get("/_double/executions").json_at("/total"), json::value(2));
}

TEST_F(Double, CrashInAJobClosesEverything) {
    start();
    listen();
    const auto id = run(text_prompt("a", "crash_mid_job"));
    EXPECT_TRUE(socket_->wait_end());
    EXPECT_TRUE(wait_until([this] { return !double_->running(); }));
    double_->start();
    wait_history(run(text_prompt("b")));
    EXPECT_TRUE(history(id).is_null());
}

TEST_F(Double, FaultsCanBeUnknown) {
    start();
    EXPECT_EQ(http_->post("/_double/faults", R"({"nonsense": true})").status, 400);
    EXPECT_EQ(http_->post("/_double/faults", R"({"oom": 3})").status, 400);
    EXPECT_EQ(
        submit(text_prompt("a", "nonsense")).json_at("/error/type"), json::value("unknown_fault")
    );
}

TEST_F(Double, FaultErrorsOfNodes) {
    start();
    set_faults(R"({"oom": true, "prompts": 1})");
    const auto failed = wait_history(run(save_prompt(1)));
    EXPECT_EQ(failed.at("status").at("status_str"), json::value("error"));
    const auto& error = failed.at("status").at("messages").at(2).at(1);
    EXPECT_EQ(error.at("exception_type"), json::value("torch.OutOfMemoryError"));
    EXPECT_EQ(error.at("node_id"), json::value("2"));
    EXPECT_EQ(error.at("executed").at(0), json::value("1"));
    EXPECT_EQ(wait_history(run(save_prompt(1))).at("status").at("completed"), json::value(true));
    const auto other = wait_history(run(text_prompt("x", "node_error")));
    EXPECT_EQ(other.at_pointer("/status/messages/2/1/exception_type"), json::value("RuntimeError"));
    const auto interrupted = wait_history(run(text_prompt("x", "interrupted")));
    EXPECT_EQ(interrupted.at_pointer("/status/messages/2/0"), json::value("execution_interrupted"));
}

TEST_F(Double, FaultHangIgnoresInterrupts) {
    start();
    set_faults(R"({"hang": true})");
    const auto id = run(text_prompt("a"));
    ASSERT_TRUE(wait_until([this] { return double_->executions().total == 1; }));
    http_->post("/interrupt", "");
    EXPECT_TRUE(history(id).is_null());
    set_faults(R"({"clear": true})");
    EXPECT_EQ(wait_history(id).at("status").at("completed"), json::value(true));
}

TEST_F(Double, FaultsOfTheWorkerLosePrompts) {
    start();
    const auto lost = run(text_prompt("a", "lose_prompt"));
    EXPECT_TRUE(wait_until([this] { return double_->queue_remaining() == 0; }));
    wait_history(run(text_prompt("b")));
    EXPECT_TRUE(history(lost).is_null());
    set_faults(R"({"dead_worker": true})");
    const auto stuck = run(text_prompt("c"));
    EXPECT_EQ(http_->get("/prompt").json_at("/exec_info/queue_remaining"), json::value(1));
    EXPECT_TRUE(http_->get("/queue").json_at("/queue_running/0").is_null());
    set_faults(R"({"clear": true})");
    wait_history(stuck);
}

TEST_F(Double, FaultsOfTheSocket) {
    start();
    listen();
    wait_history(run(text_prompt("a", "ws_silence")));
    const auto finished = run(text_prompt("b", "duplicate"));
    ASSERT_TRUE(wait_finished(finished));
    ASSERT_TRUE(wait_until([this] { return heard("execution_success") == 2; }));
    ASSERT_TRUE(wait_finished(run(text_prompt("c", "garbage"))));
    EXPECT_GT(heard("some.custom.node"), 0U);
    wait_history(run(text_prompt("d", "ws_disconnect=3")));
    EXPECT_TRUE(socket_->wait_end());
    listen();
    EXPECT_TRUE(socket_->connected());
    set_faults(R"({"ws_refuse": true})");
    listen();
    EXPECT_FALSE(socket_->connected());
}

TEST_F(Double, FaultOutOfOrderPutsTheEndBeforeTheOutputs) {
    start();
    listen();
    ASSERT_TRUE(wait_finished(run(save_prompt(1, "out_of_order"))));
    const auto types = types_heard();
    const auto at = [&types](const char* type) {
        return std::find(types.begin(), types.end(), type);
    };
    EXPECT_LT(at("execution_success"), at("executed"));
    EXPECT_LT(at("executed"), types.end());
}

TEST_F(Double, FaultBadJsonBreaksFramesAndOneHistoryAnswer) {
    start();
    listen();
    const auto id = run(text_prompt("a", "bad_json"));
    ASSERT_TRUE(wait_finished(id));
    EXPECT_GT(socket_->messages().size(), socket_->json_messages().size());
    EXPECT_TRUE(http_->get("/history/" + id).json().is_null());
    EXPECT_TRUE(http_->get("/history/" + id).json().is_object());
}

TEST_F(Double, FaultsOfHttp) {
    start();
    set_faults(R"({"http_500": 2, "http_500_path": "/queue"})");
    EXPECT_EQ(http_->get("/prompt").status, 200);
    EXPECT_EQ(http_->get("/api/queue").status, 500);
    EXPECT_EQ(http_->get("/queue").status, 500);
    EXPECT_EQ(http_->get("/queue").status, 200);
    set_faults(R"({"no_response": 1})");
    const std::string id = "5b6f2f0e-93a1-4d49-8f7e-6a1f0c1b2d3e";
    EXPECT_EQ(submit(text_prompt("a"), {{"prompt_id", id}}).status, 0);
    wait_history(id);
    set_faults(R"({"missing_output": 1, "slow_http": 1})");
    wait_history(run(save_prompt(1)));
    EXPECT_EQ(http_->get("/view?filename=ComfyUI_00001_.png").status, 404);
    EXPECT_EQ(http_->get("/view?filename=ComfyUI_00001_.png").status, 200);
}

TEST_F(Double, FaultBigPreviewSendsLargeFrames) {
    start();
    listen();
    auto prompt = sampler_prompt(2, 1);
    prompt.at("9").at("inputs").as_object()["_fault"] = "big_preview=300000";
    ASSERT_TRUE(wait_finished(run(prompt)));
    const auto messages = socket_->messages();
    EXPECT_EQ(
        std::count_if(
            messages.begin(),
            messages.end(),
            [](const auto& message) { return message.data.size() > 300'000; }
        ),
        2
    );
}

TEST_F(Double, OtherMediaHaveTheirShapes) {
    start();
    const auto node = [](const char* name, json::object inputs) {
        return json::object{{"class_type", name}, {"inputs", std::move(inputs)}};
    };
    const auto entry = wait_history(run({
        {"1", node("EmptyImage", {{"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", 1}})},
        {"2", node("CreateVideo", {{"images", json::array{"1", 0}}, {"fps", 24}})},
        {"3",
         node(
             "SaveVideo",
             {{"video", json::array{"2", 0}},
              {"filename_prefix", "video/ComfyUI"},
              {"format", "auto"},
              {"codec", "auto"}}
         )},
        {"4", node("EmptyAudio", {{"duration", 1.0}, {"sample_rate", 44100}, {"channels", 2}})},
        {"5",
         node("SaveAudio", {{"audio", json::array{"4", 0}}, {"filename_prefix", "audio/ComfyUI"}})},
        {"6", node("PreviewAny", {{"source", "hello"}})},
    }));
    const auto& outputs = entry.at("outputs");
    EXPECT_EQ(outputs.at_pointer("/3/images/0/filename"), json::value("ComfyUI_00001_.mp4"));
    EXPECT_EQ(outputs.at_pointer("/3/images/0/subfolder"), json::value("video"));
    EXPECT_EQ(outputs.at_pointer("/3/animated/0"), json::value(true));
    EXPECT_EQ(outputs.at_pointer("/5/audio/0/filename"), json::value("ComfyUI_00001_.flac"));
    EXPECT_EQ(outputs.at_pointer("/6/text/0"), json::value("hello"));
    EXPECT_EQ(
        http_->get("/view?filename=ComfyUI_00001_.mp4&subfolder=video").headers.get("Content-Type"),
        "video/mp4"
    );
}

TEST(DoubleFiles, OldestOutputsGoFirst) {
    Files files(2);
    files.add_numbered("a", "output", ".png", "1");
    files.add_numbered("a", "output", ".png", "2");
    files.add_numbered("a", "output", ".png", "3");
    EXPECT_EQ(files.find({"a_00001_.png", "", "output"}), nullptr);
    ASSERT_NE(files.find({"a_00003_.png", "", "output"}), nullptr);
}

}  // namespace
}  // namespace comfyd::support
