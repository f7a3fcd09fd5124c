// Every node class that the engine runs, by family: a folder each. A node is one function that
// returns its NodeClass; adding one means a file in its family's folder, a line in the family's
// list and its description in schema.json.
#pragma once

#include "engine/nodes/registry.hpp"

namespace comfyd::engine {

Registry make_registry();

namespace nodes {

void add_image(Registry& registry);     // pictures in, pictures out
void add_mask(Registry& registry);      // masks, and pictures by masks
void add_layers(Registry& registry);    // layered pictures, boxes and texts drawn on pictures
void add_files(Registry& registry);     // loading, saving, previewing
void add_text(Registry& registry);      // strings, regular expressions, JSON
void add_values(Registry& registry);    // numbers, logic, lists, primitives
void add_dataset(Registry& registry);   // lists of pictures and texts for training
void add_latent(Registry& registry);    // latents
void add_sampling(Registry& registry);  // sigmas, samplers and noise as values
void add_audio(Registry& registry);
void add_video(Registry& registry);

}  // namespace nodes
}  // namespace comfyd::engine
