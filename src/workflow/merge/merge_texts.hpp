// Whether the texts of several jobs are encoded to the same length. CLIP fills every text up to
// blocks of 77 tokens, and repeating blocks changes nothing where pictures attend to texts; SD3 and
// Flux, whose tokens take part in the attention themselves, fill up only short texts. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/graph/graph.hpp"

namespace comfyd::workflow {

// False for a loader of text encoders that give every text another length.
bool fills_texts_up(const Graph::Node& loader);

// How many tokens a text may have so that it is filled up to the usual length.
struct TextLimit {
    std::size_t tokens;
    bool counts_clip;  // CLIP's tokens matter, not only those of T5
};
// nullopt: the length of texts does not matter, or the workflow does not name what encodes them.
std::optional<TextLimit> text_limit(const Graph& graph);

// Judged without the encoder's vocabulary: false only where the text surely, or very nearly so, is
// not longer.
bool may_be_longer(std::string_view text, const TextLimit& limit);

// The id of a text encoder that `conditioning` needs and whose text may be longer; empty: none.
std::string find_long_text(
    const Graph& graph, Graph::Position conditioning, const TextLimit& limit
);

// A text that is not filled up to the usual length.
struct UnusualText {
    std::string what;  // the same for texts that get the same length in nodes of the same shape
    Graph::Position at;
};
// Sorted by what. `needed` and `shapes` by position; see Shapes.
std::vector<UnusualText> find_unusual_texts(
    const Graph& graph, const std::vector<bool>& needed, const std::vector<std::size_t>& shapes
);

}  // namespace comfyd::workflow
