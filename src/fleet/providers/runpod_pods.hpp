// Pods and the catalogue of GPUs as RunPod's API has them. Internal to the provider `runpod`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/runpod.hpp"

namespace comfyd::fleet {

// The offers of GET /catalog/gpus for one cloud, those without stock too; unordered.
struct RankedOffer {
    Offer offer;
    std::size_t place = 0;  // of its GPU among those wished for
    int stock = 0;          // the more the better; 0: none
};
std::vector<RankedOffer> read_catalog(
    const json::value& catalog, const OfferWish& wish, const std::string& cloud
);
// The best first: stock, then the wish's own order, then the price.
std::vector<Offer> rank(std::vector<RankedOffer> offers);

// The body of POST /pods. Code::invalid_argument.
Result<json::object> make_pod(const RunPodOptions& options, const MachineOrder& order);

// One of GET /pods. Nullopt: it has no id.
std::optional<Machine> read_pod(const RunPodOptions& options, const json::value& pod);

// What RunPod means by refusing a create. A 400 is a broken rule or no capacity, which only its
// text tells apart: Code::out_of_stock, so that the next offer is tried.
Code meaning_of_create(const CloudRefusal& refusal);
bool speaks_of_capacity(std::string_view words);

// The lines of a log's events.
std::string read_log_events(std::string_view stream);

}  // namespace comfyd::fleet
