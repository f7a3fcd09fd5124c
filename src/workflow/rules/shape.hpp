// What the judgement of a workflow depends on, and what it needs: everything but the values that
// any other of their kind may stand for. Clients send the same workflow again and again with other
// texts and seeds. Pure; any thread.
#pragma once

#include <string>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {

// Of two workflows with the same shape, by the same catalogue, find_faults() without missing files
// finds something in both or in neither, and so do find_security_issues() by the same policy,
// find_file_uses(), find_nameless() and find_file_sources(). What they need of a worker is the
// same, and so is all of their plans but `fingerprint`.
std::string shape_of(const json::object& workflow, const Catalogue& catalogue);

}  // namespace comfyd::workflow
