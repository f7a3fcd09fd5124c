// /v2/models: the register of models, which everybody may read and operators change.
#pragma once

#include "api/router.hpp"
#include "base/time.hpp"
#include "models/register_book.hpp"

namespace comfyd::api {

// Owned by the application; outlives the server.
struct ModelServices {
    models::RegisterBook& book;
    Clock& clock;
};

void add_models(Router& router, const ModelServices& services);

json::object model_schemas();

}  // namespace comfyd::api
