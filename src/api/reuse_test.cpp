#include "admission/reuse.hpp"

#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::parse;
using test::ScriptedWorker;
using test::TestApi;

Arrangement with_classes() {
    Arrangement arrangement;
    arrangement.catalogue = test::catalogue_of(R"({
        "LoadImage": {"input": {"required": {"image": [["a.png"], {"image_upload": true}]}}, "output": ["IMAGE"]},
        "Text": {"input": {"required": {"text": ["STRING", {}], "seed": ["INT", {}]}}, "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}
    })");
    return arrangement;
}

std::string body(const std::string& source, const std::string& more = R"(, "reuse": true)") {
    return R"({"workflow": {"1": )" + source +
           R"(, "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})" + more + "}";
}

std::string text(const std::string& words) {
    return R"({"class_type": "Text", "inputs": {"seed": 1, "text": ")" + words + "\"}}";
}

std::string picture(const std::string& info) {
    return R"({"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": )" +
           info + "}}}";
}

class ApiReuse : public testing::Test {
protected:
    explicit ApiReuse(Arrangement setup = with_classes()) : api(std::move(setup)) {}

    std::string submit(const std::string& text, const std::string& path = "/api/v2/jobs") {
        const auto response = api.post(path, text);
        EXPECT_EQ(response.status / 100, 2) << response.body;
        const json::object made = parse(response.body);
        for (const char* name : {"id", "execution_id", "task_id"}) {
            if (const json::value* id = made.if_contains(name)) {
                return std::string(id->as_string());
            }
        }
        ADD_FAILURE() << response.body;
        return {};
    }
    std::string key_of(const std::string& id) {
        return api.ledger.spec(*JobId::parse(id)).reuse_key;
    }
    json::object finish(const std::string& id, std::string_view status = "succeeded") {
        return api.wait_for_status("/api/v2/jobs/" + id, status);
    }
    bool is_reused(const std::string& id) { return finish(id).contains("outputs_reused"); }
    void make_output() {
        api.on_core([this] {
            api.fleet.worker->output.asset = AssetId::make(api.clock.now());
            api.fleet.worker->output.hash = "blake3:1";
        });
    }

    TestApi api;
};

TEST_F(ApiReuse, OnlyThoseThatAskHaveAKey) {
    const std::string asked = key_of(submit(body(text("a"))));
    EXPECT_EQ(asked.size(), 64U);
    EXPECT_EQ(key_of(submit(body(text("a")))), asked);
    EXPECT_NE(key_of(submit(body(text("b")))), asked);
    EXPECT_EQ(key_of(submit(body(text("a"), ""))), "");
    EXPECT_EQ(key_of(submit(body(text("a"), R"(, "reuse": false)"))), "");
    EXPECT_EQ(api.post("/api/v2/jobs", body(text("a"), R"(, "reuse": 1)")).status, 422);
}

TEST_F(ApiReuse, EveryDialectCanAsk) {
    const std::string asked = key_of(submit(body(text("a"))));
    EXPECT_EQ(key_of(submit(body(text("a")), "/v2/workflows/execute")), asked);
    EXPECT_EQ(
        key_of(submit(
            body(text("a"), R"(, "execution_config": {"reuse": true})"), "/v1/workflows/execute"
        )),
        asked
    );
    EXPECT_EQ(key_of(submit(body(text("a")), "/comfyui/execute")), asked);
}

TEST_F(ApiReuse, TheHashBesideAnIdIsNotBelieved) {
    const auto upload = [this](const std::string& bytes) {
        net::FormPart part;
        part.name = "file";
        part.filename = "a.png";
        part.content_type = "image/png";
        part.data = bytes;
        const auto response = api.upload({part});
        EXPECT_EQ(response.status / 100, 2) << response.body;
        return parse(response.body);
    };
    const json::object one = upload("one");
    const json::object two = upload("two");
    const std::string one_id(one.at("id").as_string());
    const std::string one_hash(one.at("hash").as_string());
    const std::string two_id(two.at("id").as_string());
    const std::string honest = key_of(submit(body(picture(R"({"hash": ")" + one_hash + "\"}"))));
    EXPECT_EQ(honest.size(), 64U);
    EXPECT_EQ(key_of(submit(body(picture(R"({"id": ")" + one_id + "\"}")))), honest);
    EXPECT_NE(
        key_of(submit(body(picture(R"({"id": ")" + two_id + R"(", "hash": ")" + one_hash + "\"}")))
        ),
        honest
    );
}

