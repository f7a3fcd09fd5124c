#include "engine/run/validate.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

const fs::path kRecorded = fs::path(COMFYD_TEST_DATA) / "comfyui/validation";

std::vector<std::string> classes_of(const json::value& prompt) {
    std::vector<std::string> classes;
    if (const json::object* nodes = prompt.if_object()) {
        for (const auto& [id, node] : *nodes) {
            const json::object* entry = node.if_object();
            const json::value* name = entry != nullptr ? entry->if_contains("class_type") : nullptr;
            classes.push_back(
                name != nullptr && name->is_string() ? std::string(name->get_string()) : ""
            );
        }
    }
    return classes;
}

// Those with files and a check of the class's own; the rules themselves are tested where they are.
std::vector<std::string> recorded_cases() {
    const Registry registry = make_registry();
    std::vector<std::string> cases;
    for (const auto& entry : fs::directory_iterator(kRecorded)) {
        const std::string text = slurp(entry.path());
        if (text.find("LoadImage") == text.npos) {
            continue;
        }
        const json::object recorded = parse_object(text);
        const json::value* body = json::find(recorded.at("request").as_object(), "body");
        const json::value* prompt = body != nullptr && body->is_object()
                                        ? json::find(body->get_object(), "prompt")
                                        : nullptr;
        const std::vector<std::string> classes =
            prompt != nullptr ? classes_of(*prompt) : std::vector<std::string>();
        const bool all_known = std::ranges::all_of(classes, [&](const std::string& name) {
            return registry.find(name) != nullptr;
        });
        if (all_known && std::ranges::find(classes, "LoadImage") != classes.end()) {
            cases.push_back(entry.path().stem().string());
        }
    }
    std::ranges::sort(cases);
    return cases;
}

// Without what is not ours to repeat (tooltips) or differs by nature (tracebacks), and with
// unordered lists sorted.
json::value comparable(json::value from) {
    if (json::object* object = from.if_object()) {
        object->erase("tooltip");
        object->erase("traceback");
        json::object rebuilt;
        for (auto& [key, value] : *object) {
            rebuilt[key] = comparable(value);
        }
        for (const char* unordered : {"errors", "dependent_outputs"}) {
            if (json::value* list = rebuilt.if_contains(unordered)) {
                std::ranges::sort(list->as_array(), {}, [](const json::value& item) {
                    return json::serialize_canonical(item);
                });
            }
        }
        return rebuilt;
    }
    if (json::array* array = from.if_array()) {
        for (json::value& item : *array) {
            item = comparable(item);
        }
    }
    return from;
}

std::string text_of(const json::value& value) {
    return json::serialize_canonical(comparable(value));
}

class Recorded : public ::testing::TestWithParam<std::string> {};

TEST_P(Recorded, AnswersLikeComfyUi) {
    const json::object recorded = parse_object(slurp(kRecorded / (GetParam() + ".json")));
    TestFolders folders;
    folders.use_inputs(kGolden / "inputs");
    const Registry registry = make_registry();
    json::object prompt = recorded.at("request").at("body").at("prompt").as_object();
    const Validation validation = validate_prompt(prompt, registry, folders.folders());
    const auto status = recorded.at("status").to_number<int>();
    if (status == 200) {
        EXPECT_TRUE(validation.ok);
        EXPECT_EQ(text_of(prompt), text_of(recorded.at("kept").at("prompt")));
        json::array outputs;
        for (const std::string& output : validation.outputs_to_execute) {
            outputs.emplace_back(output);
        }
        EXPECT_EQ(text_of(outputs), text_of(recorded.at("kept").at("outputs_to_execute")));
        EXPECT_EQ(
            text_of(validation.node_errors), text_of(recorded.at("response").at("node_errors"))
        );
        return;
    }
    EXPECT_FALSE(validation.ok);
    EXPECT_TRUE(validation.outputs_to_execute.empty());
    if (status == 500) {
        // ComfyUI breaks; here it is an answer.
        EXPECT_TRUE(validation.error.contains("type"));
        EXPECT_FALSE(validation.error.at("message").as_string().empty());
        return;
    }
    EXPECT_EQ(text_of(validation.error), text_of(recorded.at("response").at("error")));
    EXPECT_EQ(text_of(validation.node_errors), text_of(recorded.at("response").at("node_errors")));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Recorded,
    ::testing::ValuesIn(recorded_cases()),
    [](const auto& param) {
        std::string name = param.param;
        std::ranges::replace(name, '-', '_');
        return name;
    }
);

class Validate : public ::testing::Test {
protected:
    Validation validate(std::string_view text) {
        prompt_ = parse_object(text);
        return validate_prompt(prompt_, registry_, folders_.folders());
    }
    // The only error of the only bad node.
    static json::object only_error(const Validation& validation) {
        EXPECT_EQ(validation.node_errors.size(), 1U);
        const json::array& errors = validation.node_errors.begin()->value().at("errors").as_array();
        EXPECT_EQ(errors.size(), 1U);
        return errors.at(0).as_object();
    }

    TestFolders folders_;
    Registry registry_ = make_registry();
    json::object prompt_;
};

TEST_F(Validate, LinkOfAnotherTypeIsAMismatch) {
    folders_.use_inputs(kGolden / "inputs");
    const auto validation = validate(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "noise.png"}},
        "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 1]}}})");
    const json::object error = only_error(validation);
    EXPECT_EQ(error.at("type"), "return_type_mismatch");
    EXPECT_EQ(error.at("details"), "images, received_type(MASK) mismatch input_type(IMAGE)");
    EXPECT_EQ(
        validation.error.at("details"),
        "Return type mismatch between linked nodes: images, received_type(MASK) mismatch "
        "input_type(IMAGE)"
    );
}

