#include "workflow/merge/merge_check.hpp"

#include <algorithm>
#include <array>

#include "workflow/merge/merge_classes.hpp"
#include "workflow/merge/merge_texts.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

bool is_sampler_class(const Graph::Node& node) {
    const MergeClass* known = find_merge_class(node.class_type);
    return known != nullptr && known->kind == MergeKind::sampler;
}

// It is given the whole prompt or somebody's credentials. Its own id does no harm.
bool sees_more_than_its_inputs(const NodeDefinition& definition) {
    const json::value* sections = json::find(definition.info(), "input");
    const json::value* hidden = sections != nullptr && sections->is_object()
                                    ? json::find(sections->get_object(), "hidden")
                                    : nullptr;
    if (hidden == nullptr || !hidden->is_object()) {
        return false;
    }
    return std::ranges::any_of(hidden->get_object(), [](const auto& entry) {
        const json::value* type = &entry.value();
        if (type->is_array() && !type->get_array().empty()) {
            type = &type->get_array().front();
        }
        return *type != "UNIQUE_ID";
    });
}

// Texts, numbers and choices, one of each.
bool gives_plain_values(const NodeDefinition& definition) {
    static constexpr std::array<std::string_view, 5> kPlain{
        "STRING", "INT", "FLOAT", "BOOLEAN", "COMBO"
    };
    const auto& types = definition.outputs();
    for (std::size_t slot = 0; slot < types.size(); ++slot) {
        if (definition.output_is_list(slot) ||
            std::ranges::find(kPlain, types[slot]) == kPlain.end()) {
            return false;
        }
    }
    return true;
}

// Empty: nothing speaks against it.
std::string_view judge_unknown(const NodeDefinition& definition, bool before_sampler) {
    if (sees_more_than_its_inputs(definition)) {
        return "is given the whole prompt, with what belongs to other jobs";
    }
    if (before_sampler && !gives_plain_values(definition)) {
        return "stands before a sampler and is not known to work on a batch";
    }
    return {};
}

std::string_view judge_known(const Graph::Node& node, const MergeClass& known) {
    if (known.kind == MergeKind::refused) {
        return "sends its pictures without saying whose they are";
    }
    if (!fills_texts_up(node)) {
        return "loads a text encoder that gives every text another length";
    }
    const json::value* method =
        known.kind == MergeKind::sampler || node.class_type == "KSamplerSelect"
            ? node.inputs->if_contains("sampler_name")
            : nullptr;
    if (method != nullptr &&
        !(method->is_string() &&
          is_mergeable_sampler({method->get_string().data(), method->get_string().size()}))) {
        return "uses a sampling method whose result depends on the whole batch, or an unknown one";
    }
    return {};
}

}  // namespace

std::string describe_node(const Graph& graph, Position at) {
    return "node " + std::string(graph[at].id) + " (" + std::string(graph[at].class_type) + ")";
}

std::optional<std::string> find_unmergeable(
    const Graph& graph, const std::vector<bool>& needed, const PromptClasses& classes
) {
    if (graph.has_cycle()) {
        return "the workflow has a cycle";
    }
    std::vector<Position> samplers;
    for (Position at = 0; at < graph.size(); ++at) {
        if (needed[at] && is_sampler_class(graph[at])) {
            samplers.push_back(at);
        }
    }
    if (samplers.empty()) {
        return "the workflow has no sampler of ComfyUI's own";
    }
    const std::vector<bool> before = graph.needed_by(samplers);
    for (Position at = 0; at < graph.size(); ++at) {
        if (!needed[at]) {
            continue;
        }
        const Graph::Node& node = graph[at];
        const MergeClass* known = find_merge_class(node.class_type);
        const NodeDefinition* definition = classes.find(node.class_type);
        std::string_view why = "has a class that is not known";
        if (definition != nullptr) {
            why = known != nullptr ? judge_known(node, *known)
                                   : judge_unknown(*definition, before[at]);
        }
        const bool loose = std::ranges::any_of(*node.inputs, [&](const auto& input) {
            return input.value().is_array() &&
                   graph.link(at, {input.key().data(), input.key().size()}) == nullptr;
        });
        if (why.empty() && loose) {
            why = "has a link that leads nowhere";
        }
        if (!why.empty()) {
            return describe_node(graph, at) + " " + std::string(why);
        }
    }
    return std::nullopt;
}

}  // namespace comfyd::workflow
