#include "workflow/parameters/parameters_schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::parsed;
using test::recorded_catalogue;
using test::text_to_image;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> keys(const json::object& of) {
    std::vector<std::string> all;
    for (const auto& entry : of) {
        all.emplace_back(entry.key());
    }
    return all;
}

std::string declaration_error(const json::object& declared) {
    const json::object graph = text_to_image();
    auto read = read_declarations(declared, graph);
    if (read) {
        const auto schema = ParameterSchema::make(*read, graph, recorded_catalogue());
        const auto checked = schema ? schema->check_defaults() : fail(schema.error());
        EXPECT_FALSE(checked);
        return checked ? "" : checked.error().message;
    }
    EXPECT_EQ(read.error().code, Code::invalid_argument);
    return read.error().message;
}

class Schema : public testing::Test {
protected:
    void declare(std::string_view text) {
        auto read = read_declarations(parsed(text), graph_);
        ASSERT_TRUE(read) << read.error().message;
        declared_ = std::move(*read);
        auto made = ParameterSchema::make(declared_, graph_, recorded_catalogue());
        ASSERT_TRUE(made) << made.error().message;
        schema_ = std::move(*made);
    }
    json::value property(std::string_view name) {
        return schema_->to_json().at("properties").at({name.data(), name.size()});
    }
    Error refusal(std::string_view values) {
        const auto accepted = schema_->accept(parsed(values));
        EXPECT_FALSE(accepted) << values;
        return accepted ? Error() : accepted.error();
    }

    json::object graph_ = text_to_image();
    json::object declared_;
    std::optional<ParameterSchema> schema_;
};

TEST_F(Schema, TypesLimitsChoicesAndDefaultsComeFromTheClasses) {
    declare(R"({"steps": "3.steps", "cfg": "3.cfg", "sampler": "3.sampler_name", "text": "6.text",
                "model": "4.ckpt_name", "seed": "3.seed"})");
    EXPECT_EQ(property("steps"), parsed(R"({"type":"integer","minimum":1,"maximum":10000,
        "default":20})"));
    EXPECT_EQ(property("cfg").at("type"), "number");
    EXPECT_EQ(property("cfg").at("maximum"), 100.0);
    EXPECT_EQ(property("sampler").at("type"), "string");
    EXPECT_EQ(property("sampler").at("enum").at(0), "euler");
    EXPECT_EQ(property("text").at("type"), "string");
    EXPECT_FALSE(property("text").as_object().contains("enum"));
    EXPECT_EQ(property("model").at("enum").as_array().size(), 2U);
    EXPECT_EQ(property("seed").at("anyOf").at(0).at("maximum").to_number<std::uint64_t>(), ~0ULL);
    EXPECT_EQ(property("seed").at("anyOf").at(1).at("enum").at(0), "random");
    EXPECT_EQ(schema_->to_json().at("additionalProperties"), false);
    EXPECT_FALSE(schema_->to_json().contains("required"));
}

TEST_F(Schema, WhatIsDeclaredNarrowsWhatTheClassesSay) {
    declare(R"({
        "steps": {"target": "3.steps", "title": "Steps", "description": "more is finer",
                  "minimum": -5, "maximum": 50, "default": 30},
        "sampler": {"node": "3", "input": "sampler_name", "enum": ["euler", "heun"]},
        "prompt": {"target": ["6.text", "7.text"], "required": true}})");
    EXPECT_EQ(property("steps"), parsed(R"({"title":"Steps","description":"more is finer",
        "type":"integer","minimum":1,"maximum":50,"default":30})"));
    EXPECT_EQ(json::serialize(property("sampler").at("enum")), R"(["euler","heun"])");
    EXPECT_FALSE(property("prompt").as_object().contains("default"));
    EXPECT_EQ(json::serialize(schema_->to_json().at("required")), R"(["prompt"])");
    EXPECT_EQ(
        json::serialize(declared_.at("prompt")), R"({"target":["6.text","7.text"],"required":true})"
    );
    EXPECT_EQ(json::serialize(declared_.at("sampler").at("target")), R"(["3.sampler_name"])");
}

