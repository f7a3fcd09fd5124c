#include "engine/nodes/all.hpp"

namespace comfyd::engine {

Registry make_registry() {
    Registry registry;
    nodes::add_image(registry);
    nodes::add_audio(registry);
    nodes::add_files(registry);
    nodes::add_layers(registry);
    nodes::add_mask(registry);
    nodes::add_text(registry);
    nodes::add_values(registry);
    nodes::add_dataset(registry);
    nodes::add_latent(registry);
    nodes::add_sampling(registry);
    return registry;
}

}  // namespace comfyd::engine