TEST_F(ApiReuse, AWorkflowThatVariesSaysWhy) {
    const std::string id =
        submit(body(R"({"class_type": "LoadImage", "inputs": {"image": "a.png"}})"));
    EXPECT_EQ(key_of(id), "");
    const json::object job = parse(api.get("/api/v2/jobs/" + id).body);
    EXPECT_EQ(job.at("not_reusable").at("class_type"), "LoadImage");
}

TEST_F(ApiReuse, AFinishedJobAnswersAtOnce) {
    make_output();
    api.open_worker();
    const std::string first = submit(body(text("a")));
    EXPECT_FALSE(is_reused(first));
    const auto response = api.post("/v2/workflows/execute", body(text("a")));
    EXPECT_EQ(parse(response.body).at("status"), "completed") << response.body;
    const std::string second(parse(response.body).at("execution_id").as_string());
    const json::object shown = parse(api.get("/v2/workflows/execution/" + second).body);
    EXPECT_EQ(shown.at("outputs_reused"), json::value(true));
    EXPECT_EQ(shown.at("reused_from"), json::value(first));
    EXPECT_EQ(shown.at("result").at("outputs").as_array().size(), 1U);
}

TEST_F(ApiReuse, FinishedJobsAreLookedForAgainWhenItsTurnComes) {
    const std::string waiting = submit(body(text("a")));  // the worker takes nothing yet
    jobs::Spec spec = api.ledger.spec(*JobId::parse(waiting));
    jobs::NewJob other{jobs::make_job(JobId::make(api.clock.now()), spec, api.clock.now()), spec};
    const JobId other_id = other.change.job.id;
    const auto started = jobs::start(other.change.job, "w", 2, api.clock.now());
    jobs::Output output;
    output.hash = "blake3:1";
    other.then = *jobs::complete(started->job, {output}, {}, 3, api.clock.now());
    net::test::Loop loop;
    EXPECT_TRUE(loop.run(api.ledger.accept(std::move(other))));
    api.open_worker(ScriptedWorker::Script::fail);
    EXPECT_EQ(finish(waiting).at("reused_from"), json::value(other_id.to_string()));
}

TEST_F(ApiReuse, WhoFollowsTakesOverWhenTheFirstIsCancelled) {
    make_output();
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    const std::string first = submit(body(text("a")));
    finish(first, "running");
    const std::string second = submit(body(text("a")));
    const std::string third = submit(body(text("a")));
    const json::object why = parse(api.get("/v2/workflows/execution/" + second + "/explain").body);
    EXPECT_NE(json::serialize(why.at("reasons")).find(first), std::string::npos);
    api.on_core([this] { api.fleet.worker->script = ScriptedWorker::Script::succeed; });
    EXPECT_EQ(api.post("/api/v2/jobs/" + first + "/cancel", "{}").status / 100, 2);
    finish(first, "canceled");
    EXPECT_FALSE(is_reused(second));
    EXPECT_TRUE(is_reused(third));
}

class TenantReuse : public ApiReuse {
protected:
    static Arrangement with_default() {
        Arrangement arrangement = with_classes();
        admission::TenantRules own;
        own.reuse = true;
        arrangement.admission.tenants->set({{"local", own}});
        return arrangement;
    }
    TenantReuse() : ApiReuse(with_default()) {}
};

TEST_F(TenantReuse, ATenantCanAskForAllOfItsJobs) {
    EXPECT_EQ(key_of(submit(body(text("a"), ""))).size(), 64U);
    EXPECT_EQ(key_of(submit(body(text("a"), R"(, "reuse": false)"))), "");
    // Nobody asked about this one in particular.
    const std::string id =
        submit(body(R"({"class_type": "LoadImage", "inputs": {"image": "a.png"}})", ""));
    EXPECT_FALSE(parse(api.get("/api/v2/jobs/" + id).body).contains("not_reusable"));
}

}  // namespace
}  // namespace comfyd::api
