// What a worker with the node pack says to a prompt without running it.
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "comfy/members.hpp"
#include "fleet/comfy_machine.hpp"

namespace comfyd::fleet {
namespace {

// A file that will be brought to the worker is not there yet: another one of its list stands for
// it. False: it has none.
bool put_stand_in(
    const AssetUse& use, const json::object& prompt, const workflow::NodeClasses& classes
) {
    const json::object& node = prompt.at(use.node_id).as_object();
    const workflow::NodeDefinition* definition = classes.find(comfy::text_of(node, "class_type"));
    if (definition == nullptr) {
        return false;
    }
    for (const workflow::InputDefinition* input : definition->all_inputs()) {
        if (input->takes_upload() && input->choices != nullptr && !input->choices->empty()) {
            *use.place = input->choices->front();
            return true;
        }
    }
    return false;
}

}  // namespace

Task<std::optional<workflow::PromptVerdict>> ComfyMachine::judge(
    json::object prompt, std::vector<std::string> targets
) {
    const auto self = shared_from_this();
    for (const AssetUse& use : find_asset_uses(prompt)) {
        if (!put_stand_in(use, prompt, *known_.classes)) {
            co_return std::nullopt;
        }
    }
    auto answer = co_await link_.client.validate(
        {Uuid::make(parts_.clock.now()).to_string(), "", json::serialize(prompt), {}, targets}
    );
    workflow::PromptVerdict verdict;
    if (answer) {
        verdict.accepted = true;
        verdict.node_errors = std::move(answer->node_errors);
        verdict.outputs_to_execute = std::move(answer->outputs);
        co_return verdict;
    }
    const json::object* error = comfy::object_of(answer.error().details, "error");
    if (answer.error().code != Code::worker_rejected || error == nullptr) {
        log::debug(
            "worker did not judge a prompt",
            {{"worker", id_}, {"error", log::foreign(answer.error().message)}}
        );
        co_return std::nullopt;
    }
    verdict.error = *error;
    if (const json::object* nodes = comfy::object_of(answer.error().details, "node_errors")) {
        verdict.node_errors = *nodes;
    }
    co_return verdict;
}

}  // namespace comfyd::fleet
