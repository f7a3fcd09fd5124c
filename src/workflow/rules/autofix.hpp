// Puts right what is plainly a slip and cannot change what the picture is meant to be: a sampler
// written wrong, a number beyond its limits, a number written as text, a required input that has a
// default. Never another model, another file or another node. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::workflow {

struct Fix {
    std::string_view code{};  // of the finding that it answers: "VALUE_OUT_OF_RANGE"
    std::string message{};
    std::string node_id{};
    std::string class_type{};
    std::string input{};
    json::value from{};  // null: it was not there
    json::value to{};

    // {"event": "execution.warning", …}
    json::object to_json() const;
};

struct Fixed {
    Validation validation;  // of the workflow as it is now
    std::vector<Fix> fixes;
};

// Changes `workflow` where that is safe, and validates what comes of it.
Fixed validate_and_fix(
    json::object& workflow, const Catalogue& catalogue, const ValidationOptions& options = {}
);

}  // namespace comfyd::workflow
