// Checks that node classes make themselves, and old classes that got new names: a prompt is
// answered as its worker would answer it.
#include "e2e/native_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

// "Picky" refuses the word "bad" itself and leaves its size to ComfyUI; "Typed" takes any link.
constexpr const char* kNodes = R"json({
"Picky": {"input": {"required": {"size": ["INT", {"default": 1, "min": 0, "max": 10}],
                                 "word": ["COMBO", {"options": ["good", "fine"]}]},
                    "optional": {"image": ["IMAGE"]}},
          "output": [], "output_is_list": [], "output_name": [], "name": "Picky",
          "python_module": "custom_nodes.picky", "category": "test", "output_node": true,
          "_own_check": {"inputs": ["cls", "word"], "all_inputs": false, "link_types": false, "refuses": "bad"}},
"Typed": {"input": {"required": {"anything": ["MASK"]}},
          "output": [], "output_is_list": [], "output_name": [], "name": "Typed",
          "python_module": "custom_nodes.picky", "category": "test", "output_node": true,
          "_own_check": {"inputs": ["cls", "input_types"], "all_inputs": false, "link_types": true}}
})json";

json::object picky(const std::string& word, int size = 1) {
    return {
        {"7", {{"class_type", "Picky"}, {"inputs", {{"word", word}, {"size", size}}}}},
    };
}

class OwnChecks : public NativeTest {
protected:
    void serve(bool pack) {
        DoubleOptions options;
        options.nodes_json = kNodes;
        options.batch_pack = pack;
        start(std::move(options));
    }
    Reply post(const json::object& graph) {
        return http().post_json("/prompt", {{"prompt", graph}});
    }
    // What the worker itself answers.
    Reply post_directly(const json::object& graph) {
        Http direct(worker_->url());
        return direct.post_json("/prompt", {{"prompt", graph}});
    }
};

TEST_F(OwnChecks, AreMadeBeforeAPromptIsAccepted) {
    serve(true);
    const Reply refused = post(picky("bad"));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json(), post_directly(picky("bad")).json());
    EXPECT_EQ(
        refused.json_at("/node_errors/7/errors/0/type"), json::value("custom_validation_failed")
    );
    EXPECT_EQ(post(picky("not among the choices")).status, 200)
        << "the class judges its word itself";
    EXPECT_TRUE(wait_until([&] { return !worker_->accepted_prompts().empty(); }));
    EXPECT_EQ(worker_->accepted_prompts().size(), 1U) << "asking queues nothing";
}

TEST_F(OwnChecks, AreMadeForTheOtherApisToo) {
    serve(true);
    const Reply refused = http().post_json("/api/v2/jobs", {{"workflow", picky("bad")}});
    EXPECT_EQ(refused.status, 422);
    EXPECT_THAT(refused.body, HasSubstr("custom_validation_failed"));
    EXPECT_THAT(refused.body, HasSubstr("refused: bad"));
    EXPECT_EQ(http().post_json("/api/v2/jobs", {{"workflow", picky("good")}}).status, 201);
}

TEST_F(OwnChecks, AreMadeWhereAWorkflowIsOnlyLookedAt) {
    serve(true);
    const auto valid = [&](const char* word) {
        return http().post_json("/v2/workflows/validate", {{"workflow", picky(word)}});
    };
    const Reply refused = valid("bad");
    EXPECT_EQ(refused.json_at("/valid"), json::value(false));
    EXPECT_THAT(refused.body, HasSubstr("refused: bad"));
    EXPECT_EQ(refused.json_at("/stages/1/findings/0/node_id"), json::value("7"));
    EXPECT_EQ(valid("good").json_at("/valid"), json::value(true));
    EXPECT_EQ(http().post_json("/v2/workflows/plan", {{"workflow", picky("bad")}}).status, 400);
    EXPECT_TRUE(worker_->accepted_prompts().empty());
}

TEST_F(OwnChecks, WhatAClassLeavesToComfyUiIsCheckedHere) {
    serve(true);
    const Reply refused = post(picky("good", 11));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(
        refused.json_at("/node_errors/7/errors/0/type"), json::value("value_bigger_than_max")
    );
}