TEST_F(Validate, ChoiceOutsideTheListNamesTheList) {
    const auto validation = validate(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 0}},
        "2": {"class_type": "ImageScale", "inputs": {"image": ["1", 0], "upscale_method": "cubic", "width": 4,
              "height": 4, "crop": "disabled"}},
        "3": {"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}}})");
    const json::object error = only_error(validation);
    EXPECT_EQ(error.at("type"), "value_not_in_list");
    EXPECT_EQ(
        error.at("details"),
        "upscale_method: 'cubic' not in ['nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos']"
    );
}

TEST_F(Validate, FloatsAreCoercedAndLimited) {
    const auto blend = [](std::string_view factor) {
        return R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1,
            "color": 0}}, "2": {"class_type": "ImageBlend", "inputs": {"image1": ["1", 0], "image2": ["1", 0],
            "blend_mode": "normal", "blend_factor": )" +
               std::string(factor) +
               R"(}}, "3": {"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}}})";
    };
    EXPECT_TRUE(validate(blend("\"2.5e-1\"")).ok);
    EXPECT_EQ(prompt_.at("2").at("inputs").at("blend_factor"), json::value(0.25));
    EXPECT_TRUE(validate(blend("true")).ok);
    EXPECT_EQ(prompt_.at("2").at("inputs").at("blend_factor"), json::value(1.0));
    EXPECT_EQ(only_error(validate(blend("1.5"))).at("message"), "Value 1.5 bigger than max of 1.0");
    EXPECT_EQ(
        only_error(validate(blend("-0.1"))).at("message"), "Value -0.1 smaller than min of 0.0"
    );
    EXPECT_EQ(
        only_error(validate(blend("\"inf\""))).at("message"), "Value inf bigger than max of 1.0"
    );
    EXPECT_EQ(
        only_error(validate(blend("\"abc\""))).at("details"),
        "blend_factor, abc, could not convert string to float: 'abc'"
    );
    EXPECT_EQ(only_error(validate(blend("\"nan\""))).at("type"), "invalid_input_type");
    EXPECT_EQ(
        only_error(validate(blend("null"))).at("details"),
        "blend_factor, None, float() argument must be a string or a real number, not 'NoneType'"
    );
}

TEST_F(Validate, StringsTakeAnything) {
    const auto validation = validate(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 0}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": {"a": [1, null]}}}})"
    );
    EXPECT_TRUE(validation.ok);
    EXPECT_EQ(prompt_.at("2").at("inputs").at("filename_prefix"), "{'a': [1, None]}");
}

TEST_F(Validate, TargetsNarrowTheOutputs) {
    json::object prompt{
        {"1", empty_image(8)}, {"2", save_image("1", "a")}, {"3", save_image("1", "b")}
    };
    const std::vector<std::string> one = {"3", "1", "77"};
    EXPECT_EQ(
        validate_prompt(prompt, registry_, folders_.folders(), &one).outputs_to_execute,
        std::vector<std::string>{"3"}
    );
    const std::vector<std::string> none;
    const auto refused = validate_prompt(prompt, registry_, folders_.folders(), &none);
    EXPECT_EQ(refused.error.at("type"), "prompt_no_outputs");
}

// The class's own check is called with what there is: nothing, or nothing yet.
TEST_F(Validate, AFileNameThatIsMissingOrLinkedFailsTheOwnCheck) {
    const auto details_for = [this](std::string_view inputs) {
        const auto validation =
            validate(R"({"1": {"class_type": "LoadImage", "inputs": )" + std::string(inputs) + R"(},
                "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}},
                "3": {"class_type": "PrimitiveString", "inputs": {"value": "noise.png"}}})");
        const json::object error = only_error(validation);
        EXPECT_EQ(error.at("type"), "exception_during_inner_validation");
        return text_of(error.at("details"));
    };
    EXPECT_THAT(
        details_for("{}"),
        ::testing::HasSubstr(
            "LoadImage.VALIDATE_INPUTS() missing 1 required positional argument: 'image'"
        )
    );
    EXPECT_THAT(
        details_for(R"({"image": ["3", 0]})"),
        ::testing::HasSubstr("'NoneType' object has no attribute 'endswith'")
    );
}

TEST_F(Validate, NamesThatLeaveTheFolderAreInvalidImages) {
    folders_.use_inputs(kGolden / "inputs");
    fs::copy(kGolden / "inputs/one.png", folders_.folders().output / "out.png");
    const std::vector<std::pair<std::string, bool>> names = {
        {"noise.png", true},
        {"noise.png [input]", true},
        {"out.png [output]", true},
        {"out.png", false},
        {"./set/../noise.png", true},
        {"set", false},
        {"", false},
        {"../output/out.png", false},
        {"set/../../output/out.png", false},
        {(folders_.folders().input / "noise.png").string(), false},
        {"/etc/passwd", false},
        {"../x [temp]", false},
        {"[output]", false},
        {std::string("noise.png\0.png", 14), false},
    };
    for (const auto& [name, good] : names) {
        json::object prompt;
        prompt["1"] = json::object{{"class_type", "LoadImage"}, {"inputs", {{"image", name}}}};
        prompt["2"] = save_image("1", "x");
        EXPECT_EQ(validate_prompt(prompt, registry_, folders_.folders()).ok, good) << name;
    }
}

}  // namespace
}  // namespace comfyd::engine
