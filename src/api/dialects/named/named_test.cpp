#include "api/dialects/named/named.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/test_support.hpp"
#include "base/crypto.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::TestApi;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kClasses = R"({
    "Load": {"input": {"required": {"ckpt_name": [["a.safetensors", "b.safetensors"]]}},
             "output": ["MODEL"], "output_name": ["MODEL"]},
    "KSampler": {"input": {"required": {"model": ["MODEL"],
                 "seed": ["INT", {"default": 0, "min": 0, "max": 18446744073709551615}],
                 "steps": ["INT", {"default": 20, "min": 1, "max": 100}],
                 "sampler_name": [["euler", "heun"]]}}, "output": ["LATENT"],
                 "input_order": {"required": ["model", "seed", "steps", "sampler_name"]}},
    "Save": {"input": {"required": {"samples": ["LATENT"]}}, "output": [], "output_node": true}
})";

std::string workflow(int steps = 20) {
    return R"({"1": {"class_type": "Load", "inputs": {"ckpt_name": "a.safetensors"}},
        "2": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "seed": 1, "steps": )" +
           std::to_string(steps) + R"(, "sampler_name": "euler"}},
        "3": {"class_type": "Save", "inputs": {"samples": ["2", 0]}}})";
}

std::string body(const std::string& graph, const std::string& members = "") {
    return R"({"workflow": )" + graph + (members.empty() ? "" : "," + members) + "}";
}

constexpr const char* kDeclared =
    R"("description": "A picture", "parameters": {
        "steps": {"target": "2.steps", "title": "Steps", "maximum": 50, "default": 30},
        "model": {"target": "1.ckpt_name", "required": true},
        "seed": "2.seed"})";

std::vector<std::string> keys(const json::value& of) {
    std::vector<std::string> all;
    for (const auto& entry : of.as_object()) {
        all.emplace_back(entry.key());
    }
    return all;
}

Arrangement arrangement(bool with_keys) {
    Arrangement setup;
    setup.catalogue = test::catalogue_of(kClasses);
    if (with_keys) {
        setup.keys = {
            {"one", "one", to_hex(sha256("key-of-one"))},
            {"two", "two", to_hex(sha256("key-of-two"))},
        };
    }
    return setup;
}

class NamedWorkflows : public testing::Test {
protected:
    explicit NamedWorkflows(bool with_keys = false) : api(arrangement(with_keys)) {}

    net::ClientResponse put(
        const std::string& path, const std::string& text, net::Headers headers = {}
    ) {
        headers.set("Content-Type", "application/json");
        return api.send("PUT", "/v2/workflows/" + path, text, std::move(headers));
    }
    net::ClientResponse get(const std::string& path) { return api.get("/v2/workflows/" + path); }
    net::ClientResponse run(const std::string& path, const std::string& text) {
        return api.post("/v2/workflows/" + path, text);
    }
    jobs::Spec spec_of(const net::ClientResponse& accepted) {
        const json::object answer = parse(accepted.body);
        const json::value* id = json::find(answer, "execution_id");
        EXPECT_NE(id, nullptr) << accepted.body;
        return id == nullptr ? jobs::Spec()
                             : api.ledger.spec(*JobId::parse(std::string_view(id->as_string())));
    }
    std::string message_of(const net::ClientResponse& response) {
        return std::string(parse(response.body).at("error").at("message").as_string());
    }

    TestApi api;
};

TEST_F(NamedWorkflows, OldClassesAreTakenForWhatReplacesThem) {
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
    EXPECT_EQ(put("old", body(graph)).status / 100, 2);
}

