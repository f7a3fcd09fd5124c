// Jobs that are answered with the outputs of others: the double counts what really ran.
#include <filesystem>

#include "base/crypto.hpp"
#include "native_support.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

using testing::ElementsAre;

const json::object kReuse{{"reuse", true}};

bool is_reused(const json::value& job) {
    const json::value* reused = job.as_object().if_contains("outputs_reused");
    return reused != nullptr && reused->is_bool() && reused->get_bool();
}

class Reuse : public NativeTest {
protected:
    // Its end, which must be a success.
    json::value finish(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
        return job;
    }
    json::value run(const json::object& workflow, json::object more = kReuse) {
        return finish(comfyd_->submit(workflow, std::move(more)));
    }
    std::uint64_t runs() const { return worker_->executions().total; }
    void cancel(const std::string& id) {
        http().post_json("/api/v2/jobs/" + id + "/cancel", json::object());
    }
    std::string output_of(const json::value& job) {
        const std::string asset(job.at("outputs").at(0).at("id").as_string());
        return http().get("/api/v2/assets/" + asset + "/content").body;
    }
    // One that runs, and others behind it that ask for the same.
    std::vector<std::string> submit_alike(int count, const json::object& workflow) {
        std::vector<std::string> ids{comfyd_->submit(workflow, kReuse)};
        EXPECT_TRUE(wait_until([this] { return runs() == 1; }));
        for (int i = 1; i < count; ++i) {
            ids.push_back(comfyd_->submit(workflow, kReuse));
        }
        return ids;
    }
};

// /prompt_sync takes the word in the body, and where ComfyUI's clients can put it.
TEST_F(Reuse, PromptSyncTakesPart) {
    start();
    const auto run_sync = [this](json::object more) {
        more["prompt"] = text_to_image("a");
        const Reply reply = http().post_json("/prompt_sync", more);
        EXPECT_EQ(reply.status, 200) << reply.body;
        const json::value id = reply.json_at("/prompt_id");
        return http().get("/api/v2/jobs/" + std::string(id.as_string())).json();
    };
    EXPECT_FALSE(is_reused(run_sync(kReuse)));
    EXPECT_TRUE(is_reused(run_sync(kReuse)));
    EXPECT_TRUE(is_reused(run_sync({{"extra_data", {{"comfyd", {{"reuse", true}}}}}})));
    EXPECT_FALSE(is_reused(run_sync({})));
    EXPECT_EQ(runs(), 2U);
}

TEST_F(Reuse, AFinishedJobAnswersTheNextOne) {
    start();
    const json::object workflow = text_to_image("a");
    const json::value first = run(workflow);
    EXPECT_FALSE(is_reused(first));
    WebhookReceiver receiver;
    const json::value second = run(workflow, {{"reuse", true}, {"webhook_url", receiver.url()}});
    EXPECT_EQ(runs(), 1U);
    EXPECT_TRUE(is_reused(second));
    EXPECT_EQ(second.at("reused_from"), first.at("id"));
    EXPECT_TRUE(second.at("started_at").is_null());
    const json::value& output = second.at("outputs").at(0);
    EXPECT_EQ(output.at("hash"), first.at("outputs").at(0).at("hash"));
    EXPECT_NE(output.at("id"), first.at("outputs").at(0).at("id"));
    EXPECT_EQ(output_of(second), output_of(first));

    const std::string id(second.at("id").as_string());
    const Reply shown = http().get("/v2/workflows/execution/" + id);
    EXPECT_EQ(shown.json_at("/outputs_reused"), json::value(true));
    EXPECT_EQ(shown.json_at("/status"), "completed");
    const Reply metrics = http().get("/v2/workflows/execution/" + id + "/metrics");
    EXPECT_EQ(metrics.json_at("/cost/estimate_usd"), json::value(0.0)) << metrics.body;
    ASSERT_TRUE(receiver.wait_for(1));
    const json::value told = receiver.requests().front().json();
    EXPECT_EQ(told.at("event"), "execution.completed");
    EXPECT_EQ(told.at("data").at("outputs_reused"), json::value(true));

    const auto stream =
        http().events("/v2/workflows/execution/" + id + "/events", header("Last-Event-ID", "0"));
    ASSERT_TRUE(stream->wait_end());
    std::vector<std::string> types;
    for (const SseEvent& event : stream->events()) {
        const json::value message = event.json();
        const json::value* type =
            message.is_object() ? message.get_object().if_contains("type") : nullptr;
        if (type != nullptr) {
            types.emplace_back(type->as_string());
            EXPECT_EQ(is_reused(message), types.back() == "completed");
        }
    }
    EXPECT_THAT(types, ElementsAre("status_change", "completed"));
}

