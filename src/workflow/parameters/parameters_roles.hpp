// Who does what in a workflow: finds the samplers and, from them along the links, the inputs that
// people mean by "prompt", "seed" or "width". Knows KSampler and KSamplerAdvanced, SamplerCustom
// and SamplerCustomAdvanced with their guider, noise and scheduler nodes, and classes that have the
// same inputs. Pure; any thread; no recursion along links.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "workflow/graph/graph.hpp"

namespace comfyd::workflow {

enum class Role {
    prompt,
    negative_prompt,
    seed,
    steps,
    cfg,
    denoise,
    sampler,
    scheduler,
    width,
    height,
    batch_size,
    image,
    checkpoint,
    lora,
};
inline constexpr std::array kRoles{
    Role::prompt,
    Role::negative_prompt,
    Role::seed,
    Role::steps,
    Role::cfg,
    Role::denoise,
    Role::sampler,
    Role::scheduler,
    Role::width,
    Role::height,
    Role::batch_size,
    Role::image,
    Role::checkpoint,
    Role::lora,
};
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view name);

// An input of a node that holds a value of its own.
struct InputPlace {
    Graph::Position node;
    std::string_view input;  // of the workflow that the graph was made of, or of program text

    bool operator==(const InputPlace&) const = default;
};

bool is_sampler(const Graph& graph, Graph::Position node);
std::vector<Graph::Position> find_samplers(const Graph& graph);

// For one sampler; empty: it has none. Several where one value stands in several inputs, such as
// the two texts of an SDXL encoder.
std::vector<InputPlace> find_places(const Graph& graph, Graph::Position sampler, Role role);

// For the whole workflow: those of the samplers that begin with no other sampler's latents, before
// those of all. Each once.
std::vector<InputPlace> find_places(const Graph& graph, Role role);

// The value at a place; nullptr: it is not there.
const json::value* value_at(const Graph& graph, const InputPlace& place);

}  // namespace comfyd::workflow
