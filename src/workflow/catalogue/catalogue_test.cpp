#include "workflow/catalogue/catalogue.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/definition_pool.hpp"
#include "workflow/catalogue/object_info_union.hpp"
#include "workflow/catalogue/test_catalogue.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

std::shared_ptr<const NodeClasses> classes(std::string_view object_info) {
    return *NodeClasses::from_object_info(*json::parse(object_info));
}

// A worker with these checkpoints.
std::shared_ptr<const NodeClasses> worker(
    std::string_view checkpoints, std::string_view more = ""
) {
    return classes(
        R"({"Load": {"input": {"required": {"ckpt": [)" + std::string(checkpoints) +
        R"(, {"x": 1}], "how": [["fast"]]}}, "output": ["MODEL"]},
            "Save": {"input": {"required": {"model": ["MODEL"]}}, "output": [], "output_node": true})" +
        std::string(more) + "}"
    );
}

json::object workflow(const char* checkpoint) {
    json::object made = parse(R"({
        "1": {"class_type": "Load", "inputs": {"how": "fast"}},
        "2": {"class_type": "Save", "inputs": {"model": ["1", 0]}}})");
    made.at("1").at("inputs").as_object()["ckpt"] = checkpoint;
    return made;
}

Catalogue two_workers() {
    return Catalogue(
        {{"a", worker(R"(["both", "a only"])")}, {"b", worker(R"(["b only", "both"])")}}
    );
}

TEST(Catalogue, EqualClassesAreOneObject) {
    const std::size_t before = shared_definition_count();
    std::vector<std::shared_ptr<const NodeClasses>> workers;
    for (int i = 0; i < 100; ++i) {
        workers.push_back(worker(R"(["m)" + std::to_string(i) + R"("])"));
    }
    EXPECT_EQ(workers[0]->find("Save"), workers[99]->find("Save"));
    EXPECT_NE(workers[0]->find("Load"), workers[99]->find("Load"));
    EXPECT_EQ(shared_definition_count(), before + 101);
    workers.clear();
    EXPECT_EQ(shared_definition_count(), before);
}

TEST(Catalogue, MalformedEntriesAreLeftOut) {
    const auto some = classes(R"({"Good": {}, "number": 7, "tab\there": {}, "line\n": {},
                                  "wrong": {"input": 5}, "list": []})");
    EXPECT_EQ(some->size(), 1U);
    EXPECT_NE(some->find("Good"), nullptr);
    EXPECT_FALSE(NodeClasses::from_object_info(json::value("text")));
    EXPECT_FALSE(NodeClasses::from_object_info(json::value(json::array())));
}

TEST(Catalogue, NeedsAreReadLineByLine) {
    const auto one = worker(R"(["both", "a only"])");
    EXPECT_TRUE(one->has_all(Requirement::decode("")));
    EXPECT_TRUE(one->has_all(Requirement::decode("Load\nSave")));
    EXPECT_FALSE(one->has_all(Requirement::decode("Load\nOther")));
    EXPECT_TRUE(one->has_all(Requirement::decode("Load\nLoad\tckpt\ta only\nSave")));
    EXPECT_FALSE(one->has_all(Requirement::decode("Load\nLoad\tckpt\tb only\nSave")));
    EXPECT_FALSE(one->has_all(Requirement::decode("Load\tnothing\tboth")));
    EXPECT_FALSE(one->has_all(Requirement::decode("Load\tckpt")));
    EXPECT_FALSE(one->has_all(Requirement::decode("Other\tckpt\tboth")));
}

TEST(Catalogue, OnlyChoicesThatDifferAreNeeds) {
    const Catalogue fleet = two_workers();
    EXPECT_EQ(fleet.requirement_of(workflow("both")).encoded(), "Load\nSave");
    EXPECT_EQ(fleet.requirement_of(workflow("a only")).encoded(), "Load\nLoad\tckpt\ta only\nSave");
    EXPECT_EQ(fleet.requirement_of(workflow("unknown")).encoded(), "Load\nSave");
    EXPECT_TRUE(fleet.workers()[0].classes->has_all(fleet.requirement_of(workflow("a only"))));
    EXPECT_FALSE(fleet.workers()[1].classes->has_all(fleet.requirement_of(workflow("a only"))));
    const Catalogue alike({{"a", worker(R"(["m"])")}, {"b", worker(R"(["m"])")}});
    EXPECT_EQ(alike.requirement_of(workflow("m")).encoded(), "Load\nSave");
}

