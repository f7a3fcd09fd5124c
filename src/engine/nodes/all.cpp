#include "engine/nodes/all.hpp"

namespace comfyd::engine {

Registry make_registry() {
    Registry registry;
    registry.add(nodes::empty_image());
    registry.add(nodes::image_blend());
    registry.add(nodes::image_invert());
    registry.add(nodes::image_scale());
    registry.add(nodes::load_image());
    registry.add(nodes::preview_image());
    registry.add(nodes::save_image());
    return registry;
}

}  // namespace comfyd::engine
