// What workers may fetch, as it is configured and registered.
#pragma once

#include "admission/models.hpp"
#include "app/config/config.hpp"
#include "models/known_files.hpp"
#include "models/register_book.hpp"
#include "workflow/catalogue/models.hpp"

namespace comfyd::app {

// Reads the operator's list. `book` and `files` outlive the rules. Code::config_invalid.
Result<admission::ModelRules> model_rules(
    const Config& config, const models::RegisterBook& book, const models::KnownFiles& files
);

// Of the files that are registered with their size; of others as `others` says.
workflow::ModelSizes registered_sizes(
    const models::RegisterBook& book, workflow::ModelSizes others
);

// By what agents have read in files.
workflow::ModelFiles read_files(const models::RegisterBook& book, const models::KnownFiles& files);

}  // namespace comfyd::app
