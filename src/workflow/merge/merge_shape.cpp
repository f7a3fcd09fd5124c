#include "workflow/merge/merge_shape.hpp"

#include <cmath>

#include "workflow/plan/fingerprint.hpp"

namespace comfyd::workflow {

std::vector<std::size_t> Shapes::of(const Graph& graph) {
    std::vector<std::size_t> shapes(graph.size());
    for (const Graph::Position at : graph.order()) {
        const Graph::Node& node = graph[at];
        const NodeDefinition* definition = classes_.find(node.class_type);
        json::object text;
        for (const auto& [key, value] : *node.inputs) {
            const std::string_view name(key.data(), key.size());
            const Graph::Link* link = value.is_array() ? graph.link(at, name) : nullptr;
            const InputDefinition* known =
                definition != nullptr ? definition->find_input(name, *node.inputs) : nullptr;
            if (link != nullptr) {
                text[key] = json::array{shapes[link->source], link->slot};
            } else if (is_batchable(name, value, known)) {
                text[key] = nullptr;
            } else {
                text[key] = literal_text(value);
            }
        }
        std::string written = std::string(node.class_type) + json::serialize_canonical(text);
        shapes[at] = numbers_.emplace(std::move(written), numbers_.size()).first->second;
    }
    return shapes;
}

std::string literal_text(const json::value& value) {
    constexpr double kExact = 9007199254740992.0;
    const double* number = value.if_double();
    if (number != nullptr && std::floor(*number) == *number && std::abs(*number) <= kExact) {
        return std::to_string(static_cast<std::int64_t>(*number));
    }
    return json::serialize_canonical(value);
}

}  // namespace comfyd::workflow
