// Workflows of one shape are judged alike, whatever is done to them.
#include "workflow/rules/shape.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "workflow/files/file_inputs.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/check.hpp"
#include "workflow/rules/prompt_request.hpp"
#include "workflow/rules/security.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::flux;
using test::input;
using test::parsed;
using test::recorded_catalogue;
using test::text_to_image;

const Catalogue& no_workers() {
    static const Catalogue catalogue{std::vector<Catalogue::Entry>()};
    return catalogue;
}

// What a real server was asked, good and bad, and two workflows of every day.
std::vector<json::object> recorded_workflows() {
    std::vector<json::object> found{text_to_image(), flux()};
    const std::string folder = std::string(COMFYD_TEST_DATA) + "/comfyui/validation";
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        const std::string name = file.path().filename();
        const auto recorded = read_prompt_body(read_test_data("comfyui/validation/" + name));
        EXPECT_TRUE(recorded) << name;
        const json::value* request =
            recorded->as_object().at("request").as_object().if_contains("body");
        const json::object* body = request == nullptr ? nullptr : request->if_object();
        const json::value* prompt = body == nullptr ? nullptr : body->if_contains("prompt");
        if (prompt != nullptr && prompt->is_object()) {
            found.push_back(prompt->get_object());
        }
    }
    return found;
}

class Mutations {
public:
    explicit Mutations(unsigned seed) : random_(seed) {}

    // Other texts and numbers, and now and then something that should not be there.
    void apply(json::object& workflow) {
        for (auto& node : workflow) {
            json::object* members = node.value().if_object();
            json::value* inputs = members == nullptr ? nullptr : members->if_contains("inputs");
            if (inputs == nullptr || !inputs->is_object()) {
                continue;
            }
            if (pick(40) == 0) {
                (*members)["class_type"] = odd(workflow);
                return;
            }
            for (auto& one : inputs->get_object()) {
                vary(one.value(), workflow);
            }
            if (pick(25) == 0 && !inputs->get_object().empty()) {
                inputs->get_object().erase(inputs->get_object().begin());
            }
            if (pick(25) == 0) {
                inputs->get_object()["unknown"] = odd(workflow);
            }
        }
        if (pick(25) == 0 && !workflow.empty()) {
            workflow.erase(workflow.begin());
        }
    }

private:
    int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

    void vary(json::value& value, const json::object& workflow) {
        if (pick(30) == 0) {
            value = odd(workflow);
        } else if (value.is_string() && pick(3) == 0) {
            value = text();
        } else if (value.is_number() && pick(3) == 0) {
            value = number();
        }
    }
    json::value text() {
        static constexpr const char* kTexts[] = {
            "",
            "a cat",
            "euler",
            "5",
            "-1",
            "nan",
            "[\"4\", 0]",
            "sd_xl_base_1.0.safetensors",
            "line\nbreak",
            "embedding:x",
            "an embedding:soft in it",
            "http://10.0.0.1/a",
            "../up",
            "/etc/passwd",
            "cat.png",
            "cat.png [output]",
            "comfyd_0123456789abcdef0123456789abcdef/a.png",
            "data:image/png;base64,AAAA",
            "a (very) good: text, with [brackets]"
        };
        return kTexts[pick(static_cast<int>(std::size(kTexts)))];
    }
    json::value number() {
        switch (pick(8)) {
            case 0:
                return -1;
            case 1:
                return std::uint64_t{18'446'744'073'709'551'615U};
            case 2:
                return std::int64_t{9'223'372'036'854'775'807};
            case 3:
                return 0.5;
            case 4:
                return 1e300;
            default:
                return pick(2000);
        }
    }
    json::value odd(const json::object& workflow) {
        switch (pick(8)) {
            case 0:
                return nullptr;
            case 1:
                return pick(2) == 0;
            case 2:
                return text();
            case 3:
                return number();
            case 4:
                return json::array{};
            case 5:
                return json::object{{"a", number()}};
            default: {
                const auto place =
                    static_cast<std::size_t>(pick(static_cast<int>(workflow.size())));
                const auto id = std::next(workflow.begin(), static_cast<std::ptrdiff_t>(place));
                return json::array{id->key(), pick(4) - 1};
            }
        }
    }

    std::mt19937 random_;
};

// All that is found of a workflow, and what it needs.
struct Found {
    bool is_good = false;
    bool is_allowed = false;
    std::size_t files = 0;
    std::size_t nameless = 0;
    std::size_t sources = 0;
    std::string requirement{};
    std::string plan{};

    bool operator==(const Found&) const = default;
};

