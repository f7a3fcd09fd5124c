// Judges a prompt by ComfyUI's rules over the classes of one engine: with its files of the moment
// and the classes' own checks. Any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/nodes/registry.hpp"

namespace comfyd::engine {

// `targets` as in Engine::validate().
Validation validate_prompt(
    json::object& prompt,
    const Registry& registry,
    const Folders& folders,
    const std::vector<std::string>* targets = nullptr
);

}  // namespace comfyd::engine
