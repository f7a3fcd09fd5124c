#include "workflow/convert/convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "workflow/catalogue/test_catalogue.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path.string());
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

const TestClasses& own_classes() {
    static const TestClasses classes(read_test_data("ui-workflows/object_info.facts.json"));
    return classes;
}

// Equal as JavaScript sees it: all numbers are doubles, the order of keys does not matter.
bool same(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        return a.to_number<double>() == b.to_number<double>();
    }
    if (a.kind() != b.kind()) {
        return false;
    }
    if (const json::object* members = a.if_object()) {
        return members->size() == b.get_object().size() &&
               std::ranges::all_of(*members, [&](const auto& member) {
                   const json::value* other = b.get_object().if_contains(member.key());
                   return other != nullptr && same(member.value(), *other);
               });
    }
    if (const json::array* items = a.if_array()) {
        return std::ranges::equal(*items, b.get_array(), same);
    }
    return a == b;
}

// What differs, in words; empty when nothing does.
std::string difference(const json::object& made, const json::object& expected) {
    std::string found;
    for (const auto& node : expected) {
        const json::value* own = made.if_contains(node.key());
        const std::string id(node.key());
        if (own == nullptr) {
            found += "node " + id + " is missing\n";
            continue;
        }
        if (own->at("class_type") != node.value().at("class_type")) {
            found += "node " + id + " has another class\n";
        }
        const json::object& inputs = own->at("inputs").as_object();
        const json::object& wanted = node.value().at("inputs").as_object();
        for (const auto& input : wanted) {
            const json::value* value = inputs.if_contains(input.key());
            if (value == nullptr || !same(*value, input.value())) {
                found += "node " + id + "." + std::string(input.key()) + ": " +
                         (value == nullptr ? "missing" : json::serialize(*value)) + ", not " +
                         json::serialize(input.value()) + "\n";
            }
        }
        for (const auto& input : inputs) {
            if (!wanted.contains(input.key())) {
                found += "node " + id + "." + std::string(input.key()) +
                         " is too much: " + json::serialize(input.value()) + "\n";
            }
        }
    }
    for (const auto& node : made) {
        if (!expected.contains(node.key())) {
            found += "node " + std::string(node.key()) + " is too much\n";
        }
    }
    return found;
}

std::vector<std::string> recordings(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".ui.json") || name.ends_with(".saved.json")) {
            names.push_back(entry.path().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

void expect_as_recorded(const std::string& path, const PromptClasses& classes) {
    const fs::path file(path);
    const std::string name = file.filename().string();
    const fs::path answer = file.parent_path() / (name.substr(0, name.find('.')) + ".api.json");
    const auto made = convert_ui(*json::parse_object(read_file(file)), classes);
    const json::object expected = *json::parse_object(read_file(answer));
    const bool refused = std::ranges::any_of(expected, [](const auto& node) {
        return !node.value().as_object().contains("class_type");
    });
    if (refused) {
        // The editor sends nodes of unknown classes without one, which no server takes.
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code, Code::invalid_workflow);
        EXPECT_FALSE(made.error().details.at("missing_nodes").as_array().empty());
        return;
    }
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(difference(*made, expected), "");
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = fs::path(info.param).filename().string();
    name = name.substr(0, name.rfind(".json"));
    std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

class RecordedConversion : public testing::TestWithParam<std::string> {};

TEST_P(RecordedConversion, GivesWhatTheEditorSends) {
    expect_as_recorded(GetParam(), own_classes());
}

INSTANTIATE_TEST_SUITE_P(
    Own,
    RecordedConversion,
    testing::ValuesIn(recordings(COMFYD_TEST_DATA "/ui-workflows/own")),
    case_name
);

// A folder with object_info.json and templates/, as recorded from a real editor, where there is
// one.
fs::path further_recordings() {
    const char* given = std::getenv("COMFYD_UI_WORKFLOWS");
    return given != nullptr ? fs::path(given)
                            : fs::path(COMFYD_TEST_DATA "/../../../shared/comfyui/ui-workflows");
}

TEST(FurtherConversions, GiveWhatTheEditorSends) {
    const std::vector<std::string> files = recordings(further_recordings() / "templates");
    if (files.empty()) {
        GTEST_SKIP() << "set COMFYD_UI_WORKFLOWS to a folder with recorded workflows";
    }
    const TestClasses classes(read_file(further_recordings() / "object_info.json"));
    for (const std::string& file : files) {
        SCOPED_TRACE(file);
        expect_as_recorded(file, classes);
    }
}

constexpr std::string_view kClasses = R"({
    "Load": {"input": {"required": {"name": [["a", "b"]]}}, "output": ["IMAGE", "MASK"],
             "display_name": "Load it"},
    "Seed": {"input": {"required": {"seed": ["INT", {"max": 18446744073709551615}],
             "steps": ["INT", {"default": 20, "max": 50, "step": 5}]},
             "optional": {"image": ["IMAGE"]}}, "output": ["IMAGE"]},
    "Text": {"input": {"required": {"text": ["STRING", {"dynamicPrompts": true}]}},
             "output": ["STRING"]},
    "SaveImage": {"input": {"required": {"images": ["IMAGE"],
             "filename_prefix": ["STRING", {"default": "x"}]}}, "output": [], "output_node": true}
})";

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

