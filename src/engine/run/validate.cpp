#include "engine/run/validate.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "engine/run/plan.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::engine {
namespace {

// Lives for one judging, so that a class offers the same files throughout.
class EngineClasses : public workflow::PromptClasses {
public:
    EngineClasses(const Registry& registry, const Folders& folders)
        : registry_(registry), folders_(folders) {}

    const workflow::NodeDefinition* find(std::string_view class_type) const override {
        const RegisteredClass* registered = registry_.find(class_type);
        if (registered == nullptr || registered->node.files.empty()) {
            return registered != nullptr ? registered->definition.get() : nullptr;
        }
        auto& definition = with_files_[registered->node.name];
        if (!definition) {
            auto described = workflow::NodeDefinition::from_object_info(
                class_type, describe(*registered, folders_)
            );
            // More files than a definition may hold: the choices are then not known.
            definition = described ? std::move(*described) : registered->definition;
        }
        return definition.get();
    }

    const workflow::OwnCheck* own_check(const workflow::NodeDefinition& definition) const override {
        const NodeClass& node = registry_.find(definition.name())->node;
        if (node.check == nullptr) {
            return nullptr;
        }
        const auto [at, added] = checks_.try_emplace(node.name);
        if (added) {
            at->second.inputs = {node.checked_input};
            at->second.python_name = node.check_name;
            at->second.check = [this, &node](const json::object& inputs, const auto& /*received*/) {
                return check(node, inputs);
            };
        }
        return &at->second;
    }

private:
    std::optional<workflow::OwnRefusal> check(const NodeClass& node, const json::object& inputs)
        const {
        const json::value* value = inputs.if_contains(node.checked_input);
        auto refusal = value == nullptr ? std::nullopt : node.check(*value, folders_);
        if (!refusal) {
            return std::nullopt;
        }
        return workflow::OwnRefusal{std::move(refusal->text), std::move(refusal->exception_type)};
    }

    const Registry& registry_;
    const Folders& folders_;
    mutable std::map<std::string, std::shared_ptr<const workflow::NodeDefinition>, std::less<>>
        with_files_;
    mutable std::map<std::string, workflow::OwnCheck> checks_;
};

}  // namespace

Validation validate_prompt(
    json::object& prompt,
    const Registry& registry,
    const Folders& folders,
    const std::vector<std::string>* targets
) {
    const EngineClasses classes(registry, folders);
    workflow::PromptVerdict verdict = workflow::judge_prompt(
        prompt, classes, {.targets = targets, .own_checks_known = true, .plain_numbers = true}
    );
    return Validation{
        .ok = verdict.accepted,
        .error = std::move(verdict.error),
        .node_errors = std::move(verdict.node_errors),
        .outputs_to_execute = std::move(verdict.outputs_to_execute)
    };
}

}  // namespace comfyd::engine
