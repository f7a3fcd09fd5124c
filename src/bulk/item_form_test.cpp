#include "bulk/item_form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::bulk {
namespace {

using testing::HasSubstr;

constexpr const char* kClasses = R"({
    "Sampler": {"input": {"required": {
        "seed": ["INT", {"default": 0, "min": 0, "max": 100000}],
        "cfg": ["FLOAT", {"default": 7.0, "min": 0.0, "max": 30.0}],
        "text": ["STRING", {"multiline": true}],
        "tiled": ["BOOLEAN", {"default": false}],
        "name": [["euler", "heun"]]}}, "output": [], "output_node": true}
})";

constexpr const char* kGraph = R"({"1": {"class_type": "Sampler", "_meta": {"title": "Main"},
    "inputs": {"seed": 1, "cfg": 7.0, "text": "a cat", "tiled": false, "name": "euler"}}})";

class ItemFormTest : public testing::Test {
protected:
    ItemForm make(bool takes_other_names = true, const char* common = "{}") {
        ItemForm::Of of;
        of.graph = *json::parse_object(kGraph);
        of.declared = *json::parse_object(
            R"({"seed": {"target": ["1.seed"]}, "text": {"target": ["1.text"], "required": true}})"
        );
        of.takes_other_names = takes_other_names;
        of.common = *json::parse_object(common);
        auto form = ItemForm::make(std::move(of), catalogue_);
        EXPECT_TRUE(form) << form.error().message;
        return std::move(*form);
    }
    static Row row(const char* values, bool is_text = false) {
        return {3, 7, *json::parse_object(values), is_text};
    }
    static std::string params(const Result<jobs::BulkItem>& item) {
        return item ? item->params : "! " + item.error().message;
    }

    const workflow::Catalogue catalogue_{
        {{"worker",
          workflow::NodeClasses::from_object_info(*json::parse(kClasses)).value(),
          std::string(workflow::kDefaultPool)}}
    };
};

TEST_F(ItemFormTest, TextsBecomeWhatTheParametersTake) {
    auto form = make();
    EXPECT_EQ(
        params(form.make_item(
            row(R"({"seed": " 12 ", "text": "007", "1.cfg": "7.5", "1.tiled": "Yes",
                "1.name": "heun"})",
                true),
            0
        )),
        R"({"seed":12,"text":"007","1.cfg":7.5,"1.tiled":true,"1.name":"heun"})"
    );
    EXPECT_EQ(
        params(form.make_item(row(R"({"text": "", "seed": "random"})", true), 1)),
        R"({"text":"","seed":"random"})"
    );
}

TEST_F(ItemFormTest, WhatCannotBeSetIsToldWithItsPlace) {
    auto form = make();
    const auto item = form.make_item(row(R"({"text": "x", "seed": "many"})", true), 0);
    ASSERT_FALSE(item);
    EXPECT_THAT(item.error().message, HasSubstr("record 3 (line 7): "));
    EXPECT_EQ(item.error().details.at("record"), 3);
    EXPECT_EQ(item.error().details.at("line"), 7);
    EXPECT_EQ(item.error().details.at("parameters").at(0).at("parameter"), "seed");
    EXPECT_THAT(
        params(form.make_item(row(R"({"text": "x", "1.seed": 200000})"), 0)),
        HasSubstr("at most 100000")
    );
    EXPECT_THAT(params(form.make_item(row(R"({"seed": 1})"), 0)), HasSubstr("text"));
    EXPECT_THAT(
        params(form.make_item(row(R"({"text": "x", "9.seed": 1})"), 0)),
        HasSubstr("record 3 (line 7)")
    );
    EXPECT_THAT(
        params(make(false).make_item(row(R"({"text": "x", "1.cfg": 1})"), 0)), HasSubstr("1.cfg")
    );
}

TEST_F(ItemFormTest, ValuesMayStandInAWrapperOfTheirOwn) {
    auto form = make();
    const auto item = form.make_item(row(R"({"custom_id": "a", "params": {"text": "x"}})"), 5);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->index, 5);
    EXPECT_EQ(item->custom_id, "a");
    EXPECT_EQ(item->params, R"({"text":"x"})");
    EXPECT_THAT(
        params(form.make_item(row(R"({"seed": 1, "params": {"text": "x"}})"), 0)),
        HasSubstr("'seed' stands beside 'params'")
    );
}

TEST_F(ItemFormTest, NamesOfItemsAreTheirOwn) {
    auto form = make();
    EXPECT_TRUE(form.make_item(row(R"({"custom_id": "a", "text": "x"})", true), 0));
    EXPECT_THAT(
        params(form.make_item(row(R"({"custom_id": "a", "text": "x"})", true), 1)),
        HasSubstr("an earlier one has the same custom_id 'a'")
    );
    EXPECT_THAT(
        params(form.make_item(row(R"({"custom_id": 7, "text": "x"})"), 1)),
        HasSubstr("'custom_id' must be a text")
    );
    EXPECT_THAT(
        params(form.make_item(row(R"({"custom_id": "", "text": "x"})", true), 1)),
        HasSubstr("1 to 256 bytes")
    );
}

TEST_F(ItemFormTest, WhatAllHaveGivesWayToTheItem) {
    auto form = make(true, R"({"text": "a dog", "1.cfg": 3.5})");
    EXPECT_EQ(
        params(form.make_item(row(R"({"seed": 1})"), 0)), R"({"text":"a dog","1.cfg":3.5,"seed":1})"
    );
    EXPECT_EQ(params(form.make_item(row(R"({"text": "x"})"), 0)), R"({"text":"x","1.cfg":3.5})");
}

}  // namespace
}  // namespace comfyd::bulk