TEST(Catalogue, OnlyWorkersOfThePoolCount) {
    const Catalogue fleet(
        {{"one", worker(R"(["both", "a only"])"), "gold"},
         {"two", worker(R"(["both", "b only"])"), "default"}}
    );
    const Requirement wanted = fleet.requirement_of(workflow("b only"));
    EXPECT_TRUE(fleet.workers()[1].classes->has_all(wanted.in_pool("gold")));
    EXPECT_TRUE(fleet.can_run(wanted));
    EXPECT_TRUE(fleet.can_run(wanted.in_pool("default")));
    EXPECT_FALSE(fleet.can_run(wanted.in_pool("gold")));
    EXPECT_EQ(fleet.pools_for(wanted.in_pool("gold")), std::vector<std::string>{"default"});
    EXPECT_TRUE(fleet.has_pool("gold"));
    EXPECT_FALSE(fleet.has_pool("silver"));
    const auto nearest = fleet.nearest(wanted.in_pool("gold"));
    ASSERT_TRUE(nearest);
    EXPECT_EQ(nearest->worker, "one");
    EXPECT_EQ(nearest->missing_files.at(0).at("value"), "b only");
    EXPECT_FALSE(fleet.nearest(wanted.in_pool("silver")));
    const auto refused = check(workflow("b only"), fleet, {.pool = "gold"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::no_capable_worker);
    EXPECT_EQ(refused.error().details.at("other_pools"), json::value(json::array{"default"}));
    EXPECT_EQ(
        check(workflow("b only"), fleet, {.pool = "default"})->requirement,
        wanted.in_pool("default")
    );
    EXPECT_TRUE(check(workflow("b only"), fleet, {.pool = "silver"}));  // waits for a worker of it
}

constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;

std::vector<Catalogue::Entry> two_cards() {
    return {
        {.worker = "one",
         .classes = worker(R"(["both", "a only"])"),
         .gpu = "NVIDIA GeForce RTX 4090",
         .region = "eu",
         .gpu_memory_bytes = 24 * kGiB},
        {.worker = "two",
         .classes = worker(R"(["both", "b only"])"),
         .pool = "gold",
         .gpu = "NVIDIA L40S",
         .region = "us",
         .gpu_memory_bytes = 45 * kGiB},
    };
}

TEST(Catalogue, OnlyMachinesAsAskedForCount) {
    const Catalogue fleet(two_cards());
    const auto runs = [&fleet](const char* file, const MachineWish& wish) {
        return fleet.can_run(fleet.requirement_of(workflow(file)).on(wish));
    };
    EXPECT_TRUE(runs("both", {.gpu = "RTX 4090"}));
    EXPECT_TRUE(runs("both", {.region = "us", .memory_gb = 40, .memory_part = 0.5}));
    EXPECT_FALSE(runs("b only", {.gpu = "RTX 4090"}));
    EXPECT_FALSE(runs("both", {.gpu = "RTX 4090", .memory_gb = 40}));
    EXPECT_FALSE(runs("both", {.pool = "gold", .gpu = "RTX 4090"}));
    EXPECT_TRUE(runs("both", {.memory_part = 1}));
    const auto refused =
        check(workflow("both"), fleet, {.gpu = "H200", .region = "eu", .memory_gb = 48});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::no_capable_worker);
    EXPECT_EQ(
        refused.error().message,
        "no worker has all that the request asks for, and none can be had; nearest is 'one', which "
        "lacks the GPU 'H200' (it has 'NVIDIA GeForce RTX 4090'), 48 GB of GPU memory (it has 24 "
        "GB)"
    );
    const json::array& machines = refused.error().details.at("machines").as_array();
    ASSERT_EQ(machines.size(), 2U);
    EXPECT_EQ(
        machines[1],
        json::value(
            {{"pool", "gold"},
             {"gpu_type", "NVIDIA L40S"},
             {"memory_gb", 45.0},
             {"region", "us"},
             {"is_offer", false}}
        )
    );
    EXPECT_TRUE(refused.error().details.at("missing_nodes").as_array().empty());
    EXPECT_FALSE(refused.error().details.contains("other_pools"));
    const auto elsewhere = check(workflow("both"), fleet, {.pool = "gold", .gpu = "RTX 4090"});
    ASSERT_FALSE(elsewhere);
    EXPECT_EQ(elsewhere.error().details.at("other_pools"), json::value(json::array{"default"}));
    EXPECT_EQ(elsewhere.error().details.at("machines").as_array().size(), 1U) << "of the pool";
}