TEST_F(Schema, GoodValuesAreAccepted) {
    declare(R"({"steps": "3.steps", "cfg": "3.cfg", "seed": "3.seed", "text": "6.text"})");
    const auto accepted = schema_->accept(
        parsed(R"({"steps": 5.0, "cfg": 3, "seed": 18446744073709551615, "text": null})")
    );
    ASSERT_TRUE(accepted) << accepted.error().message;
    EXPECT_EQ(json::serialize(*accepted), R"({"steps":5,"cfg":3,"seed":18446744073709551615})");
    EXPECT_TRUE(schema_->accept(parsed(R"({"seed": "random"})")));
    EXPECT_TRUE(schema_->accept({}));
}

TEST_F(Schema, EveryWrongValueIsNamed) {
    declare(R"({"steps": "3.steps", "cfg": "3.cfg", "sampler": "3.sampler_name",
                "text": {"target": "6.text", "required": true}})");
    const Error error = refusal(R"({"stepz": 3, "steps": 0, "cfg": "high", "sampler": "eulr"})");
    EXPECT_EQ(error.code, Code::invalid_argument);
    const json::array& found = error.details.at("parameters").as_array();
    ASSERT_EQ(found.size(), 5U) << json::serialize(found);
    EXPECT_EQ(found[0].at("reason"), "unknown_parameter");
    EXPECT_EQ(found[0].at("suggestion"), "steps");
    EXPECT_THAT(
        std::string(found[0].at("message").as_string()),
        HasSubstr("it has steps, cfg, sampler, text")
    );
    EXPECT_EQ(found[1].at("reason"), "out_of_range");
    EXPECT_EQ(found[1].at("expected").at("minimum"), 1);
    EXPECT_EQ(found[2].at("reason"), "wrong_type");
    EXPECT_EQ(found[2].at("expected"), "number");
    EXPECT_EQ(found[3].at("reason"), "not_in_enum");
    EXPECT_EQ(found[3].at("suggestion"), "euler");
    EXPECT_EQ(found[4].at("parameter"), "text");
    EXPECT_EQ(found[4].at("reason"), "missing_parameter");
    EXPECT_EQ(error.details.at("field"), "params.stepz");
    EXPECT_THAT(error.message, HasSubstr("parameter 'steps': it is 0, but must be at least 1"));
    for (const char* wrong :
         {R"({"text": "", "steps": 5.5})",
          R"({"text": "", "steps": "5"})",
          R"({"text": "", "steps": true})",
          R"({"text": 5})",
          R"({"text": "", "steps": 10001})",
          R"({"text": "", "cfg": 100.5})"}) {
        EXPECT_EQ(refusal(wrong).code, Code::invalid_argument);
    }
}

