#include "api/dialects/workflow_tools/workflow_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

constexpr const char* kClasses = R"({
    "Load": {"input": {"required": {"ckpt_name": [["a.safetensors", "b.safetensors"]]}},
             "output": ["MODEL"]},
    "LoadImage": {"input": {"required": {"image": [["x.png"], {"image_upload": true}]}},
                  "output": ["MODEL"]},
    "Fetch": {"input": {"required": {"url": ["STRING", {}]}}, "output": ["MODEL"]},
    "KSampler": {"input": {"required": {"model": ["MODEL"],
                 "seed": ["INT", {"min": 0, "max": 18446744073709551615}],
                 "steps": ["INT", {"default": 20, "min": 1, "max": 100}],
                 "sampler_name": [["euler", "heun"]]}}, "output": ["LATENT"]},
    "Save": {"input": {"required": {"samples": ["LATENT"]}}, "output": [], "output_node": true}
})";

std::string workflow(const std::string& sampler = "euler", const std::string& steps = "20") {
    return R"({"1": {"class_type": "Load", "inputs": {"ckpt_name": "a.safetensors"}},
        "2": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "seed": 1, "steps": )" +
           steps + R"(, "sampler_name": ")" + sampler + R"("}},
        "3": {"class_type": "Save", "inputs": {"samples": ["2", 0]}}})";
}

std::string body(const std::string& graph, const std::string& members = "") {
    return R"({"workflow": )" + graph + (members.empty() ? "" : "," + members) + "}";
}

class WorkflowTools : public testing::Test {
protected:
    explicit WorkflowTools(Arrangement setup = {}) : api(std::move(setup)) {
        const auto catalogue = test::catalogue_of(kClasses);
        api.services.catalogue = [catalogue] { return catalogue; };
    }
    json::object validate(const std::string& text) {
        const auto response = api.post("/v2/workflows/validate", text);
        EXPECT_EQ(response.status, 200) << response.body;
        return parse(response.body);
    }

    TestApi api;
};

json::array findings(const json::object& answer) {
    json::array all;
    for (const json::value& stage : answer.at("stages").as_array()) {
        for (const json::value& finding : stage.at("findings").as_array()) {
            all.push_back(finding);
        }
    }
    return all;
}

// As a submission would be: by the name that a worker has for an old class.
TEST_F(WorkflowTools, OldClassesAreLookedAtAsWhatReplacesThem) {
    workflow::ClassNotes notes;
    notes.replacements = parse(R"({"OldLoad": [{"new_node_id": "Load"}]})");
    const auto classes =
        *workflow::NodeClasses::from_object_info(*json::parse(kClasses), std::move(notes));
    const auto catalogue = std::make_shared<const workflow::Catalogue>(
        std::vector<workflow::Catalogue::Entry>{{"worker", classes}}
    );
    api.services.catalogue = [catalogue] { return catalogue; };
    std::string graph = workflow();
    graph.replace(graph.find("\"Load\""), 6, "\"OldLoad\"");
    EXPECT_EQ(validate(body(graph)).at("valid"), true);
    EXPECT_EQ(api.post("/api/v2/jobs", body(graph)).status / 100, 2);
}

TEST_F(WorkflowTools, AGoodWorkflowIsValidAndNothingIsRun) {
    const json::object answer = validate(body(workflow(), R"("plan": true)"));
    EXPECT_EQ(answer.at("valid"), true) << json::serialize(answer);
    EXPECT_EQ(answer.at("node_count"), 3);
    EXPECT_EQ(answer.at("stages").as_array().size(), 5U);
    EXPECT_EQ(answer.at("plan").at("models").at(0).at("kind"), "checkpoint");
    EXPECT_EQ(parse(api.get("/v2/workflows/executions").body).at("count"), 0);
}

TEST_F(WorkflowTools, AllFindingsComeWithSuggestions) {
    const json::object answer = validate(body(workflow("eulr", "500")));
    EXPECT_EQ(answer.at("valid"), false);
    const json::array found = findings(answer);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].at("code"), "VALUE_OUT_OF_RANGE");
    EXPECT_EQ(found[0].at("expected").at("max"), 100);
    EXPECT_EQ(found[1].at("code"), "VALUE_NOT_IN_LIST");
    EXPECT_EQ(found[1].at("node_id"), "2");
    EXPECT_EQ(found[1].at("suggestion"), "euler");
    EXPECT_FALSE(answer.contains("workflow"));
}

