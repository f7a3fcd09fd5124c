// /v2/models: the register of models, which everybody may read and operators change; and
// /v2/model-contents: files of models that operators upload, for agents.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/router.hpp"
#include "base/time.hpp"
#include "models/register_book.hpp"
#include "models/uploads.hpp"

namespace comfyd::api {

// Owned by the application; outlives the server.
struct ModelServices {
    models::RegisterBook& book;
    Clock& clock;
    models::Uploads& uploads;
    // Whether such a source can be had here.
    std::function<Result<>(const std::string& source)> check_source;
    std::function<bool(std::string_view sha256, std::string_view until, std::string_view ticket)>
        is_good_ticket;
};

void add_models(Router& router, const ModelServices& services);
void add_model_contents(Router& router, const ModelServices& services);

// Where agents with a ticket have an uploaded file from.
std::string model_content_path(const std::string& sha256);

json::object model_schemas();

}  // namespace comfyd::api
