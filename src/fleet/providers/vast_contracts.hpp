// Offers and contracts (rented machines) as Vast's API has them. Internal to the provider `vast`.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/vast.hpp"

namespace comfyd::fleet {

// The body of POST /bundles/: the cheapest offers of one kind of GPU; empty: of any.
json::object make_search(
    const VastOptions& options, const OfferWish& wish, const std::string& kind
);
// What it answers, the cheapest first. An offer's id is that of Vast's, and for a spot machine the
// bid: "123", "123@0.25".
std::vector<Offer> read_offers(
    const VastOptions& options,
    const json::value& answer,
    const OfferWish& wish,
    const std::string& kind
);

// An order taken apart.
struct VastOrder {
    std::string ask;  // the offer's id
    json::object body{};
};
// For PUT /asks/{ask}/. Code::invalid_argument.
Result<VastOrder> make_contract(const VastOptions& options, const MachineOrder& order);

// One of GET /instances/. Nullopt: it has no id. `now`: for a spot machine that was outbid, of
// which nothing is told before.
std::optional<Machine> read_contract(
    const VastOptions& options, const json::value& contract, Time now
);

// The contract that an answer names. Empty: none. A refusal may name one, too, which then is there
// and costs.
std::string contract_in(const json::value& answer);

std::string words_of_vast(const json::object& body);
Code meaning_of_vast(const CloudRefusal& refusal);

}  // namespace comfyd::fleet