Found find_all(const json::object& workflow, const Catalogue& catalogue) {
    Found found;
    if (is_ui_format(workflow)) {
        return found;
    }
    const Graph graph(workflow);
    found.is_good = find_faults(workflow, catalogue, {}).empty();
    found.is_allowed = find_security_issues(graph, {}, catalogue).empty();
    found.files = find_file_uses(workflow, catalogue).size();
    found.nameless = find_nameless(workflow, catalogue, false).size();
    found.sources = find_file_sources(workflow, catalogue).size();
    found.requirement = catalogue.requirement_of(workflow).encoded();
    if (found.is_good) {
        json::object plan = make_plan(graph, catalogue).to_json(graph);
        plan.erase("fingerprint");
        found.plan = json::serialize(plan);
    }
    return found;
}

struct Tried {
    int graphs = 0;
    int again = 0;       // had a shape that was seen before
    int good_again = 0;  // and no faults
};

Tried try_all(const Catalogue& catalogue) {
    Tried tried;
    std::unordered_map<std::string, Found> found_of;
    unsigned seed = 0;
    for (const json::object& recorded : recorded_workflows()) {
        for (int round = 0; round < 40; ++round) {
            json::object workflow = recorded;
            if (round > 0 && !workflow.empty()) {
                Mutations(seed++).apply(workflow);
            }
            const Found found = find_all(workflow, catalogue);
            const auto [known, is_new] = found_of.emplace(shape_of(workflow, catalogue), found);
            EXPECT_EQ(known->second, found) << json::serialize(workflow);
            tried.graphs += 1;
            tried.again += is_new ? 0 : 1;
            tried.good_again += !is_new && found.is_good ? 1 : 0;
        }
    }
    return tried;
}

TEST(Shapes, WorkflowsOfOneShapeAreJudgedAlikeByClasses) {
    const Tried tried = try_all(recorded_catalogue());
    EXPECT_GT(tried.graphs, 10'000);
    EXPECT_GT(tried.again, 1'000);
    EXPECT_GT(tried.good_again, 100);
}

TEST(Shapes, WorkflowsOfOneShapeAreJudgedAlikeWithoutClasses) {
    const Tried tried = try_all(no_workers());
    EXPECT_GT(tried.again, 1'000);
    EXPECT_GT(tried.good_again, 1'000);
}

TEST(Shapes, TextsAndSeedsMakeNoDifference) {
    json::object other = text_to_image();
    input(other, "6", "text") = "a dog on a hill";
    input(other, "3", "seed") = 123'456'789;
    input(other, "9", "filename_prefix") = "Dogs";
    for (const Catalogue* catalogue : {&recorded_catalogue(), &no_workers()}) {
        EXPECT_EQ(shape_of(text_to_image(), *catalogue), shape_of(other, *catalogue));
    }
}

TEST(Shapes, EverythingElseDoes) {
    const std::string first = shape_of(text_to_image(), recorded_catalogue());
    const auto differs = [&first](const char* node, const char* name, json::value value) {
        json::object other = text_to_image();
        input(other, node, name) = std::move(value);
        return shape_of(other, recorded_catalogue()) != first;
    };
    EXPECT_TRUE(differs("3", "seed", -1));
    EXPECT_TRUE(differs("3", "seed", "5"));
    EXPECT_TRUE(differs("3", "seed", 5.0));
    EXPECT_TRUE(differs("3", "seed", std::uint64_t{18'446'744'073'709'551'615U}));
    EXPECT_TRUE(differs("3", "steps", 21));
    EXPECT_TRUE(differs("3", "sampler_name", "dpmpp_2m"));
    EXPECT_TRUE(differs("3", "latent_image", json::array{"5", 1}));
    EXPECT_TRUE(differs("4", "ckpt_name", "sd_xl_base_1.0.safetensors"));
    EXPECT_TRUE(differs("6", "text", 5));
    EXPECT_TRUE(differs("6", "text", json::array{"5", 0}));
    EXPECT_TRUE(differs("6", "more", "text"));
}

// What stands where must not be mistaken for what stands elsewhere.
TEST(Shapes, PartsDoNotRunIntoEachOther) {
    const char* const workflows[] = {
        R"({"1": {"class_type": "A", "inputs": {"a": "x", "b": "y"}}})",
        R"({"1": {"class_type": "A", "inputs": {"a": "x"}, "b": "y"}})",
        R"({"1": {"class_type": "A", "inputs": {"a": "x"}}, "b": "y"})",
        R"({"1": {"class_type": "A", "inputs": {}}, "2": {"class_type": "A", "inputs": {}}})",
        R"({"1": {"class_type": "A", "inputs": {"2": {"class_type": "A", "inputs": {}}}}})",
        R"({"1": {"class_type": "A", "inputs": []}})",
        R"({"1": {"class_type": "A", "inputs": "{}"}})",
        R"({"1": {"class_type": "A"}})",
        R"({"1": []})",
        R"({"1": {}})",
        R"({})",
    };
    std::unordered_map<std::string, std::string> seen;
    for (const char* workflow : workflows) {
        const auto [found, is_new] =
            seen.emplace(shape_of(parsed(workflow), no_workers()), workflow);
        EXPECT_TRUE(is_new) << workflow << " like " << found->second;
    }
}

}  // namespace
}  // namespace comfyd::workflow
