// What a worker tells of its classes besides /object_info. Pure; any thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

struct ClassNotes {
    // The worker has the node pack comfyd, which tells what follows; else it is not known.
    bool told = false;
    // By class: which of their inputs classes check themselves. How they do it only the worker
    // knows, so none has a function.
    std::map<std::string, OwnCheck, std::less<>> own_checks{};
    // Classes that say themselves when their results are not good any more (IS_CHANGED).
    std::set<std::string, std::less<>> changing{};

    json::object replacements{};  // as GET /node_replacements, which needs no pack

    // `answer`: of the pack's GET /comfyd/classes; what is not as it should be is left out.
    void read(const json::object& answer);
};

}  // namespace comfyd::workflow
