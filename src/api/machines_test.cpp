// What a request says of the machine that is to run it: in every API, and when there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/submission.hpp"
#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;
constexpr char kGraph[] = R"({"1": {"class_type": "Save", "inputs": {}}})";
constexpr char kMachine[] =
    R"("region": "eu", "gpu_requirements": {"gpu_type": "RTX 4090", "memory_gb": 20},
       "gpu_memory_fraction": 0.5)";

Arrangement two_machines() {
    const auto classes = *workflow::NodeClasses::from_object_info(
        *json::parse(R"({"Save": {"input": {}, "output": [], "output_node": true}})")
    );
    Arrangement setup;
    setup.catalogue = std::make_shared<const workflow::Catalogue>(
        std::vector<workflow::Catalogue::Entry>{
            {.worker = "small",
             .classes = classes,
             .gpu = "NVIDIA GeForce RTX 4090",
             .region = "eu",
             .gpu_memory_bytes = 24 * kGiB},
            {.worker = "large",
             .classes = classes,
             .pool = "gold",
             .gpu = "NVIDIA H200",
             .region = "us",
             .gpu_memory_bytes = 140 * kGiB},
        },
        std::vector<workflow::Catalogue::Prospect>{{"gold", "B200", "us"}}
    );
    setup.options.pools = {"default", "gold"};
    return setup;
}

std::string body(const std::string& members) {
    return R"({"workflow": )" + std::string(kGraph) + (members.empty() ? "" : "," + members) + "}";
}

class MachineFields : public testing::Test {
protected:
    Requirement requirement_of(const net::ClientResponse& response, const char* id) {
        EXPECT_LT(response.status, 300) << response.body;
        const json::object answer = parse(response.body);
        return answer.contains(id)
                   ? api.ledger.spec(*JobId::parse(std::string_view(answer.at(id).as_string())))
                         .requirement
                   : Requirement();
    }
    void expect_wish(const net::ClientResponse& response, const char* id) {
        const Requirement requirement = requirement_of(response, id);
        const MachineWish wanted{
            .gpu = "RTX 4090", .region = "eu", .memory_gb = 20, .memory_part = 0.5
        };
        EXPECT_EQ(requirement.machine(), wanted) << response.body;
        EXPECT_EQ(requirement.on({}).encoded(), "Save");
    }

    TestApi api{two_machines()};
};

TEST_F(MachineFields, EveryDialectTakesThem) {
    const std::string all = kMachine;
    expect_wish(api.post("/v2/workflows/execute", body(all)), "execution_id");
    const std::string config = R"("execution_config": {)" + all + "}";
    expect_wish(api.post("/v1/workflows/execute", body(config)), "execution_id");
    expect_wish(api.post("/comfyui/execute", body(config)), "execution_id");
    expect_wish(
        api.post("/api/v1/tasks", R"({"payload": )" + std::string(kGraph) + "," + all + "}"), "id"
    );
    expect_wish(api.post("/api/v2/jobs", body(all)), "id");
    expect_wish(
        api.post(
            "/runpod/v2/e/run",
            R"({"input": {"workflow": )" + std::string(kGraph) + R"(}, "policy": {)" + all + "}}"
        ),
        "id"
    );
    net::Headers headers = header("X-Comfyd-Region", "us");
    EXPECT_EQ(
        requirement_of(api.post("/v2/workflows/execute", body(""), headers), "execution_id")
            .machine()
            .region,
        "us"
    );
    ASSERT_EQ(api.send("PUT", "/v2/workflows/stored", body("")).status, 201);
    expect_wish(api.post("/v2/workflows/stored/run", "{" + all + "}"), "execution_id");
}