TEST(Catalogue, WhatAPoolMayHaveOneDayIsWaitedFor) {
    auto entries = two_cards();
    entries.push_back(
        {.worker = "pool cloud",
         .classes = worker(R"(["both"])"),
         .pool = "cloud",
         .is_memory = true}
    );
    const Catalogue fleet(
        entries, {{"cloud", "H200", "eu"}, {"cloud", "A100 40GB", ""}, {"fresh", "", "asia"}}
    );
    const auto runs = [&fleet](const char* file, const MachineWish& wish) {
        return fleet.can_run(fleet.requirement_of(workflow(file)).on(wish));
    };
    EXPECT_TRUE(runs("both", {.gpu = "NVIDIA H200", .memory_gb = 141}));
    EXPECT_TRUE(runs("both", {.pool = "cloud", .gpu = "A100", .region = "mars"})) << "any region";
    EXPECT_FALSE(runs("both", {.pool = "cloud", .gpu = "H200", .region = "us"}));
    EXPECT_FALSE(runs("both", {.pool = "cloud", .gpu = "A100", .memory_gb = 80}));
    EXPECT_FALSE(runs("both", {.pool = "cloud", .gpu = "RTX 4090"}));
    EXPECT_FALSE(runs("b only", {.pool = "cloud", .gpu = "H200"})) << "its image has no such file";
    EXPECT_TRUE(runs("b only", {.gpu = "B200", .region = "asia"}))
        << "of its image nothing is known";
    EXPECT_FALSE(runs("b only", {.gpu = "RTX 4090", .region = "asia", .memory_gb = 48}));
    EXPECT_TRUE(runs("both", {.pool = "cloud"}));
    EXPECT_EQ(
        fleet.pools_for(fleet.requirement_of(workflow("both")).on({.pool = "gold", .gpu = "H200"})),
        (std::vector<std::string>{"cloud", "fresh"})
    );
    const json::array machines = fleet.machines(Requirement().in_pool("cloud"));
    ASSERT_EQ(machines.size(), 2U);
    EXPECT_EQ(machines[0].at("gpu_type"), "H200");
    EXPECT_EQ(machines[0].at("memory_gb"), 141);
    EXPECT_EQ(machines[0].at("is_offer"), true);
}

TEST(Catalogue, ChoicesInsideDynamicInputsAreNeedsToo) {
    const auto with = [](const char* codec) {
        return classes(
            std::string(R"({"Save": {"output_node": true, "input": {"required": {
                "format": ["COMFY_DYNAMICCOMBO_V3", {"options": [{"key": "mp4", "inputs": {
                    "required": {"codec": ["COMBO", {"options": ["raw", ")") +
            codec + R"("]}]}}}]}]}}}})"
        );
    };
    const Catalogue fleet({{"a", with("h264")}, {"b", with("av1")}});
    const json::object prompt = parse(R"({"1": {"class_type": "Save", "inputs": {
        "format": "mp4", "format.codec": "av1"}}})");
    EXPECT_EQ(fleet.requirement_of(prompt).encoded(), "Save\nSave\tformat.codec\tav1");
    ASSERT_TRUE(check(prompt, fleet));
    EXPECT_FALSE(fleet.workers()[0].classes->has_all(check(prompt, fleet)->requirement));
    EXPECT_TRUE(fleet.workers()[1].classes->has_all(check(prompt, fleet)->requirement));
}

TEST(Catalogue, FilesThatAreUploadedAreNoNeeds) {
    const auto with = [](const char* file) {
        return classes(
            std::string(R"({"Load": {"output_node": true, "input": {"required": {"image": [[")") +
            file + R"("], {"image_upload": true}]}}}})"
        );
    };
    const Catalogue fleet({{"a", with("x.png")}, {"b", with("y.png")}});
    const json::object prompt =
        parse(R"({"1": {"class_type": "Load", "inputs": {"image": "x.png"}}})");
    EXPECT_EQ(fleet.requirement_of(prompt).encoded(), "Load");
    EXPECT_TRUE(check(prompt, fleet));
}

TEST(Catalogue, OneServerThatIsAllWorkers) {
    const Catalogue fleet(
        {{"a", worker(R"(["both", "a only"])")},
         {"b", worker(R"(["b only", "both"])", R"(, "Extra": {"output": []})")}}
    );
    const auto document = fleet.object_info();
    const json::object all = parse(document->text);
    EXPECT_EQ(all.size(), 3U);
    EXPECT_EQ(
        all.at("Load").at("input").at("required").at("ckpt").at(0),
        (json::array{"both", "a only", "b only"})
    );
    EXPECT_EQ(all.at("Load").at("input").at("required").at("ckpt").at(1), (json::object{{"x", 1}}));
    EXPECT_EQ(document->etag.size(), 32U);
    EXPECT_EQ(parse(fleet.object_info("Extra")), (json::object{{"Extra", all.at("Extra")}}));
    EXPECT_EQ(fleet.object_info("Nothing"), "{}");
    EXPECT_EQ(Catalogue({}).object_info()->text, "{}");
}

