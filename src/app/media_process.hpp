#pragma once

#include "app/config/config.hpp"
#include "media/exporter.hpp"
#include "media/helpers.hpp"

namespace comfyd::app {

// The processes that look into the outputs of jobs: this program again, as `comfyd media`.
media::HelpersOptions media_helpers(const Config& config);

// How outputs go to the buckets of requests.
media::ExportOptions export_options(const Config& config);

}  // namespace comfyd::app