TEST_F(Schema, WithoutClassesTheValuesOfTheWorkflowTellTheTypes) {
    auto read = read_declarations(parsed(R"({"steps": "3.steps", "text": "6.text"})"), graph_);
    ASSERT_TRUE(read);
    const Catalogue nothing({});
    const auto schema = ParameterSchema::make(*read, graph_, nothing);
    ASSERT_TRUE(schema);
    EXPECT_EQ(schema->to_json().at("properties").at("steps").at("type"), "number");
    EXPECT_EQ(schema->to_json().at("properties").at("text").at("type"), "string");
    EXPECT_FALSE(schema->accept({{"steps", "many"}}));
    EXPECT_TRUE(schema->accept({{"steps", 100'000}}));
}

TEST(Declarations, WrongOnesSayWhatWouldBeRight) {
    EXPECT_THAT(declaration_error({{"a", "99.text"}}), HasSubstr("no node has this id or title"));
    EXPECT_THAT(declaration_error({{"a", "6.txt"}}), HasSubstr("it has"));
    EXPECT_THAT(declaration_error({{"a", 5}}), HasSubstr("its declaration must be"));
    EXPECT_THAT(declaration_error({{"a", json::array()}}), HasSubstr("its declaration must be"));
    EXPECT_THAT(declaration_error({{"a.b", "6.text"}}), HasSubstr("no dots"));
    EXPECT_THAT(declaration_error({{std::string(101, 'x'), "6.text"}}), HasSubstr("a name has"));
    const auto with = [](std::string_view members) {
        return parsed(R"({"a": {"target": "3.steps",)" + std::string(members) + "}}");
    };
    EXPECT_THAT(declaration_error(with(R"("min": 1)")), HasSubstr("there are target, node"));
    EXPECT_THAT(declaration_error(with(R"("type": "int")")), HasSubstr("one of any, string"));
    EXPECT_THAT(declaration_error(with(R"("type": "string")")), HasSubstr("takes integer"));
    EXPECT_THAT(
        declaration_error(with(R"("type": "string", "minimum": 1)")), HasSubstr("is for numbers")
    );
    EXPECT_THAT(declaration_error(with(R"("minimum": "1")")), HasSubstr("must be a number"));
    EXPECT_THAT(declaration_error(with(R"("minimum": 3, "maximum": 2)")), HasSubstr("above"));
    EXPECT_THAT(declaration_error(with(R"("enum": [])")), HasSubstr("'enum' must be"));
    EXPECT_THAT(declaration_error(with(R"("enum": [{}])")), HasSubstr("'enum' must be"));
    EXPECT_THAT(declaration_error(with(R"("title": 1)")), HasSubstr("'title' must be a text"));
    EXPECT_THAT(declaration_error(with(R"("required": 1)")), HasSubstr("true or false"));
    EXPECT_THAT(declaration_error(with(R"("required": true, "default": 1)")), HasSubstr("never"));
    EXPECT_THAT(declaration_error(with(R"("default": 0)")), HasSubstr("default is wrong"));
    EXPECT_THAT(declaration_error(with(R"("default": "random")")), HasSubstr("default is wrong"));
    json::object many;
    for (std::size_t i = 0; i <= kDeclaredMax; ++i) {
        many["p" + std::to_string(i)] = "6.text";
    }
    EXPECT_THAT(declaration_error(many), HasSubstr("at most 200"));
}

TEST(Declarations, WordsAndTitlesAreOfferedWhereNothingIsDeclared) {
    json::object graph = text_to_image();
    const auto title = [&graph](const char* id, const char* text) {
        graph.at(id).as_object()["_meta"] = json::object{{"title", text}};
    };
    title("3", "KSampler");
    title("9", "Save Image");
    const json::object plain = offer_parameters(graph, recorded_catalogue());
    EXPECT_THAT(
        keys(plain),
        ElementsAre(
            "prompt",
            "negative_prompt",
            "seed",
            "steps",
            "cfg",
            "denoise",
            "sampler",
            "scheduler",
            "width",
            "height",
            "batch_size",
            "checkpoint"
        )
    );
    EXPECT_EQ(json::serialize(plain.at("prompt")), R"({"target":["6.text"]})");
    title("9", "File name");
    title("6", "Motif");
    const json::object titled = offer_parameters(graph, recorded_catalogue());
    EXPECT_EQ(json::serialize(titled.at("File name")), R"({"target":["9.filename_prefix"]})");
    // It is offered as "prompt" already.
    EXPECT_FALSE(titled.contains("Motif"));
    // What is offered can be read, and bound.
    const auto read = read_declarations(titled, graph);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, titled);
    BindOptions options;
    options.declared = &*read;
    EXPECT_TRUE(bind_parameters(graph, {{"File name", "x"}, {"prompt", "y"}}, options));
    EXPECT_EQ(test::input(graph, "9", "filename_prefix"), "x");
}

}  // namespace
}  // namespace comfyd::workflow