TEST_F(WorkflowTools, SlipsArePutRightOnRequest) {
    const json::object answer = validate(body(workflow("eulr", "500"), R"("auto_fix": true)"));
    EXPECT_EQ(answer.at("valid"), true) << json::serialize(answer);
    ASSERT_EQ(answer.at("warnings").as_array().size(), 2U);
    EXPECT_EQ(answer.at("warnings").at(0).at("event"), "execution.warning");
    EXPECT_EQ(answer.at("workflow").at("2").at("inputs").at("sampler_name"), "euler");
    EXPECT_EQ(answer.at("workflow").at("2").at("inputs").at("steps"), 100);
}

TEST_F(WorkflowTools, ParametersAreBoundFirst) {
    const json::object answer =
        validate(body(workflow(), R"("input_params": {"seed": "random", "steps": 7}, "plan": true)")
        );
    EXPECT_EQ(answer.at("valid"), true);
    EXPECT_TRUE(answer.at("chosen_parameters").at("seed").is_number());
    EXPECT_EQ(answer.at("plan").at("sampling").at(0).at("steps"), 7);
    const auto wrong =
        api.post("/v2/workflows/validate", body(workflow(), R"("input_params": {"sed": 1})"));
    EXPECT_EQ(wrong.status, 400) << wrong.body;
    EXPECT_THAT(wrong.body, HasSubstr("'seed' (is that meant?)"));
}

TEST_F(WorkflowTools, ThePlanSaysWhatItTakes) {
    const auto response = api.post("/v2/workflows/plan", body(workflow()));
    ASSERT_EQ(response.status, 200) << response.body;
    const json::object plan = parse(response.body);
    EXPECT_GT(plan.at("work_units").to_number<double>(), 1);
    EXPECT_EQ(plan.at("batch_key").as_string().size(), 64U);
    EXPECT_EQ(plan.at("fingerprint").as_string().size(), 64U);
    EXPECT_EQ(plan.at("parallel_stages").as_array().size(), 3U);
    EXPECT_EQ(plan.at("estimate_basis"), "heuristic");
    const auto refused = api.post("/v2/workflows/plan", body(workflow("nothing like it")));
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("VALUE_NOT_IN_LIST"));
}

TEST_F(WorkflowTools, BadRequestsAreRefused) {
    EXPECT_EQ(api.post("/v2/workflows/validate", "{}").status, 400);
    EXPECT_EQ(api.post("/v2/workflows/validate", "[").status, 400);
    EXPECT_EQ(api.post("/v2/workflows/validate", body("7")).status, 400);
    EXPECT_EQ(api.post("/v2/workflows/validate", body(workflow(), R"("auto_fix": 3)")).status, 400);
    const std::string deep = std::string(1'000, '[') + std::string(1'000, ']');
    EXPECT_EQ(
        api.post("/v2/workflows/validate", R"({"workflow": {"1": )" + deep + "}}").status, 400
    );
}

TEST_F(WorkflowTools, TheEditorsFormatIsConverted) {
    const json::object answer = validate(body(R"({"nodes": [
        {"id": 1, "type": "Load", "mode": 0, "inputs": [], "outputs": [{"name": "MODEL",
         "type": "MODEL", "links": [1]}], "widgets_values": ["a.safetensors"]}], "links": []})"));
    EXPECT_EQ(answer.at("workflow").at("1").at("class_type"), "Load") << json::serialize(answer);
}

TEST_F(WorkflowTools, AnExecutionIsPutRightOnRequest) {
    const std::string wrong = workflow("eulr", "500");
    EXPECT_EQ(api.post("/v2/workflows/execute", body(wrong)).status, 400);
    net::Headers headers;
    headers.set("Idempotency-Key", "once");
    const auto response =
        api.post("/v2/workflows/execute", body(wrong, R"("auto_fix": true)"), headers);
    ASSERT_EQ(response.status, 202) << response.body;
    const json::object execution = parse(response.body);
    EXPECT_EQ(execution.at("warnings").as_array().size(), 2U);
    EXPECT_EQ(execution.at("warnings").at(0).at("event"), "execution.warning");
    const auto id = JobId::parse(std::string(execution.at("execution_id").as_string()));
    ASSERT_TRUE(id);
    const auto stored = parse(api.ledger.spec(*id).workflow);
    EXPECT_EQ(stored.at("2").at("inputs").at("sampler_name"), "euler");
    const auto again =
        api.post("/v2/workflows/execute", body(wrong, R"("auto_fix": true)"), headers);
    EXPECT_EQ(parse(again.body).at("execution_id"), execution.at("execution_id"));
}

struct SecuredTools : WorkflowTools {
    SecuredTools() : WorkflowTools(arranged()) {}
    static Arrangement arranged() {
        Arrangement setup;
        setup.admission.security.denied_nodes = {"Load*"};
        setup.admission.security.allowed_domains = {"127.0.0.1", "[::1]"};
        return setup;
    }
};