TEST_F(NamedWorkflows, AWorkflowIsStoredOnceForEachContent) {
    const auto first = put("portrait", body(workflow(), kDeclared));
    ASSERT_EQ(first.status, 201) << first.body;
    EXPECT_EQ(first.headers.get("Location"), "/v2/workflows/portrait/versions/1");
    EXPECT_EQ(first.headers.get("X-API-Version"), "2.0");
    const json::object made = parse(first.body);
    EXPECT_EQ(made.at("name"), "portrait");
    EXPECT_EQ(made.at("version"), 1);
    EXPECT_EQ(made.at("description"), "A picture");
    EXPECT_THAT(keys(made.at("parameters")), ElementsAre("steps", "model", "seed"));
    EXPECT_EQ(made.at("workflow"), parse(workflow()));
    EXPECT_FALSE(made.contains("prompt"));

    const auto again = put("portrait", body(workflow(), kDeclared));
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(again.headers.get("ETag"), first.headers.get("ETag"));
    const auto second = put("portrait", body(workflow(21), kDeclared));
    EXPECT_EQ(second.status, 201);
    EXPECT_EQ(parse(second.body).at("version"), 2);
    EXPECT_NE(second.headers.get("ETag"), first.headers.get("ETag"));

    const auto shown = get("portrait");
    EXPECT_EQ(parse(shown.body).at("version"), 2);
    EXPECT_EQ(parse(get("portrait?version=1").body).at("workflow"), parse(workflow()));
    const std::string tag(shown.headers.get("ETag"));
    EXPECT_EQ(api.get("/v2/workflows/portrait", header("If-None-Match", tag)).status, 304);

    const json::object versions = parse(get("portrait/versions").body);
    EXPECT_EQ(versions.at("count"), 2);
    EXPECT_EQ(versions.at("versions").at(0).at("version"), 2);
    EXPECT_FALSE(versions.at("versions").at(0).as_object().contains("workflow"));
    const json::object page = parse(get("portrait/versions?limit=1").body);
    EXPECT_EQ(page.at("next_cursor"), "2");
    EXPECT_EQ(
        parse(get("portrait/versions?limit=1&cursor=2").body).at("versions").at(0).at("version"), 1
    );
    EXPECT_EQ(parse(get("portrait/versions/1").body).at("workflow"), parse(workflow()));
    EXPECT_EQ(get("portrait/versions/3").status, 404);
    EXPECT_EQ(get("portrait/versions/x").status, 404);
    EXPECT_EQ(get("portrait?version=3").status, 404);
    EXPECT_EQ(get("portrait?version=0").status, 400);
    EXPECT_EQ(get("portrait?version=1&label=x").status, 400);
    EXPECT_EQ(get("portrait/versions?limit=0").status, 400);
    EXPECT_EQ(get("portrait/versions?cursor=x").status, 400);
}

TEST_F(NamedWorkflows, NamesAreListedAndDeleted) {
    for (const char* name : {"c", "a.b-c_d", "b"}) {
        ASSERT_EQ(put(name, body(workflow())).status, 201);
    }
    const json::object page = parse(api.get("/v2/workflows?limit=2").body);
    EXPECT_EQ(page.at("count"), 2);
    EXPECT_EQ(page.at("workflows").at(0).at("name"), "a.b-c_d");
    EXPECT_EQ(page.at("next_cursor"), "b");
    EXPECT_EQ(parse(api.get("/v2/workflows?cursor=b").body).at("workflows").at(0).at("name"), "c");
    EXPECT_EQ(api.send("DELETE", "/v2/workflows/b").status, 204);
    EXPECT_EQ(api.send("DELETE", "/v2/workflows/b").status, 404);
    EXPECT_EQ(get("b").status, 404);
    EXPECT_EQ(parse(api.get("/v2/workflows").body).at("count"), 2);
}

TEST_F(NamedWorkflows, NamesThatArePathsAreRefused) {
    const std::string long_name(65, 'x');
    for (const std::string& name : std::vector<std::string>{
             "execute",
             "execution",
             "executions",
             "validate",
             "plan",
             "Upper",
             "-x",
             "a%20b",
             "x%2Fy",
             long_name,
         }) {
        const auto refused = put(name, body(workflow()));
        EXPECT_EQ(refused.status, 400) << name << refused.body;
        EXPECT_NE(get(name).status, 500);
    }
    EXPECT_EQ(put(std::string(64, 'x'), body(workflow())).status, 201);
    EXPECT_EQ(run("execution/run", "{}").status, 404);
    EXPECT_EQ(run("execute", body(workflow())).status, 202);
    EXPECT_EQ(run("validate", body(workflow())).status, 200);
}

