// Kinds of GPUs and container groups as Salad's API has them. Internal to the provider `salad`.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/salad.hpp"

namespace comfyd::fleet {

// Of GET /gpu-classes, in the wish's own order, then the cheapest first. How many there are is
// asked apart.
std::vector<Offer> read_gpu_classes(
    const SaladOptions& options, const json::value& answer, const OfferWish& wish
);

// The body of POST /availability/sce-gpu-availability, and how many machines of our priority it
// tells of; -1: it does not.
json::object make_question(const SaladOptions& options, const Offer& offer);
int read_availability(const SaladOptions& options, const json::value& answer);

// The body of POST /containers. Code::invalid_argument.
Result<json::object> make_group(const SaladOptions& options, const MachineOrder& order);

// One of GET /containers. Nullopt: it has no name.
std::optional<Machine> read_group(const json::value& group);

// The body of POST /log-entries, for the latest lines; and those lines, the newest last.
json::object make_log_question(
    const SaladOptions& options, const std::string& group, int lines, Time now
);
std::string read_log_entries(const json::value& answer);

Code meaning_of_salad(const CloudRefusal& refusal);

}  // namespace comfyd::fleet
