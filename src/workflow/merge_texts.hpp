// Whether the texts of several jobs are encoded to the same length. CLIP fills every text up to
// blocks of 77 tokens, and repeating blocks changes nothing where pictures attend to texts; T5,
// whose tokens take part in the attention themselves, fills up only short texts. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "workflow/graph.hpp"

namespace comfyd::workflow {

// False for a loader of text encoders that give every text another length.
bool fills_texts_up(const Graph::Node& loader);

// How many bytes a text may have so that its length in tokens is surely the least one; nullopt: the
// workflow does not name T5.
std::optional<std::size_t> text_bytes_max(const Graph& graph);

// The id of a text encoder that `conditioning` needs and whose text is longer; empty: none.
std::string find_long_text(const Graph& graph, Graph::Position conditioning, std::size_t bytes_max);

}  // namespace comfyd::workflow
