// Why a job waits, as the API shows it.
#pragma once

#include "base/json.hpp"
#include "jobs/service.hpp"

namespace comfyd::api {

json::object encode_explanation(const jobs::Explained& explained);

}  // namespace comfyd::api
