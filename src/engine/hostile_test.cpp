// Links bring any value to any input: ComfyUI checks the limits of literals only. Whatever comes, a
// node gives a result or an error, within the engine's memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/nodes/call.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;

constexpr std::uint64_t kMemory = 64ULL * 1024 * 1024;
constexpr int kRounds = 16;  // of each class

Value picture(Call& call, ImageShape shape, float value) {
    NewImage image = call.new_image(shape).value();
    std::fill_n(image.data(), shape.floats(), value);
    return std::move(image).finish();
}
Value mask(Call& call, ImageShape shape, float value) {
    NewMask made = call.new_mask(shape.batch, shape.height, shape.width).value();
    std::fill_n(made.data(), shape.batch * shape.height * shape.width, value);
    return std::move(made).finish();
}

json::value nested(int depth) {
    json::value data(1);
    for (int i = 0; i < depth; ++i) {
        data = json::array{std::move(data)};
    }
    return data;
}

struct Hostile {
    std::string_view type;
    std::function<Value(Call&)> make;
};

std::vector<Hostile> make_hostile() {
    std::vector<Hostile> all;
    const auto add = [&](std::string_view type, Value value) {
        all.push_back({type, [value](Call&) { return value; }});
    };
    for (const std::int64_t number :
         {std::int64_t{0},
          std::int64_t{1},
          std::int64_t{-1},
          std::int64_t{2},
          std::int64_t{7},
          std::int64_t{-9},
          std::int64_t{300},
          std::int64_t{16384},
          std::int64_t{-16385},
          std::int64_t{1} << 31,
          (std::int64_t{1} << 31) - 1,
          std::int64_t{1} << 32,
          std::int64_t{1} << 53,
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
        add("INT", number);
    }
    add("INT", std::numeric_limits<std::uint64_t>::max());
    for (const double number :
         {0.0,
          -0.0,
          0.5,
          -0.5,
          1.0,
          1e-310,
          1e10,
          -1e19,
          1e308,
          std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(),
          std::nan("")}) {
        add("FLOAT", number);
    }
    add("BOOLEAN", true);
    add("BOOLEAN", false);
    for (const char* text :
         {"",
          " ",
          "center",
          "#1020ff",
          "bayer-3",
          "../../x",
          "/../../x",
          "{a:99999999999}",
          "{a[0]}",
          "{",
          "(a*)*b",
          "(?P<a>",
          "\\g<0>\\1",
          "[[[[",
          "{\"a\": [1, {\"b\": null}]}",
          "9**9**9",
          "1 if a else b",
          "\xff\xfe",
          "\xe2\x82\xac uro"}) {
        add("STRING", std::string(text));
    }
    add("STRING", std::string(5'000, 'w'));
    add("STRING", std::string(2'000, '('));
    add("DATA", Data(json::object{}));
    add("DATA", Data(json::array{}));
    add("DATA", Data(nested(60)));
    add("DATA", Data(json::object{{"x", 1e300}, {"y", -5}, {"width", 0}, {"height", 1e308}}));
    add("DATA", Data(json::array{json::array{json::object{{"x", 1}, {"y", "2"}}}}));
    add("DATA", Data(json::object{{"points", json::array{json::array{std::nan(""), 0}}}}));
    add("DATA", Data(json::array{json::object{{"bbox", json::array{1, 2, 3, 1e308}}}}));
    for (const float value : {0.4F, -1e30F, std::numeric_limits<float>::quiet_NaN()}) {
        for (const ImageShape shape :
             {ImageShape{0, 4, 4, 3},
              ImageShape{1, 0, 4, 3},
              ImageShape{1, 4, 0, 3},
              ImageShape{1, 1, 1, 3},
              ImageShape{2, 3, 5, 3},
              ImageShape{1, 8, 8, 4},
              ImageShape{1, 4, 4, 1},
              ImageShape{1, 4, 4, 2},
              ImageShape{3, 2, 2, 5},
              ImageShape{1, 40, 30, 3}}) {
            all.push_back({"IMAGE", [=](Call& call) { return picture(call, shape, value); }});
            all.push_back({"MASK", [=](Call& call) { return mask(call, shape, value); }});
        }
    }
    all.push_back({"NONE", [](Call&) { return None{}; }});
    return all;
}

const std::vector<Hostile>& hostile() {
    static const std::vector<Hostile> all = make_hostile();
    return all;
}

Result<NodeResult> give(Call& call) {
    return NodeResult{.outputs = {hostile()[call.seed("which") % hostile().size()].make(call)}};
}
Result<NodeResult> give_nothing(Call&) {
    return NodeResult{.outputs = {std::make_shared<const List>()}};
}

Registry registry_with_hostile() {
    Registry registry = make_registry();
    registry.add({.name = "Hostile", .execute = &give}, info({{"which", type("INT")}}, {"*"}));
    registry.add(
        {.name = "Nothing", .execute = &give_nothing},
        info({}, {"*"}, {{"output_is_list", json::array{true}}})
    );
    return registry;
}

// Writes prompts around one node of a class: its inputs come from hostile values, from other
// classes and, now and then, are what they should be.
class Author {
public:
    Author(const json::object& info, std::uint64_t seed) : info_(info), random_(seed) {
        for (const auto& [name, entry] : info) {
            const json::array& outputs = entry.at("output").as_array();
            for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
                makers_[std::string(outputs[slot].as_string())].emplace_back(name, slot);
            }
        }
    }

    json::object write(const std::string& class_type) {
        const std::string id = add(class_type, 0);
        const std::size_t outputs = info_.at(class_type).at("output").as_array().size();
        for (std::size_t slot = 0; slot < outputs; ++slot) {
            const auto number = static_cast<std::int64_t>(slot);
            place({{"class_type", "PreviewAny"}, {"inputs", {{"source", json::array{id, number}}}}}
            );
        }
        return std::move(prompt_);
    }

private:
    static constexpr int kDepthMax = 2;

    std::size_t pick(std::size_t count) { return random_() % count; }

    std::string place(json::object node) {
        std::string id = std::to_string(prompt_.size() + 1);
        prompt_[id] = std::move(node);
        return id;
    }

    std::string add(const std::string& class_type, int depth) {
        json::object inputs;
        const json::object& groups = info_.at(class_type).at("input").as_object();
        for (const char* need : {"required", "optional"}) {
            if (const json::value* specs = groups.if_contains(need)) {
                fill(inputs, "", specs->as_object(), depth);
            }
        }
        return place({{"class_type", class_type}, {"inputs", std::move(inputs)}});
    }

    void fill(
        json::object& inputs, const std::string& prefix, const json::object& specs, int depth
    ) {
        for (const auto& [name, spec] : specs) {
            const std::string full = prefix + std::string(name);
            const std::string type =
                spec.at(0).is_string() ? std::string(spec.at(0).as_string()) : "COMBO";
            if (type == "COMFY_AUTOGROW_V3") {
                grow(inputs, full, spec.at(1).at("template").as_object(), depth);
            } else if (type == "COMFY_DYNAMICCOMBO_V3") {
                const json::array& options = spec.at(1).at("options").as_array();
                const json::value& option = options[pick(options.size())];
                inputs[full] = option.at("key");
                fill(inputs, full + ".", option.at("inputs").at("required").as_object(), depth);
            } else {
                inputs[full] = value(type, spec.as_array(), depth);
            }
        }
    }

    void grow(json::object& inputs, const std::string& full, const json::object& shape, int depth) {
        const auto& [name, spec] = *shape.at("input").at("required").as_object().begin();
        const json::value* names = shape.if_contains("names");
        for (std::size_t i = 0; i < 1 + pick(3); ++i) {
            const std::string last =
                names != nullptr ? std::string(names->as_array()[i].as_string())
                                 : std::string(shape.at("prefix").as_string()) + std::to_string(i);
            const std::string type(spec.at(0).as_string());
            inputs[full + "." + last] = value(type, spec.as_array(), depth);
        }
    }

    json::value value(const std::string& type, const json::array& spec, int depth) {
        const std::size_t chance = pick(20);
        if (chance == 0) {
            return json::array{place({{"class_type", "Nothing"}, {"inputs", json::object()}}), 0};
        }
        const auto makers = makers_.find(type);
        const bool can_make = makers != makers_.end() && depth < kDepthMax;
        const bool plain = makes_itself(type);
        if (can_make && (!plain || chance < 5)) {
            const auto& [name, slot] = makers->second[pick(makers->second.size())];
            return json::array{add(name, depth + 1), static_cast<std::int64_t>(slot)};
        }
        if (const auto literal = literal_of(type, spec); literal && chance < 12) {
            return *literal;
        }
        return hostile_of(chance == 19 ? "" : type);
    }

    static bool makes_itself(std::string_view type) {
        return type == "INT" || type == "FLOAT" || type == "STRING" || type == "BOOLEAN" ||
               type == "IMAGE" || type == "MASK";
    }

    static std::optional<json::value> literal_of(std::string_view type, const json::array& spec) {
        const json::object* options = spec.size() > 1 ? spec[1].if_object() : nullptr;
        if (spec[0].is_array() && !spec[0].as_array().empty()) {
            return spec[0].as_array()[0];
        }
        if (options != nullptr && options->contains("default")) {
            return options->at("default");
        }
        if (options != nullptr && options->contains("options") &&
            options->at("options").is_array() && !options->at("options").as_array().empty()) {
            return options->at("options").as_array()[0];
        }
        return type == "STRING" ? std::optional<json::value>("text") : std::nullopt;
    }

    // Of the type, or anything at all.
    json::value hostile_of(const std::string& type) {
        std::vector<std::size_t> fitting;
        for (std::size_t i = 0; i < hostile().size(); ++i) {
            const std::string_view kind = hostile()[i].type;
            const bool text = kind == "STRING" && (type == "COMBO" || type == "COLOR");
            if (type.empty() || type.find(kind) != type.npos || text ||
                (kind == "DATA" && !makes_itself(type))) {
                fitting.push_back(i);
            }
        }
        const auto which = static_cast<std::int64_t>(fitting[pick(fitting.size())]);
        return json::array{place({{"class_type", "Hostile"}, {"inputs", {{"which", which}}}}), 0};
    }

    const json::object& info_;
    std::mt19937_64 random_;
    std::map<std::string, std::vector<std::pair<std::string, std::size_t>>> makers_;
    json::object prompt_;
};

std::vector<std::string> class_names() {
    const Registry registry = make_registry();
    std::vector<std::string> names;
    for (const auto& [name, registered] : registry.classes()) {
        names.push_back(name);
    }
    return names;
}

std::uint64_t seed_of(std::string_view name, int round) {
    std::uint64_t seed = static_cast<std::uint64_t>(round);
    for (const char c : name) {
        seed = seed * 1'099'511'628'211ULL + static_cast<unsigned char>(c);
    }
    return seed;
}

class HostileValues : public ::testing::TestWithParam<std::string> {};

TEST_P(HostileValues, EndInAResultOrAnError) {
    const TestFolders folders;
    EngineOptions options = folders.options();
    options.memory_bytes_max = kMemory;
    Core core(registry_with_hostile(), options);
    const json::object info = core.object_info();
    int ran = 0;
    for (int round = 0; round < kRounds; ++round) {
        const json::object prompt = Author(info, seed_of(GetParam(), round)).write(GetParam());
        SCOPED_TRACE(json::serialize(prompt));
        Listener listener;
        const auto result = core.run(prompt, {}, listener, {});
        ran += result || result.error().code != Code::invalid_workflow ? 1 : 0;
        EXPECT_TRUE(result || result.error().code != Code::internal) << result.error().message;
        EXPECT_LE(core.memory().used(), kMemory);
        core.free_memory();
        EXPECT_EQ(core.memory().used(), 0);
    }
    // A node that loads a file does not take its name from a link.
    const bool checks_name = !core.registry().find(GetParam())->node.checked_input.empty();
    EXPECT_TRUE(ran > 0 || checks_name) << "no prompt was accepted";
#if !defined(COMFYD_SANITIZED)
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, 2'000'000) << "kilobytes: a node takes memory that does not count";
#endif
}

INSTANTIATE_TEST_SUITE_P(
    AllClasses,
    HostileValues,
    ::testing::ValuesIn(class_names()),
    [](const auto& tested) { return tested.param; }
);

}  // namespace
}  // namespace comfyd::engine
