// Has an agent fetch model files, and waits until it has them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "comfy/client.hpp"
#include "fleet/options.hpp"
#include "jobs/model_holder.hpp"

namespace comfyd::fleet {

// `wishes` and failures are as in jobs::ModelHolder::fetch_models(). `client`, on whose executor
// this is awaited, outlives it; so does whom `told` tells.
Task<Result<>> bring_models(
    comfy::Client& client,
    std::vector<json::object> wishes,
    LinkOf link_of,
    std::function<void(jobs::ModelHolder::Fetched)> told
);

// 0: it is not there, or none.
std::uint64_t number_of(const json::object& from, std::string_view key);

}  // namespace comfyd::fleet
