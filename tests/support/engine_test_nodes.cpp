#include "support/engine_test_nodes.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {
namespace {

using engine::AddedInput;
using engine::AddedLink;
using engine::Call;
using engine::NodeClass;
using engine::NodeResult;
using engine::Value;

constexpr int kReports = 10;

void report(const Call& call, double max) {
    for (int i = 0; i <= kReports; ++i) {
        call.progress(max * i / kReports, max);
    }
}

Result<NodeResult> raise_error(Call& /*call*/) {
    return engine::node_error("RuntimeError", "Intentional sync execution error for testing");
}

Result<NodeResult> update_progress(Call& call) {
    report(call, 1.0);
    return NodeResult{.outputs = {call.value("value")}};
}

Result<NodeResult> sleep(Call& call) {
    report(call, call.number("seconds"));
    return NodeResult{.outputs = {call.value("value")}};
}

Result<NodeResult> block(Call& call) {
    if (!call.flag("block")) {
        return NodeResult{.outputs = {call.value("input")}};
    }
    engine::Blocker blocker;
    if (call.flag("verbose")) {
        blocker.message = "Blocked Execution";
    }
    return NodeResult{.outputs = {std::move(blocker)}};
}

Result<NodeResult> average(Call& call) {
    std::vector<const engine::Image*> images;
    for (std::string name = "input1"; call.has(name);
         name = "input" + std::to_string(images.size() + 1)) {
        images.push_back(&call.image(name));
    }
    auto result = call.new_image(images.front()->shape());
    if (!result) {
        return fail(std::move(result.error()));
    }
    for (std::size_t i = 0; i < result->shape().floats(); ++i) {
        float sum = 0;
        for (const engine::Image* image : images) {
            sum += image->data()[i];
        }
        result->data()[i] = sum / static_cast<float>(images.size());
    }
    return NodeResult{.outputs = {std::move(*result).finish()}};
}

// Sleeping nodes over two pictures in turn, and the average of what they hand on.
Result<NodeResult> generate(Call& call) {
    engine::Expansion expansion;
    std::vector<std::pair<std::string, AddedInput>> sleepers;
    for (std::int64_t i = 0; i < call.integer("num_async_nodes"); ++i) {
        const std::size_t place = expansion.add(
            {"TestSleep",
             {{"value", call.value(i % 2 == 0 ? "image1" : "image2")},
              {"seconds", Value(call.number("sleep_duration"))}}}
        );
        sleepers.emplace_back("input" + std::to_string(i + 1), AddedLink{place, 0});
    }
    AddedLink last{0, 0};
    if (sleepers.size() > 1) {
        last.node = expansion.add({"TestVariadicAverage", std::move(sleepers)});
    }
    expansion.outputs = {last};
    return NodeResult{.expansion = std::move(expansion)};
}

}  // namespace

void add_test_nodes(engine::Registry& registry) {
    const auto facts = json::parse_object(read_file(
        std::filesystem::path(COMFYD_SOURCE) /
        "tests/data/comfyui/object_info.testing-pack.facts.json"
    ));
    if (!facts) {
        throw std::runtime_error("the facts of the test nodes cannot be read");
    }
    const auto add = [&](NodeClass node) {
        json::object info = facts->at(node.name).as_object();
        registry.add(std::move(node), std::move(info));
    };
    add({.name = "TestSyncError", .execute = &raise_error});
    add({.name = "TestSyncProgressUpdate", .execute = &update_progress});
    add({.name = "TestExecutionBlocker", .execute = &block});
    add({.name = "TestDynamicAsyncGeneration", .execute = &generate});
    add({.name = "TestSleep", .execute = &sleep, .is_async = true});
    add({.name = "TestVariadicAverage", .execute = &average, .takes_any_input = true});
}

}  // namespace comfyd::support
