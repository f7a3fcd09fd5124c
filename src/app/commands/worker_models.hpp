// What `comfyd worker` is told of models by its environment.
#pragma once

#include "agent/models.hpp"
#include "base/error.hpp"

namespace comfyd::app {

// COMFYD_MODELS, a list or the path of a file with one, and the variables beside it
// (docs/models.md). Code::config_invalid names the variable that is wrong; tokens are in no
// message.
Result<agent::ModelsOptions> read_models_environment();

}  // namespace comfyd::app
