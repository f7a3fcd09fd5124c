#include "engine/nodes/sampling/sampling.hpp"

#include <memory>

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

Value as_value(std::vector<float> sigmas) {
    return std::shared_ptr<const Object>(std::make_shared<const Sigmas>(std::move(sigmas)));
}

void add_sampling(Registry& registry) {
    registry.add(karras_scheduler());
    registry.add(exponential_scheduler());
    registry.add(polyexponential_scheduler());
    registry.add(laplace_scheduler());
    registry.add(vp_scheduler());
    registry.add(align_your_steps_scheduler());
    registry.add(manual_sigmas());
    registry.add(split_sigmas());
    registry.add(split_sigmas_denoise());
    registry.add(flip_sigmas());
    registry.add(set_first_sigma());
    registry.add(extend_intermediate_sigmas());
}

}  // namespace comfyd::engine::nodes
