// Instances and products as Novita's API has them. Internal to the provider `novita`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/novita.hpp"

namespace comfyd::fleet {

// Of GET /products, the best first: stock, then the wish's own order, then the price. An offer's id
// is the product's.
std::vector<Offer> read_products(const json::value& products, const OfferWish& wish);

// The body of POST /instances. Code::invalid_argument.
Result<json::object> make_instance(const NovitaOptions& options, const MachineOrder& order);

// One of GET /instances. Nullopt: it has no id. `now`: for a spot instance that is being taken back
// without a word of when.
std::optional<Machine> read_instance(
    const NovitaOptions& options, const json::value& instance, Time now
);

// "US-CA-06 (California)" -> "us-ca-6", as the names of hosts have it.
std::string region_in_hosts(std::string_view region);

// What one of the four forms of an error says: {"message"}, {"code","reason","message"},
// {"error":"…"} and {"error":{"message"}}.
std::string words_of_novita(const json::object& body);
Code meaning_of_novita(const CloudRefusal& refusal);

}  // namespace comfyd::fleet