TEST_F(NamedWorkflows, WhatCouldNotRunIsNotStored) {
    EXPECT_EQ(error_code(put("x", "{}")), "invalid_argument");
    EXPECT_EQ(error_code(put("x", R"({"workflow": {}})")), "invalid_workflow");
    EXPECT_EQ(
        error_code(put("x", R"({"workflow": {"1": {"class_type": "No"}}})")), "invalid_workflow"
    );
    EXPECT_EQ(error_code(put("x", body(workflow(500)))), "invalid_workflow");
    EXPECT_EQ(put("x", body(workflow(500), R"("check": false)")).status, 201);
    EXPECT_EQ(put("x", body(workflow(), R"("check": 1)")).status, 400);
    EXPECT_EQ(put("x", body(workflow(), R"("description": 1)")).status, 400);
    EXPECT_EQ(put("x", body(workflow(), R"("parameters": {"a": "9.x"})")).status, 400);
    const auto wrong = put("x", body(workflow(), R"("parameters": {"steps":
        {"target": "2.steps", "default": 500}})"));
    EXPECT_EQ(wrong.status, 400);
    EXPECT_EQ(parse(wrong.body).at("error").at("details").at("field"), "parameters.steps");
    const std::string large(named::kWorkflowBytesMax, 'x');
    EXPECT_EQ(put("x", body(R"({"1": {"class_type": ")" + large + R"("}})")).status, 413);
}

TEST_F(NamedWorkflows, TheEditorsFormatIsStoredAsItCame) {
    const std::string editor = R"({"version": 0.4, "nodes": [
        {"id": 1, "type": "Load", "widgets_values": ["b.safetensors"],
         "outputs": [{"name": "MODEL", "type": "MODEL", "links": [1]}]},
        {"id": 2, "type": "KSampler", "inputs": [{"name": "model", "type": "MODEL", "link": 1}],
         "widgets_values": [5, "fixed", 20, "euler"],
         "outputs": [{"name": "LATENT", "type": "LATENT", "links": [2]}]},
        {"id": 3, "type": "Save", "inputs": [{"name": "samples", "type": "LATENT", "link": 2}]}],
        "links": [[1, 1, 0, 2, 0, "MODEL"], [2, 2, 0, 3, 0, "LATENT"]]})";
    const auto stored = put("editor", body(editor));
    ASSERT_EQ(stored.status, 201) << stored.body;
    const json::object made = parse(stored.body);
    EXPECT_EQ(made.at("workflow"), parse(editor));
    EXPECT_EQ(made.at("prompt").at("2").at("inputs").at("sampler_name"), "euler");
    EXPECT_TRUE(made.at("parameters").as_object().contains("steps"));
    const auto accepted = run("editor/run", R"({"params": {"steps": 7}})");
    ASSERT_EQ(accepted.status, 202) << accepted.body;
    const json::object ran = parse(spec_of(accepted).workflow);
    EXPECT_EQ(ran.at("2").at("inputs").at("steps"), 7);
    EXPECT_EQ(ran.at("1").at("inputs").at("ckpt_name"), "b.safetensors");
}

TEST_F(NamedWorkflows, ARunIsAnExecution) {
    ASSERT_EQ(put("portrait", body(workflow(), kDeclared)).status, 201);
    const auto accepted =
        run("portrait/run",
            R"({"params": {"model": "b.safetensors", "seed": "random"}, "priority": 9,
            "metadata": {"order": 1}})");
    ASSERT_EQ(accepted.status, 202) << accepted.body;
    const json::object answer = parse(accepted.body);
    EXPECT_EQ(answer.at("workflow_id"), "portrait");
    EXPECT_EQ(answer.at("workflow_version"), 1);
    EXPECT_EQ(answer.at("priority"), 9);
    EXPECT_EQ(answer.at("metadata").at("order"), 1);
    EXPECT_TRUE(answer.at("chosen_parameters").as_object().contains("seed"));
    EXPECT_THAT(
        std::string(accepted.headers.get("Location")),
        testing::StartsWith("/v2/workflows/execution/")
    );
    const jobs::Spec spec = spec_of(accepted);
    const json::object ran = parse(spec.workflow);
    EXPECT_EQ(ran.at("1").at("inputs").at("ckpt_name"), "b.safetensors");
    EXPECT_EQ(ran.at("2").at("inputs").at("steps"), 30);
    EXPECT_EQ(ran.size(), 3U);
    EXPECT_EQ(spec.workflow_id, "portrait");
    EXPECT_EQ(spec.dialect_data.at("workflow_version"), 1);
    EXPECT_EQ(parse(get("executions?workflow_id=portrait").body).at("count"), 1);
    EXPECT_EQ(parse(get("executions?workflow_id=other").body).at("count"), 0);
}