TEST_F(OwnChecks, AClassMayJudgeTheTypesOfItsLinks) {
    serve(true);
    const json::object graph{
        {"1",
         {{"class_type", "EmptyImage"},
          {"inputs", {{"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", 0}}}}},
        {"2", {{"class_type", "Typed"}, {"inputs", {{"anything", json::array{"1", 0}}}}}},
    };
    EXPECT_EQ(post(graph).status, 200);
}

TEST_F(OwnChecks, AFileThatIsStillToBeSentIsNoReasonToRefuse) {
    serve(true);
    worker_->add_input("there.png", "bytes");
    comfyd_->restart();  // and knows the file
    wait_workers(1);
    const Reply uploaded =
        http().upload("/upload/image", {{"image", "here.png", "image/png", "other bytes"}}, {});
    ASSERT_EQ(uploaded.status, 200) << uploaded.body;
    json::object graph = picky("good");
    graph["1"] = {{"class_type", "LoadImage"}, {"inputs", {{"image", "here.png"}}}};
    graph.at("7").at("inputs").as_object()["image"] = json::array{"1", 0};
    EXPECT_EQ(post(graph).status, 200);
    graph.at("7").at("inputs").as_object()["word"] = "bad";
    EXPECT_EQ(post(graph).status, 400);
}

TEST_F(OwnChecks, AWorkerThatDoesNotAnswerKeepsNobodyFromSubmitting) {
    serve(true);
    Faults faults;
    faults.http_500 = 1;
    faults.http_500_path = "/comfyd/validate";
    worker_->set_faults(faults);
    EXPECT_EQ(post(picky("bad")).status, 200);
}

TEST_F(OwnChecks, WithoutThePackTheWorkersRefusalNamesTheNode) {
    serve(false);
    const std::string id = post_prompt(http(), picky("bad"), "");
    json::value entry;
    ASSERT_TRUE(wait_until([&] {
        entry = http().get("/history/" + id).json();
        return !entry.as_object().empty();
    }));
    const json::value& ending = entry.at(id).at("status").at("messages").as_array().back();
    EXPECT_EQ(ending.at(0), "execution_error");
    EXPECT_EQ(ending.at(1).at("node_id"), "7");
    EXPECT_EQ(ending.at(1).at("node_type"), "Picky");
    EXPECT_EQ(ending.at(1).at("exception_type"), "custom_validation_failed");
    EXPECT_EQ(
        ending.at(1).at("exception_message"),
        "Custom validation failed for node: word - refused: bad"
    );
}

TEST_F(OwnChecks, OldClassesAreTakenUnderTheirNewNames) {
    DoubleOptions options;
    options.replacements_json = R"({
        "OldPicture": [{"new_node_id": "EmptyImage", "old_node_id": "OldPicture", "old_widget_ids": null,
            "input_mapping": [{"new_id": "width", "old_id": "size"}, {"new_id": "height", "old_id": "size"},
                              {"new_id": "batch_size", "set_value": 1}, {"new_id": "color", "set_value": 0}],
            "output_mapping": [{"new_idx": 0, "old_idx": 2}]}]})";
    const std::string told = options.replacements_json;
    start(std::move(options));
    EXPECT_EQ(http().get("/node_replacements").json(), boost::json::parse(told));
    EXPECT_EQ(http().get("/api/node_replacements").json(), boost::json::parse(told));
    const json::object graph{
        {"1", {{"class_type", "OldPicture"}, {"inputs", {{"size", 16}}}}},
        {"2",
         {{"class_type", "SaveImage"},
          {"inputs", {{"images", json::array{"1", 2}}, {"filename_prefix", "x"}}}}},
    };
    post_prompt(http(), graph, "");
    EXPECT_EQ(http().post_json("/api/v2/jobs", {{"workflow", graph}}).status, 201);
    ASSERT_TRUE(wait_until([&] { return worker_->accepted_prompts().size() == 2; }));
    for (const json::object& accepted : worker_->accepted_prompts()) {
        EXPECT_EQ(accepted.at("prompt").at("1").at("class_type"), "EmptyImage");
        EXPECT_EQ(accepted.at("prompt").at("1").at("inputs").at("height"), 16);
        EXPECT_EQ(accepted.at("prompt").at("2").at("inputs").at("images"), (json::array{"1", 0}));
    }
}

}  // namespace
}  // namespace comfyd::support
