// For tests of runs: node classes that need no pictures.
#pragma once

#include "engine/nodes/call.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine::testing {

// The numbers from 0 to n-1, as a list.
inline Result<NodeResult> count_up(Call& call) {
    List list;
    for (std::int64_t i = 0; i < call.integer("n"); ++i) {
        list.items.emplace_back(i);
    }
    return NodeResult{.outputs = {std::make_shared<const List>(std::move(list))}};
}
inline Result<NodeResult> add(Call& call) {
    return NodeResult{.outputs = {call.integer("a") + call.integer("b")}};
}
inline Result<NodeResult> choose(Call& call) {
    return NodeResult{.outputs = {call.value(call.flag("second") ? "b" : "a")}};
}
inline std::vector<std::string> choose_needed(const Call& call) {
    return {call.flag("second") ? "b" : "a"};
}

// CountUp, Add, and Choose between two of the type `choice`, of which it asks for one.
inline void add_test_nodes(Registry& registry, std::string_view choice) {
    registry.add(
        {.name = "CountUp", .execute = &count_up},
        info({{"n", type("INT")}}, {"INT"}, {{"output_is_list", json::array{true}}})
    );
    registry.add(
        {.name = "Add", .execute = &add}, info({{"a", type("INT")}, {"b", type("INT")}}, {"INT"})
    );
    const json::array lazy{choice, json::object{{"lazy", true}}};
    registry.add(
        {.name = "Choose", .execute = &choose, .needed = &choose_needed},
        info({{"second", type("BOOLEAN")}, {"a", lazy}, {"b", lazy}}, {std::string(choice)})
    );
}

}  // namespace comfyd::engine::testing