TEST_F(NamedWorkflows, ARunCanBeWaitedFor) {
    ASSERT_EQ(put("portrait", body(workflow())).status, 201);
    api.open_worker();
    const auto ended = api.send("POST", "/v2/workflows/portrait/run?wait=60");
    ASSERT_EQ(ended.status, 200) << ended.body;
    EXPECT_EQ(parse(ended.body).at("status"), "completed");
    EXPECT_EQ(run("execute?wait=60", body(workflow())).status, 200);
    EXPECT_EQ(run("portrait/run?wait=301", "{}").status, 400);
    EXPECT_EQ(run("portrait/run?wait=x", "{}").status, 400);
}

TEST_F(NamedWorkflows, WrongParametersAreNamed) {
    ASSERT_EQ(put("portrait", body(workflow(), kDeclared)).status, 201);
    const auto refused =
        run("portrait/run", R"({"params": {"stepz": 3, "steps": 51, "seed": "x"}})");
    EXPECT_EQ(refused.status, 400);
    const json::object error = parse(refused.body).at("error").as_object();
    const json::array& found = error.at("details").at("parameters").as_array();
    ASSERT_EQ(found.size(), 4U) << refused.body;
    EXPECT_EQ(found[0].at("reason"), "unknown_parameter");
    EXPECT_THAT(message_of(refused), HasSubstr("it has steps, model, seed"));
    EXPECT_EQ(found[1].at("expected").at("maximum"), 50);
    EXPECT_EQ(found[2].at("reason"), "wrong_type");
    EXPECT_EQ(found[3].at("parameter"), "model");
    EXPECT_THAT(
        message_of(run("portrait/run", R"({"model": "b.safetensors"})")), HasSubstr("'params'")
    );
    EXPECT_EQ(run("portrait/run", R"({"params": {}, "input_params": {}})").status, 400);
    EXPECT_EQ(run("portrait/run", R"({"params": []})").status, 400);
    EXPECT_EQ(run("portrait/run", "[").status, 400);
    EXPECT_EQ(
        run("portrait/run", R"({"params": {"model": "a.safetensors"}, "priority": 11})").status, 400
    );
    EXPECT_EQ(run("nothing/run", "{}").status, 404);
}

TEST_F(NamedWorkflows, LabelsChooseTheVersion) {
    for (const int steps : {1, 2, 3}) {
        ASSERT_EQ(put("portrait", body(workflow(steps))).status, 201);
    }
    const auto version_of = [&](const std::string& path) {
        return parse(run(path, "{}").body).at("workflow_version").to_number<int>();
    };
    EXPECT_EQ(version_of("portrait/run"), 3);
    ASSERT_EQ(put("portrait/labels/production", R"({"version": 1})").status, 200);
    const auto labelled = put("portrait/labels/staging", R"({"version": 2})");
    ASSERT_EQ(labelled.status, 200);
    EXPECT_EQ(parse(labelled.body).at("default_version"), 1);
    EXPECT_EQ(parse(labelled.body).at("labels").at("staging"), 2);
    EXPECT_EQ(version_of("portrait/run"), 1);
    EXPECT_EQ(version_of("portrait/run?label=staging"), 2);
    EXPECT_EQ(version_of("portrait/run?version=3"), 3);
    EXPECT_EQ(run("portrait/run?label=canary", "{}").status, 404);
    EXPECT_EQ(put("portrait/labels/staging", R"({"version": 9})").status, 404);
    EXPECT_EQ(put("portrait/labels/staging", "{}").status, 400);
    EXPECT_EQ(put("portrait/labels/7", R"({"version": 1})").status, 400);
    EXPECT_EQ(put("nothing/labels/staging", R"({"version": 1})").status, 404);
    EXPECT_EQ(api.send("DELETE", "/v2/workflows/portrait/labels/production").status, 200);
    EXPECT_EQ(version_of("portrait/run"), 3);
    EXPECT_EQ(api.send("DELETE", "/v2/workflows/portrait/versions/3").status, 204);
    EXPECT_EQ(version_of("portrait/run"), 2);
}

