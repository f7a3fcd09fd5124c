// What POST /prompt checks before it queues a prompt, with the answers of the real server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace comfyd::support {

class Catalogue;
class Files;
struct Behaviour;

struct Verdict {
    std::optional<json::object>
        error;  // the body's "error" of a 400; absent when at least one output is good
    json::object node_errors;
    std::vector<std::string> outputs;  // the good ones, in the order of the graph
};

// REQUIRES: every member of `graph` is an object. `targets` are partial_execution_targets, or null.
Verdict validate(
    const json::object& graph,
    const json::array* targets,
    const Catalogue& catalogue,
    const Files& files,
    const Behaviour& behaviour
);

json::object make_prompt_error(
    std::string type, std::string message, std::string details, json::object extra = {}
);

}  // namespace comfyd::support
