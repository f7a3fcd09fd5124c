// What an output is and in which other forms it can be had, shown alike in every dialect
// (docs/outputs.md). Pure; any thread.
#pragma once

#include <functional>

#include "api/submission.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

// Adds "media", "thumbnails" and "variants", each where there is something to say. `link` makes the
// download link of an asset.
void add_media(
    const jobs::Output& output,
    const std::function<Download(const AssetId&)>& link,
    json::object& into
);

// The schemas "OutputMedia", "OutputVariant" and "OutputConfig" of the OpenAPI document.
json::object media_schemas();

}  // namespace comfyd::api