TEST_F(NamedWorkflows, ChangesCanBeMadeConditional) {
    const auto made = put("portrait", body(workflow(1)), header("If-None-Match", "*"));
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string old(made.headers.get("ETag"));
    EXPECT_EQ(put("portrait", body(workflow(2)), header("If-None-Match", "*")).status, 412);
    EXPECT_EQ(put("other", body(workflow(2)), header("If-Match", "*")).status, 412);
    const auto next = put("portrait", body(workflow(2)), header("If-Match", old));
    ASSERT_EQ(next.status, 201);
    const auto stale = put("portrait", body(workflow(3)), header("If-Match", old));
    EXPECT_EQ(stale.status, 412);
    EXPECT_EQ(error_code(stale), "conflict");
    EXPECT_EQ(
        put("portrait/labels/production", R"({"version": 1})", header("If-Match", old)).status, 412
    );
    const std::string path = "/v2/workflows/portrait";
    EXPECT_EQ(api.send("DELETE", path, {}, header("If-Match", old)).status, 412);
    EXPECT_EQ(api.send("DELETE", path + "/versions/1", {}, header("If-Match", old)).status, 412);
    const std::string current(next.headers.get("ETag"));
    EXPECT_EQ(api.send("DELETE", path, {}, header("If-Match", current)).status, 204);
}

TEST_F(NamedWorkflows, AKeyGoesWithTheRequestNotWithTheVersion) {
    ASSERT_EQ(put("portrait", body(workflow(1))).status, 201);
    const auto send = [&](const std::string& path, const std::string& text) {
        return api.post("/v2/workflows/" + path, text, header("Idempotency-Key", "k"));
    };
    const auto first = send("portrait/run", R"({"params": {"seed": "random"}})");
    ASSERT_EQ(first.status, 202) << first.body;
    ASSERT_EQ(put("portrait", body(workflow(2))).status, 201);
    const auto again = send("portrait/run", R"({"params": {"seed": "random"}})");
    EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
    EXPECT_EQ(parse(again.body).at("execution_id"), parse(first.body).at("execution_id"));
    EXPECT_EQ(
        error_code(send("portrait/run", R"({"params": {"seed": 2}})")), "idempotency_key_reuse"
    );
    EXPECT_EQ(
        error_code(send("portrait/run?version=1", R"({"params": {"seed": "random"}})")),
        "idempotency_key_reuse"
    );
}

TEST_F(NamedWorkflows, TheSchemaComesFromTheClasses) {
    ASSERT_EQ(put("portrait", body(workflow(), kDeclared)).status, 201);
    const json::object schema = parse(get("portrait/schema").body);
    EXPECT_EQ(schema.at("title"), "portrait");
    EXPECT_EQ(schema.at("x-version"), 1);
    EXPECT_EQ(
        json::value(schema.at("properties").at("steps")),
        *json::parse(R"({"title":"Steps","type":"integer","minimum":1,"maximum":50,"default":30})")
    );
    EXPECT_EQ(schema.at("properties").at("model").at("enum").as_array().size(), 2U);
    EXPECT_EQ(schema.at("required"), *json::parse(R"(["model"])"));
    EXPECT_EQ(schema.at("additionalProperties"), false);
    EXPECT_EQ(get("nothing/schema").status, 404);
}

TEST_F(NamedWorkflows, TheDocumentHasAnOperationForEach) {
    ASSERT_EQ(put("portrait", body(workflow(), kDeclared)).status, 201);
    ASSERT_EQ(put("a.b-c", body(workflow())).status, 201);
    const auto response = api.get("/openapi.json");
    const json::object document = parse(response.body);
    const json::value& operation = document.at("paths").at("/v2/workflows/portrait/run").at("post");
    EXPECT_EQ(operation.at("operationId"), "run.portrait");
    EXPECT_EQ(operation.at("description"), "A picture");
    EXPECT_EQ(operation.at("requestBody").at("required"), true);
    EXPECT_TRUE(document.at("paths").as_object().contains("/v2/workflows/a.b-c/run"));
    const json::object& schemas = document.at("components").at("schemas").as_object();
    EXPECT_EQ(schemas.at("WorkflowParams.portrait").at("properties").at("steps").at("maximum"), 50);
    std::set<std::string> ids;
    for (const auto& path : document.at("paths").as_object()) {
        for (const auto& method : path.value().as_object()) {
            const auto id = std::string(method.value().at("operationId").as_string());
            EXPECT_TRUE(ids.insert(id).second) << id;
        }
    }
    const std::string prefix = "#/components/schemas/";
    for (std::size_t at = response.body.find(prefix); at != std::string::npos;
         at = response.body.find(prefix, at + 1)) {
        const std::size_t begin = at + prefix.size();
        const std::string name =
            response.body.substr(begin, response.body.find('"', begin) - begin);
        EXPECT_TRUE(schemas.contains(name)) << name;
    }
    ASSERT_EQ(api.send("DELETE", "/v2/workflows/portrait").status, 204);
    EXPECT_FALSE(parse(api.get("/openapi.json").body)
                     .at("paths")
                     .as_object()
                     .contains("/v2/workflows/portrait/run"));
}

