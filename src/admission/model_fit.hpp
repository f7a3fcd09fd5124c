// Whether the model files of a workflow go together, as far as somebody has read them: a LoRA for
// another family than its model's, and a file that is of no use to the loader that names it. What
// is not known for certain is not judged: files that nobody has read, files that are not the same
// on all workers, and models that come from more than one place. Pure, but for asking what is
// known; any thread.
#pragma once

#include <vector>

#include "admission/models.hpp"
#include "base/json.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/files/named_files.hpp"

namespace comfyd::admission {

// Of the graph as it will run. In the form of files that are not there, so that each dialect says
// it in its own words.
std::vector<workflow::MissingFile> find_unfit_models(
    const ModelRules& rules, const json::object& graph, const workflow::Catalogue& catalogue
);

// Where the operator wants no more than a word: {"event": "execution.warning", …}.
json::object unfit_warning(const workflow::MissingFile& unfit);

}  // namespace comfyd::admission