Result<json::object> convert(std::string_view workflow, const ConvertOptions& options = {}) {
    static const TestClasses classes(kClasses);
    return convert_ui(parse(workflow), classes, options);
}

std::string converted(std::string_view workflow, const ConvertOptions& options = {}) {
    auto made = convert(workflow, options);
    if (!made) {
        return made.error().message;
    }
    for (auto& node : *made) {
        node.value().get_object().erase("_meta");
    }
    return json::serialize_canonical(*made);
}

// {"nodes": […], "links": […]} with links of version 0.4.
std::string graph(const std::string& nodes, const std::string& links = "") {
    return R"({"version":0.4,"nodes":[)" + nodes + R"(],"links":[)" + links + "]}";
}

constexpr std::string_view kSave =
    R"({"id":9,"type":"SaveImage","inputs":[{"name":"images","link":7}],"widgets_values":["y"]})";

TEST(Conversion, TitlesAndDefaults) {
    const auto made =
        convert(graph(R"({"id":1,"type":"Load"},{"id":"x","type":"Seed","title":"S"})"));
    ASSERT_TRUE(made);
    EXPECT_EQ(
        json::serialize_canonical(*made),
        R"({"1":{"_meta":{"title":"Load it"},"class_type":"Load","inputs":{"name":"a"}},)"
        R"("x":{"_meta":{"title":"S"},"class_type":"Seed","inputs":{"seed":0,"steps":20}}})"
    );
}

TEST(Conversion, WholeNumbersStayExact) {
    EXPECT_EQ(
        converted(
            graph(R"({"id":1,"type":"Seed","widgets_values":[18446744073709551615,"randomize",7]})")
        ),
        R"({"1":{"class_type":"Seed","inputs":{"seed":18446744073709551615,"steps":7}}})"
    );
    EXPECT_EQ(
        converted(graph(
            R"({"id":1,"type":"Seed","inputs":[{"name":"seed","link":1},{"name":"steps","link":2}]},
               {"id":2,"type":"PrimitiveNode","widgets_values":[18446744073709551615,"fixed"]},
               {"id":3,"type":"PrimitiveNode","mode":2,"widgets_values":[1234]})",
            R"([1,2,0,1,0,"INT"],[2,3,0,1,1,"INT"])"
        )),
        R"({"1":{"class_type":"Seed","inputs":{"seed":18446744073709551615,"steps":50}}})"
    );
}

