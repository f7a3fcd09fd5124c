// What the faults of a workflow depend on: everything but the values that any other of their kind
// may stand for. Clients send the same workflow again and again with other texts and seeds. Pure;
// any thread.
#pragma once

#include <string>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {

// Of two workflows with the same shape, by the same catalogue, find_faults() without missing files
// finds something in both or in neither.
std::string shape_of(const json::object& workflow, const Catalogue& catalogue);

}  // namespace comfyd::workflow
