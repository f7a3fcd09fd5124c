// The model files that a workflow names and that a worker can be made to have: which they are, and
// what stands in the workflow for them. What an operator has registered comes first; then, where
// the operator allows it, what the workflow itself says of where its models are had from, and
// addresses in the inputs of loaders; last the operator's list. Pure, but for asking the register;
// any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "admission/submission.hpp"
#include "base/requirement.hpp"
#include "models/known_files.hpp"
#include "models/register.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/files/model_uses.hpp"
#include "workflow/files/named_files.hpp"

namespace comfyd::admission {

struct ModelRules {
    std::function<std::shared_ptr<const models::Register>()> registered{};  // any thread
    std::shared_ptr<const models::Register> list{};                         // null: none
    bool takes_addresses = false;      // in the inputs of loaders
    bool takes_properties = false;     // `properties.models` of the editor's format
    std::vector<std::string> hosts{};  // that those two may name; empty: any
    // What workers have told of their files; nullptr: nothing.
    const models::KnownFiles* files = nullptr;
    // Files that do not go together are told of, and not refused.
    bool only_warns = false;
};

struct WantedModels {
    std::vector<models::WantedModel> models{};  // each once
    struct Change {
        std::size_t use = 0;
        std::string value;  // that stands there instead
    };
    std::vector<Change> changes{};
    std::vector<workflow::ModelUse> uses{};
    // The needs of a worker that come of it, with the values as they are then.
    std::set<Requirement::Need> needs{};
    // Values that no worker has yet.
    std::vector<workflow::MissingFile> coming{};

    void apply(json::object& graph) const;
};

// `given`: what the editor saved, where the graph was made of that; else nullptr.
WantedModels find_wanted_models(
    const ModelRules& rules,
    const std::string& tenant,
    const json::object& graph,
    const json::object* given,
    const workflow::Catalogue& catalogue
);

// What the graph needs of a worker, which may get its models later.
Decision<Requirement> judge_need(
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    const MachineWish& machine,
    const WantedModels& wanted
);

}  // namespace comfyd::admission