TEST_F(MachineFields, ValuesThatCannotBeAreRefusedByName) {
    const auto refused = [this](const std::string& members) {
        const auto answer = api.post("/v2/workflows/execute", body(members));
        EXPECT_EQ(answer.status, 400) << members << answer.body;
        const json::object error = parse(answer.body).at("error").as_object();
        const json::value* details = json::find(error, "details");
        const json::value* field =
            details == nullptr ? nullptr : json::find(details->as_object(), "field");
        return field == nullptr ? std::string() : std::string(field->as_string());
    };
    for (const char* number : {"-1", "4097", "1e999", "\"24\"", "true", "[]"}) {
        EXPECT_EQ(
            refused(R"("gpu_requirements": {"memory_gb": )" + std::string(number) + "}"),
            "gpu_requirements.memory_gb"
        );
    }
    EXPECT_EQ(refused(R"("gpu_requirements": {"gpu_type": 7})"), "gpu_requirements.gpu_type");
    EXPECT_EQ(
        refused(R"("gpu_requirements": {"gpu_type": "a\tb\nc"})"), "gpu_requirements.gpu_type"
    );
    EXPECT_EQ(refused(R"("region": ")" + std::string(65, 'x') + "\""), "region");
    EXPECT_EQ(refused(R"("region": "\n\tpool\tgold")"), "region");
    EXPECT_EQ(refused(R"("gpu_memory_fraction": 1.5)"), "gpu_memory_fraction");
    EXPECT_EQ(
        refused(R"("execution_config": {"gpu_memory_fraction": -0.1})"), "gpu_memory_fraction"
    );
    static_cast<void>(refused(R"("gpu_requirements": [])"));
    for (const char* nothing :
         {R"("gpu_requirements": {})",
          R"("gpu_requirements": null)",
          R"("gpu_requirements": {"memory_gb": 0, "gpu_type": ""})",
          R"("gpu_memory_fraction": 0)",
          R"("region": "")"}) {
        const auto answer = api.post("/v2/workflows/execute", body(nothing));
        EXPECT_EQ(requirement_of(answer, "execution_id"), Requirement::decode("Save")) << nothing;
    }
}

TEST_F(MachineFields, WhatNobodyIsIsRefusedWithWhatThereIs) {
    const std::string wanted = R"("gpu_requirements": {"gpu_type": "RTX 4090", "memory_gb": 48})";
    const auto refused = api.post("/v2/workflows/execute", body(wanted));
    EXPECT_EQ(refused.status, 400) << refused.body;
    const json::object error = parse(refused.body).at("error").as_object();
    EXPECT_EQ(error.at("code"), "no_capable_worker");
    EXPECT_THAT(
        std::string(error.at("message").as_string()),
        HasSubstr("nearest is 'small', which lacks 48 GB of GPU memory (it has 24 GB)")
    );
    EXPECT_EQ(error.at("details").at("machines").as_array().size(), 3U);
    const json::object checked = parse(api.post("/v2/workflows/validate", body(wanted)).body);
    EXPECT_EQ(checked.at("valid"), false);
    EXPECT_THAT(json::serialize(checked), HasSubstr("NO_CAPABLE_WORKER"));
    EXPECT_EQ(parse(api.post("/v2/workflows/validate", body(kMachine)).body).at("valid"), true);
}

TEST_F(MachineFields, WhatMayBeRentedIsWaitedFor) {
    const auto waits = api.post(
        "/v2/workflows/execute", body(R"("gpu_requirements": {"gpu_type": "B200"}, "region": "us")")
    );
    EXPECT_EQ(requirement_of(waits, "execution_id").machine().gpu, "B200");
    EXPECT_EQ(
        api.post(
               "/v2/workflows/execute",
               body(R"("gpu_requirements": {"gpu_type": "B200"}, "region": "eu")")
        )
            .status,
        400
    );
}

TEST_F(MachineFields, AnotherMachineIsAnotherRequest) {
    net::Headers headers = header("Idempotency-Key", "k");
    const auto with = [&](const char* members) {
        return api.post("/v2/workflows/execute", body(members), headers).status;
    };
    EXPECT_EQ(with(R"("region": "eu")"), 202);
    EXPECT_EQ(with(R"("region": "eu")"), 202);
    EXPECT_EQ(with(R"("region": "us")"), 422);
    EXPECT_EQ(with(""), 422);
    EXPECT_EQ(with(R"("region": "eu", "gpu_requirements": {"memory_gb": 8})"), 422);
}

}  // namespace
}  // namespace comfyd::api