TEST_F(Reuse, OnlyThoseThatAskForIt) {
    start();
    const json::object workflow = text_to_image("a");
    run(workflow, {});
    EXPECT_FALSE(is_reused(run(workflow))) << "the first did not offer its outputs";
    EXPECT_FALSE(is_reused(run(workflow, {{"reuse", false}})));
    EXPECT_EQ(runs(), 3U);
    EXPECT_TRUE(is_reused(run(workflow)));
    EXPECT_EQ(
        http().post_json("/api/v2/jobs", {{"workflow", workflow}, {"reuse", "yes"}}).status, 422
    );
}

TEST_F(Reuse, OneRunForAllThatDoTheSame) {
    start({.delay = Millis(2'000)});
    const auto ids = submit_alike(5, text_to_image("a"));
    const Reply why = http().get("/v2/workflows/execution/" + ids[3] + "/explain");
    EXPECT_THAT(why.body, testing::HasSubstr(ids[0]));
    EXPECT_FALSE(is_reused(finish(ids[0])));
    for (std::size_t i = 1; i < ids.size(); ++i) {
        EXPECT_TRUE(is_reused(finish(ids[i])));
    }
    EXPECT_EQ(runs(), 1U);
}

TEST_F(Reuse, WhenTheFirstIsCancelledTheNextOneRuns) {
    start({.delay = Millis(2'000)});
    const auto ids = submit_alike(4, text_to_image("a"));
    cancel(ids[2]);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(ids[2])), "canceled");
    cancel(ids[0]);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(ids[0])), "canceled");
    EXPECT_FALSE(is_reused(finish(ids[1])));
    EXPECT_TRUE(is_reused(finish(ids[3])));
    EXPECT_EQ(runs(), 2U);
}

TEST_F(Reuse, WhenTheFirstFailsTheNextOneRuns) {
    DoubleOptions options{.delay = Millis(1'500)};
    options.faults.run.node_error = true;
    options.faults.run_prompts = 1;
    start(std::move(options));
    const auto ids = submit_alike(3, text_to_image("a"));
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(ids[0])), "failed");
    EXPECT_FALSE(is_reused(finish(ids[1])));
    EXPECT_TRUE(is_reused(finish(ids[2])));
    EXPECT_EQ(runs(), 2U);
}

TEST_F(Reuse, AMoreUrgentOneIsNotHeldUp) {
    start({.delay = Millis(1'500)});
    comfyd_->submit(text_to_image("occupies the worker"));
    ASSERT_TRUE(wait_until([this] { return runs() == 1; }));
    const std::string late =
        comfyd_->submit(text_to_image("a"), {{"reuse", true}, {"priority", 2}});
    comfyd_->submit(text_to_image("b"), {{"priority", 5}});
    const std::string urgent =
        comfyd_->submit(text_to_image("a"), {{"reuse", true}, {"priority", 9}});
    EXPECT_FALSE(is_reused(finish(urgent)));
    EXPECT_TRUE(is_reused(finish(late)));
    EXPECT_LE(runs(), 3U);
}

TEST_F(Reuse, AKilledGatewayLosesNothing) {
    start({.delay = Millis(1'500)});
    const json::object workflow = text_to_image("a");
    const auto ids = submit_alike(3, workflow);
    comfyd_->restart();
    EXPECT_FALSE(is_reused(finish(ids[0])));
    EXPECT_TRUE(is_reused(finish(ids[1])));
    EXPECT_TRUE(is_reused(finish(ids[2])));
    comfyd_->restart();
    wait_workers(1);  // until then no class is known
    const std::string next = comfyd_->submit(workflow, kReuse);
    comfyd_->kill();
    comfyd_->start();
    EXPECT_TRUE(is_reused(finish(next)));
    EXPECT_FALSE(output_of(comfyd_->job(next)).empty());
    EXPECT_EQ(runs(), 1U);
}

TEST_F(Reuse, InputsCountByTheirContent) {
    start();
    const auto with_picture = [](const std::string& bytes) {
        return json::object{
            {"1",
             {{"class_type", "LoadImage"},
              {"inputs", {{"image", "data:image/png;base64," + to_base64(bytes)}}}}},
            {"2", {{"class_type", "ImageInvert"}, {"inputs", {{"image", {"1", 0}}}}}},
            {"3",
             {{"class_type", "SaveImage"},
              {"inputs", {{"images", {"2", 0}}, {"filename_prefix", "x"}}}}},
        };
    };
    const std::string one = output_of(run(text_to_image("one")));
    const std::string two = output_of(run(text_to_image("two")));
    EXPECT_FALSE(is_reused(run(with_picture(one))));
    EXPECT_TRUE(is_reused(run(with_picture(one))));
    EXPECT_FALSE(is_reused(run(with_picture(two))));
    EXPECT_EQ(runs(), 4U);
    // What a worker holds under a name is not known.
    worker_->add_input("local.png", one);
    json::object local = with_picture(one);
    local.at("1").at("inputs").as_object()["image"] = "local.png";
    run(local);
    const json::value again = run(local);
    EXPECT_FALSE(is_reused(again));
    EXPECT_EQ(again.at("not_reusable").at("node_id"), "1");
    EXPECT_EQ(runs(), 6U);
}

TEST_F(Reuse, ARandomSeedIsAnotherOneEachTime) {
    start();
    const json::object body{
        {"workflow", text_to_image("a")}, {"input_params", {{"seed", "random"}}}, {"reuse", true}
    };
    for (int i = 0; i < 2; ++i) {
        const Reply made = http().post_json("/v2/workflows/execute", body);
        ASSERT_EQ(made.status, 202) << made.body;
        finish(std::string(made.json_at("/execution_id").as_string()));
    }
    EXPECT_EQ(runs(), 2U);
}

TEST_F(Reuse, WhatAnOperatorNamesIsNeverReused) {
    start({}, {"--set", "reuse.never_nodes=KSam*"});
    run(text_to_image("a"));
    EXPECT_FALSE(is_reused(run(text_to_image("a"))));
}

TEST_F(Reuse, OutputsThatAreGoneAreMadeAgain) {
    start({.output_bytes = 100'000});  // so that they are files
    run(text_to_image("a"));
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(comfyd_->data() + "/assets/blobs")) {
        if (entry.is_regular_file()) {
            std::filesystem::remove(entry.path());
        }
    }
    EXPECT_FALSE(is_reused(run(text_to_image("a"))));
    EXPECT_TRUE(is_reused(run(text_to_image("a"))));
    EXPECT_EQ(runs(), 2U);
}

TEST_F(Reuse, TheEditorHearsTheWholeStory) {
    start();
    const auto listener = socket("me");
    const json::object asks{{"extra_data", {{"comfyd", {{"reuse", true}}}}}};
    const std::string first = post_prompt(http(), text_to_image("a"), "me", asks);
    ASSERT_TRUE(wait_end_of(*listener, first));
    const std::string second = post_prompt(http(), text_to_image("a"), "me", asks);
    ASSERT_TRUE(wait_end_of(*listener, second));
    EXPECT_EQ(runs(), 1U);
    EXPECT_THAT(
        story_of(*listener, second),
        ElementsAre("execution_start", "execution_cached", "executed", "execution_success", "end")
    );
    const json::value entry = http().get("/history/" + second).json().at(second);
    EXPECT_EQ(entry.at("status").at("status_str"), "success");
    const json::object& file = entry.at("outputs").at("9").at("images").at(0).as_object();
    const Reply picture = http().get(
        "/view?type=output&filename=" + std::string(file.at("filename").as_string()) +
        "&subfolder=" + std::string(file.at("subfolder").as_string())
    );
    EXPECT_EQ(picture.status, 200);
    EXPECT_EQ(picture.headers.get("Content-Type"), "image/png");
}

// Tenants are set in a file.
class ReuseTenants : public Reuse {
protected:
    void start_with_keys() {
        const auto key = [](const std::string& name) {
            return "    - {name: " + name + ", sha256: " + to_hex(sha256(kKey + name)) + "}\n";
        };
        const std::string file = folder_.write(
            "comfyd.yaml",
            "auth:\n  keys:\n" + key("one") + key("two") +
                "tenants:\n  - {name: one, reuse: true}\n"
        );
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
        worker_->start();
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments = {"--no-engine", "--worker", worker_->url(), "--config", file}
        });
        ASSERT_TRUE(wait_until([this] {
            return http().get("/object_info", of("one")).body.size() > 2;
        })) << comfyd_->log();
    }
    static net::Headers of(const std::string& tenant) {
        return header("Authorization", "Bearer " + (kKey + tenant));
    }
    json::value run_as(const std::string& tenant, json::object more) {
        const std::string id = comfyd_->submit(text_to_image("a"), std::move(more), of(tenant));
        json::value job;
        EXPECT_TRUE(wait_until([&] {
            job = http().get("/api/v2/jobs/" + id, of(tenant)).json();
            return Comfyd::status_of(job) == "succeeded";
        })) << json::serialize(job);
        return job;
    }

    inline static const std::string kKey = "a long enough key of tenant ";
    TempDir folder_;
};

TEST_F(ReuseTenants, EachHasItsOwnOutputsAndItsOwnDefault) {
    start_with_keys();
    EXPECT_FALSE(is_reused(run_as("one", {})));
    EXPECT_FALSE(is_reused(run_as("two", kReuse))) << "another tenant's outputs";
    EXPECT_TRUE(is_reused(run_as("one", {}))) << "the tenant's default";
    EXPECT_TRUE(is_reused(run_as("two", kReuse)));
    EXPECT_FALSE(is_reused(run_as("one", {{"reuse", false}})));
    EXPECT_FALSE(is_reused(run_as("two", {})));
    EXPECT_EQ(runs(), 4U);
}

}  // namespace
}  // namespace comfyd::support