struct TenantsTools : WorkflowTools {
    TenantsTools() : WorkflowTools(arranged()) {}
    static Arrangement arranged() {
        Arrangement setup;
        admission::TenantRules own;
        own.security.emplace();
        own.security->denied_nodes = {"Load*"};
        setup.admission.tenants->set({{"local", own}});
        return setup;
    }
};

TEST_F(TenantsTools, ATenantMayHaveRulesOfItsOwn) {
    const auto refused = api.post("/v2/workflows/execute", body(workflow()));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("denied"));
    EXPECT_THAT(json::serialize(validate(body(workflow()))), HasSubstr("DANGEROUS_NODE"));
}

TEST_F(SecuredTools, EverySubmissionPassesTheGate) {
    EXPECT_THAT(json::serialize(validate(body(workflow()))), HasSubstr("DANGEROUS_NODE"));
    for (const char* path :
         {"/v2/workflows/execute", "/v1/workflows/execute", "/comfyui/execute", "/api/v2/jobs"}) {
        const auto response = api.post(path, body(workflow()));
        EXPECT_GE(response.status, 400) << path;
        EXPECT_LT(response.status, 500) << path;
        EXPECT_THAT(response.body, HasSubstr("denied")) << path;
    }
}

TEST_F(SecuredTools, AddressesAreLookedAtOnRequest) {
    const auto graph = [this](const std::string& path) {
        return R"({"1": {"class_type": "Fetch", "inputs": {"url": ")" + api.url(path) + R"("}},
            "2": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "seed": 1, "steps": 20,
                  "sampler_name": "euler"}},
            "3": {"class_type": "Save", "inputs": {"samples": ["2", 0]}}})";
    };
    const auto code = [&](const std::string& path) -> std::string {
        const json::array found = findings(validate(body(graph(path), R"("check_urls": true)")));
        return found.empty() ? "" : std::string(found[0].at("code").as_string());
    };
    EXPECT_EQ(code("/openapi.json"), "");
    EXPECT_EQ(code("/nothing/here"), "URL_NOT_ACCESSIBLE");
    EXPECT_EQ(code("/docs"), "INVALID_CONTENT_TYPE");
    const json::object elsewhere = validate(body(
        R"({"1": {"class_type": "Fetch", "inputs": {"url": "https://example.com/a.png"}},
            "3": {"class_type": "Save", "inputs": {"samples": ["1", 0]}}})"
    ));
    EXPECT_THAT(json::serialize(elsewhere), HasSubstr("UNAUTHORIZED_DOMAIN"));
}

struct PrivateTools : WorkflowTools {
    PrivateTools() : WorkflowTools(arranged()) {}
    static Arrangement arranged() {
        Arrangement setup;
        setup.admission.security.allow_private_hosts = true;
        return setup;
    }
};

TEST_F(PrivateTools, AddressesOfPrivateNetworksAreLookedAtWhereAllowed) {
    const std::string graph = R"({"1": {"class_type": "LoadImage", "inputs": {"image": ")" +
                              api.url("/openapi.json") +
                              R"("}},
            "2": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "seed": 1, "steps": 20,
                  "sampler_name": "euler"}},
            "3": {"class_type": "Save", "inputs": {"samples": ["2", 0]}}})";
    const json::array found = findings(validate(body(graph, R"("check_urls": true)")));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].at("code"), "INVALID_CONTENT_TYPE") << "it is no picture";
    EXPECT_EQ(found[0].at("details").at("content_type"), "application/json");
}

TEST_F(WorkflowTools, AChosenSeedIsKeptWithTheJob) {
    net::Headers headers;
    headers.set("Idempotency-Key", "once");
    const std::string request = body(workflow(), R"("input_params": {"seed": "random"})");
    const auto response = api.post("/v2/workflows/execute", request, headers);
    ASSERT_EQ(response.status, 202) << response.body;
    const json::object execution = parse(response.body);
    const json::value seed = execution.at("chosen_parameters").at("seed");
    const auto id = JobId::parse(std::string(execution.at("execution_id").as_string()));
    ASSERT_TRUE(id);
    EXPECT_EQ(parse(api.ledger.spec(*id).workflow).at("2").at("inputs").at("seed"), seed);
    // The same request again is the same request, though it would choose another seed.
    const auto again = api.post("/v2/workflows/execute", request, headers);
    EXPECT_EQ(again.status, 202) << again.body;
    EXPECT_EQ(parse(again.body).at("execution_id"), execution.at("execution_id"));
}

}  // namespace
}  // namespace comfyd::api
