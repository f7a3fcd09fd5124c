// Judges a prompt as ComfyUI's POST /prompt does: the same error types and texts, literals coerced
// in place, and partial acceptance when only some outputs are good. Any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/engine.hpp"
#include "engine/registry.hpp"

namespace comfyd::engine {

inline constexpr std::size_t kNodesMax = 10'000;
// Of links from an output down to its farthest ancestor. ComfyUI's own limit is Python's recursion
// limit.
inline constexpr std::size_t kChainMax = 1'000;

Validation validate_prompt(json::object& prompt, const Registry& registry, const Folders& folders);

// The place of a linked slot, with Python's indexing: -1 is the last one, true is 1. nullopt: not a
// slot.
std::optional<std::size_t> slot_index(const json::value& slot, std::size_t count);

}  // namespace comfyd::engine
