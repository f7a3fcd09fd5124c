// Sets inputs of a workflow by names that people use. A name is, in this order:
//   "node.input", where node is an id, a title, or a class that one node alone has: "6.text";
//   a parameter that the workflow declares (see declared_parameters());
//   the title of one node that has one value to set;
//   a word such as "prompt", "seed" or "width", found along the links from the sampler
//   (parameters_roles.hpp).
// Pure but for the seed that "random" asks for; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kParametersMax = 1'000;

struct BoundInput {
    std::string parameter;
    std::string node_id;
    std::string input;
    json::value value;    // as it was set
    bool chosen = false;  // here, because "random" was asked for
};

struct Bound {
    std::vector<BoundInput> inputs;

    // Names and values of those that were chosen, to be kept with the job; empty: none.
    json::object chosen() const;
    // Makes the chosen values "random" again, so that equal requests are equal.
    void forget_chosen(json::object& workflow) const;
};

struct BindOptions {
    // name -> "node.input", ["node.input", …], {"target": either of them, "default"?} or
    // {"node", "input", "default"?}.
    const json::object* declared = nullptr;
    // Below 2^53, so that every client can read it; for tests. Empty: from the system.
    std::function<std::uint64_t()> random{};
};

// {"6.text": "a cat", "seed": "random"}. All or nothing: after Code::invalid_argument, which lists
// the names that exist, the workflow is as it was. Defaults of declared parameters that are not
// given are set too.
Result<Bound> bind_parameters(
    json::object& workflow, const json::object& parameters, const BindOptions& options = {}
);
// One value given as text, for command lines: JSON when it parses as such, else a string.
Result<Bound> bind_parameter(
    json::object& workflow,
    std::string_view name,
    std::string_view value_text,
    const BindOptions& options = {}
);

// The "parameters" beside a wrapped workflow: {"prompt": {…}, "parameters": {…}}. nullptr: none.
const json::object* declared_parameters(const json::object& document);

}  // namespace comfyd::workflow