TEST(Conversion, UnknownClassesAreNamed) {
    const auto refused = convert(graph(
        R"({"id":1,"type":"Nope"},{"id":2,"type":"workflow>old"},{"id":3,"type":"Gone","mode":2},
           {"id":4,"type":"Gone","mode":4},{"id":5,"type":"Note"})"
    ));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid_workflow);
    EXPECT_EQ(
        json::serialize(refused.error().details.at("missing_nodes")), R"(["Nope","workflow>old"])"
    );
    const json::object& finding =
        refused.error().details.at("findings").as_array().at(0).as_object();
    EXPECT_EQ(finding.at("code"), "UNKNOWN_NODE_TYPE");
    EXPECT_EQ(finding.at("node_id"), "1");
    EXPECT_EQ(finding.at("class_type"), "Nope");
    EXPECT_THAT(
        std::string(
            refused.error().details.at("findings").as_array().at(1).at("message").as_string()
        ),
        testing::HasSubstr("group node")
    );
}

TEST(Conversion, LinksThatLeadNowhereAreNamed) {
    EXPECT_THAT(
        converted(graph(std::string(kSave))),
        testing::HasSubstr("input 'images' of node 9 (SaveImage) names a link that does not exist")
    );
    EXPECT_THAT(
        converted(graph(std::string(kSave), R"([7,3,0,9,0,"IMAGE"])")),
        testing::HasSubstr("is linked to a node that does not exist")
    );
    EXPECT_THAT(
        converted(graph(
            std::string(kSave) + R"(,{"id":1,"type":"Reroute","inputs":[{"name":"","link":2}]},
                {"id":2,"type":"Reroute","inputs":[{"name":"","link":1}]})",
            R"([7,1,0,9,0,"IMAGE"],[2,2,0,1,0,"*"],[1,1,0,2,0,"*"])"
        )),
        testing::HasSubstr("in a circle")
    );
}

TEST(Conversion, NamedLinks) {
    const std::string nodes = std::string(kSave) +
                              R"(,{"id":1,"type":"Load"},
           {"id":2,"type":"SetNode","inputs":[{"name":"IMAGE","link":1}],"widgets_values":["pic"]},
           {"id":3,"type":"GetNode","widgets_values":["pic"]})";
    EXPECT_EQ(
        converted(graph(nodes, R"([1,1,0,2,0,"IMAGE"],[7,3,0,9,0,"IMAGE"])")),
        R"({"1":{"class_type":"Load","inputs":{"name":"a"}},)"
        R"("9":{"class_type":"SaveImage","inputs":{"filename_prefix":"y","images":["1",0]}}})"
    );
}

TEST(Conversion, ChoicesInTextsAreTheCallersToMake) {
    const std::string workflow =
        graph(R"({"id":1,"type":"Text","widgets_values":["a {red|{blue|green}} car"]})");
    EXPECT_THAT(converted(workflow), testing::HasSubstr("a red car"));
    ConvertOptions last;
    last.choose = [](std::size_t count) { return count - 1; };
    EXPECT_THAT(converted(workflow, last), testing::HasSubstr("a green car"));
    const std::string braces(5000, '{');
    EXPECT_TRUE(convert(graph(R"({"id":1,"type":"Text","widgets_values":[")" + braces + "\"]}")));
}