TEST_F(NamedWorkflows, ATaskCanNameOne) {
    ASSERT_EQ(put("text_to_image_v1", body(workflow(), kDeclared)).status, 201);
    const auto accepted = api.post(
        "/api/v1/tasks",
        R"({"workflow_id": "text_to_image_v1", "payload": {"model": "a.safetensors", "steps": 3}})"
    );
    ASSERT_EQ(accepted.status, 201) << accepted.body;
    const json::object task = parse(accepted.body);
    EXPECT_EQ(task.at("workflow_id"), "text_to_image_v1");
    EXPECT_EQ(task.at("workflow_version"), 1);
    const auto id = *JobId::parse(std::string_view(task.at("id").as_string()));
    EXPECT_EQ(parse(api.ledger.spec(id).workflow).at("2").at("inputs").at("steps"), 3);

    const auto post = [&](const std::string& text) { return api.post("/api/v1/tasks", text); };
    EXPECT_EQ(
        post(R"({"workflow_id": "text_to_image_v1@1",
        "payload": {"model": "a.safetensors"}})")
            .status,
        201
    );
    EXPECT_EQ(post(R"({"workflow_id": "text_to_image_v1"})").status, 400);
    EXPECT_EQ(post(R"({"workflow_id": "nothing"})").status, 404);
    // A workflow in the payload runs as it is, whatever it is called.
    const auto own = post(R"({"workflow_id": "text_to_image_v1", "payload": )" + workflow(9) + "}");
    ASSERT_EQ(own.status, 201) << own.body;
    EXPECT_FALSE(parse(own.body).contains("workflow_version"));
}

class TenantsOfNamedWorkflows : public NamedWorkflows {
protected:
    TenantsOfNamedWorkflows() : NamedWorkflows(true) {}
};

TEST_F(TenantsOfNamedWorkflows, SeeTheirOwn) {
    const auto one = header("Authorization", "Bearer key-of-one");
    const auto two = header("Authorization", "Bearer key-of-two");
    ASSERT_EQ(put("portrait", body(workflow()), one).status, 201);
    EXPECT_EQ(put("portrait", body(workflow())).status, 401);
    EXPECT_EQ(api.get("/v2/workflows/portrait", two).status, 404);
    EXPECT_EQ(parse(api.get("/v2/workflows", two).body).at("count"), 0);
    EXPECT_EQ(api.post("/v2/workflows/portrait/run", "{}", two).status, 404);
    EXPECT_EQ(api.send("DELETE", "/v2/workflows/portrait", {}, two).status, 404);
    EXPECT_EQ(api.post("/v2/workflows/portrait/run", "{}", one).status, 202);
    const std::string path = "/v2/workflows/portrait/run";
    const auto paths = [&](net::Headers headers) {
        return parse(api.get("/openapi.json", std::move(headers)).body).at("paths").as_object();
    };
    EXPECT_TRUE(paths(one).contains(path));
    EXPECT_FALSE(paths(two).contains(path));
    EXPECT_FALSE(paths({}).contains(path));
}

TEST(NamedReferences, AreANameAndPerhapsAVersion) {
    const auto plain = named::parse_reference("a.b");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->name, "a.b");
    EXPECT_EQ(named::parse_reference("a@12")->version, 12);
    EXPECT_EQ(named::parse_reference("a@staging")->label, "staging");
    for (const char* wrong : {"", "A", "a@", "a@0", "a@A", "execute", "a b", "a/b", "@1"}) {
        EXPECT_FALSE(named::parse_reference(wrong)) << wrong;
    }
}

}  // namespace
}  // namespace comfyd::api
