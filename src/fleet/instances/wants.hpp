// Machines that waiting jobs ask for and that no worker is: which of a pool's offers may give such
// a one, and which first. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/requirement.hpp"
#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

// The part of an offer that such a machine may come from, the tightest GPU first; nullopt: none.
std::optional<OfferWish> narrowed(const OfferWish& offer, const MachineWish& machine);

// Whether what a provider offers is such a machine; what it does not tell may be as wanted.
bool is_wanted(const Offer& offer, const MachineWish& machine);

// The offers that may give such a machine: those that name the very GPU first, then those with the
// least memory to spare, then in their order.
std::vector<std::size_t> places_for(
    const std::vector<OfferWish>& offers, const MachineWish& machine
);

// Of those that a provider has, the best for it; nullptr: none. REQUIRES: the list outlives it.
const Offer* tightest(const std::vector<const Offer*>& offers, const MachineWish& machine);

}  // namespace comfyd::fleet