TEST(Catalogue, TheDocumentIsMadeOnceForTheSameClasses) {
    const auto a = worker(R"(["a"])");
    const auto b = worker(R"(["b"])");
    const Catalogue first({{"1", a}, {"2", b}});
    const Catalogue second({{"1", a}, {"2", b}, {"3", a}});
    EXPECT_EQ(first.object_info(), second.object_info());
    EXPECT_NE(first.object_info()->etag, Catalogue({{"1", a}}).object_info()->etag);
}

TEST(Catalogue, WorkersOfDifferentVersionsAreTakenTogether) {
    const json::object older = parse(R"({
        "input": {"required": {"n": ["INT", {"min": 1, "max": 8, "default": 2}], "old": ["INT"],
                               "t": ["IMAGE"]},
                  "hidden": {"id": "UNIQUE_ID"}},
        "output": ["IMAGE"]})");
    const json::object newer = parse(R"({
        "input": {"required": {"n": ["INT", {"min": 0, "max": 4}], "t": ["MASK"]},
                  "optional": {"fresh": ["FLOAT"]}},
        "input_order": {"required": ["n", "t"], "optional": ["fresh"]},
        "output": ["LATENT", "MASK"]})");
    const json::object merged = merge_infos({&older, &newer});
    const json::object& inputs = merged.at("input").as_object();
    EXPECT_EQ(inputs.at("required").at("n").at(1).at("min"), 0);
    EXPECT_EQ(inputs.at("required").at("n").at(1).at("max"), 8);
    EXPECT_EQ(inputs.at("required").at("t").at(0), "MASK,IMAGE");
    EXPECT_EQ(inputs.at("required").as_object().size(), 2U);
    EXPECT_TRUE(inputs.at("optional").as_object().contains("old"));
    EXPECT_TRUE(inputs.at("optional").as_object().contains("fresh"));
    EXPECT_EQ(merged.at("input_order").at("required"), (json::array{"n", "t"}));
    EXPECT_EQ(merged.at("input_order").at("optional").as_array().size(), 2U);
    EXPECT_EQ(merged.at("output").at(0), "LATENT,IMAGE");
    EXPECT_EQ(merged.at("output").as_array().size(), 2U);
}

TEST(CheckValues, AChoiceThatNoWorkerOffersIsRefused) {
    const Catalogue fleet = two_workers();
    const auto checked = check(workflow("b only"), fleet);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked->requirement.encoded(), "Load\nLoad\tckpt\tb only\nSave");
    const auto refused = check(workflow("nobody's"), fleet);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid_workflow);
    const json::value& finding = refused.error().details.at("findings").at(0);
    EXPECT_EQ(finding.at("code"), "VALUE_NOT_IN_LIST");
    EXPECT_EQ(finding.at("reason"), "value_not_in_list");
    EXPECT_EQ(finding.at("node_id"), "1");
    EXPECT_EQ(finding.at("input"), "ckpt");
}

TEST(CheckValues, FilesThatNoWorkerHasTogetherAreNamed) {
    json::object both = workflow("a only");
    both["3"] = parse(R"({"class_type": "Load", "inputs": {"how": "fast", "ckpt": "b only"}})");
    const auto refused = check(both, two_workers());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::no_capable_worker);
    EXPECT_NE(refused.error().message.find("'b only' for Load.ckpt"), std::string::npos)
        << refused.error().message;
    EXPECT_EQ(refused.error().details.at("missing_nodes"), json::array());
}

TEST(CheckValues, AnAssetStandsForAnyChoice) {
    json::object prompt = workflow("both");
    prompt.at("1").at("inputs").as_object()["ckpt"] =
        parse(R"({"__type": "core/ASSET", "info": {"id": "x"}})");
    const auto checked = check(prompt, two_workers());
    EXPECT_TRUE(checked) << checked.error().message;
}

TEST(CheckValues, RequiredInputsOfDynamicOnesAreChecked) {
    const Catalogue fleet({{"a", classes(R"({"Save": {"output_node": true, "input": {"required": {
        "mode": ["COMFY_DYNAMICCOMBO_V3", {"options": [
            {"key": "k", "inputs": {"required": {"n": ["INT"]}}}]}]}}}})")}});
    const auto refused =
        check(parse(R"({"1": {"class_type": "Save", "inputs": {"mode": "k"}}})"), fleet);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().details.at("findings").at(0).at("input"), "mode.n");
}

}  // namespace
}  // namespace comfyd::workflow