TEST(Conversion, NamesInTheValueOfAPrimitive) {
    const auto with = [](const std::string& asked) {
        return converted(graph(
            R"({"id":1,"type":"Text","inputs":[{"name":"text","link":1}]},
               {"id":2,"type":"PrimitiveNode","widgets_values":["%Load.name%"],
                "properties":{"Run widget replace on values":)" +
                asked + R"(}},{"id":3,"type":"Load","widgets_values":["b:"]})",
            R"([1,2,0,1,0,"STRING"])"
        ));
    };
    EXPECT_THAT(with("true"), testing::HasSubstr(R"("text":"b_")"));
    EXPECT_THAT(with("false"), testing::HasSubstr(R"("text":"%Load.name%")"));
}

TEST(Conversion, DatesInFileNames) {
    const std::string workflow = graph(
        R"({"id":1,"type":"SaveImage","widgets_values":["%date:yyyy%/%%x%SaveImage.nope%%date:q%"]})"
    );
    EXPECT_THAT(converted(workflow), testing::HasSubstr("%date:yyyy%/%%x%SaveImage.nope%"));
    ConvertOptions options;
    options.now = from_unix_ms(1'700'000'000'000);
    EXPECT_THAT(converted(workflow, options), testing::HasSubstr("2023/%%x%SaveImage.nope%q"));
}

// Subgraph `at` of a chain, each of which holds the next `copies` times.
std::string chain_of_subgraphs(int length, int copies, bool closed) {
    std::string definitions;
    for (int at = 0; at < length; ++at) {
        std::string nodes = R"({"id":1,"type":"Load"})";
        const int next = at + 1 < length ? at + 1 : (closed ? 0 : -1);
        for (int copy = 0; next >= 0 && copy < copies; ++copy) {
            nodes += R"(,{"id":)" + std::to_string(copy + 2) + R"(,"type":"sub)" +
                     std::to_string(next) + R"("})";
        }
        definitions += (at > 0 ? "," : "") + std::string(R"({"id":"sub)") + std::to_string(at) +
                       R"(","nodes":[)" + nodes + R"(],"links":[]})";
    }
    return R"({"version":1,"nodes":[{"id":1,"type":"sub0"}],"links":[],
        "definitions":{"subgraphs":[)" +
           definitions + "]}}";
}

TEST(ConversionLimits, Subgraphs) {
    EXPECT_EQ(convert(chain_of_subgraphs(60, 1, false))->size(), 60U);
    EXPECT_THAT(
        converted(chain_of_subgraphs(1000, 1, false)),
        testing::HasSubstr("nested more than 64 deep")
    );
    EXPECT_THAT(converted(chain_of_subgraphs(1, 1, true)), testing::HasSubstr("contains itself"));
    EXPECT_THAT(converted(chain_of_subgraphs(5, 1, true)), testing::HasSubstr("contains itself"));
    EXPECT_THAT(
        converted(chain_of_subgraphs(40, 2, false)), testing::HasSubstr("more than 10000 nodes")
    );
}

TEST(ConversionLimits, ManyNodes) {
    // Everyone asks through all bypassed nodes before him; the last ones are too far away.
    std::string nodes = R"({"id":0,"type":"Load"})";
    std::string links;
    for (int i = 1; i < 9998; ++i) {
        nodes += R"(,{"id":)" + std::to_string(i) +
                 R"(,"type":"Seed","mode":4,"inputs":[{"name":"image","link":)" +
                 std::to_string(i) + "}]}";
        links += (i > 1 ? "," : "") + std::string("[") + std::to_string(i) + "," +
                 std::to_string(i - 1) + ",0," + std::to_string(i) + R"(,0,"IMAGE"])";
    }
    nodes += R"(,{"id":9998,"type":"SaveImage","inputs":[{"name":"images","link":20000}]})";
    links += R"(,[20000,9997,0,9998,0,"IMAGE"])";
    const auto made = convert(graph(nodes, links));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(json::serialize(made->at("9998").at("inputs").at("images")), R"(["0",0])");
    EXPECT_THAT(
        converted(graph(nodes + R"(,{"id":9999,"type":"Load"},{"id":10000,"type":"Load"})", links)),
        testing::HasSubstr("more than 10000 nodes")
    );
}

TEST(ConversionLimits, ShapesThatAreNone) {
    EXPECT_THAT(converted("{}"), testing::HasSubstr("no list of nodes"));
    EXPECT_THAT(converted(graph("7")), testing::HasSubstr("not an object with an id"));
    EXPECT_THAT(converted(graph(R"({"type":"Load"})")), testing::HasSubstr("with an id"));
    EXPECT_THAT(
        converted(graph(R"({"id":1,"type":"Load"},{"id":1,"type":"Load"})")),
        testing::HasSubstr("two nodes have the id 1")
    );
    EXPECT_THAT(converted(graph("", "7")), testing::HasSubstr("neither an object nor"));
    const std::string object_link = R"({"id":7,"origin_id":1,"origin_slot":0})";
    const std::string nodes = std::string(kSave) + R"(,{"id":1,"type":"Load"})";
    EXPECT_THAT(converted(graph(nodes, object_link)), testing::HasSubstr("version 0.4 links are"));
    EXPECT_THAT(
        converted(R"({"version":1,"nodes":[)" + nodes + R"(],"links":[)" + object_link + "]}"),
        testing::HasSubstr(R"("images":["1",0])")
    );
    EXPECT_THAT(
        converted(R"({"nodes":[],"definitions":{"subgraphs":[{"nodes":[]}]}})"),
        testing::HasSubstr("has no id")
    );
}

// Changes values, members and elements at random places.
class Mutator {
public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    void change(json::value& at, int depth = 0) {
        json::object* members = at.if_object();
        json::array* items = at.if_array();
        const bool goes_on = depth < 3 || random_() % 4 != 0;
        if (members != nullptr && !members->empty() && goes_on) {
            auto member =
                members->begin() + static_cast<std::ptrdiff_t>(random_() % members->size());
            if (depth > 0 && random_() % 12 == 0) {
                members->erase(member);
            } else {
                change(member->value(), depth + 1);
            }
        } else if (items != nullptr && !items->empty() && goes_on) {
            const std::size_t place = random_() % items->size();
            switch (depth > 0 ? random_() % 12 : 5) {
                case 0:
                    items->erase(items->begin() + static_cast<std::ptrdiff_t>(place));
                    break;
                case 1:
                    items->push_back(json::value((*items)[place]));
                    break;
                case 2:
                    std::swap((*items)[place], (*items)[random_() % items->size()]);
                    break;
                default:
                    change((*items)[place], depth + 1);
            }
        } else {
            at = something();
        }
    }

private:
    json::value something() {
        switch (random_() % 9) {
            case 0:
                return nullptr;
            case 1:
                return true;
            case 2:
                return -10;
            case 3:
                return static_cast<std::int64_t>(random_() % 12);
            case 4:
                return 1e300;
            case 5:
                return "Reroute";
            case 6:
                return json::array{1, 2};
            case 7:
                return json::object{{"0", 1}};
            default:
                return std::numeric_limits<std::int64_t>::max();
        }
    }

    std::mt19937 random_;
};

TEST(ConversionProperties, DamagedWorkflowsGiveAnErrorOrAPromptWithoutDeadLinks) {
    unsigned seed = 1;
    for (const std::string& file : recordings(COMFYD_TEST_DATA "/ui-workflows/own")) {
        const json::value original = *json::parse(read_file(file));
        for (int i = 0; i < 40; ++i) {
            json::value damaged = original;
            Mutator mutator(seed++);
            for (int j = 0; j <= i % 8; ++j) {
                mutator.change(damaged);
            }
            const auto made = convert_ui(damaged.as_object(), own_classes());
            if (!made) {
                EXPECT_EQ(made.error().code, Code::invalid_workflow);
                EXPECT_FALSE(made.error().details.at("findings").as_array().empty());
                continue;
            }
            for (const auto& node : *made) {
                EXPECT_NE(own_classes().find(node.value().at("class_type").as_string()), nullptr);
                for (const auto& input : node.value().at("inputs").as_object()) {
                    if (const json::array* link = input.value().if_array()) {
                        EXPECT_TRUE(made->contains(link->at(0).as_string()));
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace comfyd::workflow
