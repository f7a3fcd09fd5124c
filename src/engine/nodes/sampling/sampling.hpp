// SIGMAS values (how much noise each step of a sampler works on) and the node classes about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

class Sigmas : public Object {
public:
    explicit Sigmas(std::vector<float> of) : values(std::move(of)) {}
    std::string_view type() const override { return "SIGMAS"; }
    std::uint64_t bytes() const override { return values.size() * sizeof values[0]; }

    std::vector<float> values;
};

Value as_value(std::vector<float> sigmas);

// Of a schedule; more are a MemoryError.
inline constexpr std::size_t kSigmasMax = 1'000'000;

NodeClass karras_scheduler();
NodeClass exponential_scheduler();
NodeClass polyexponential_scheduler();
NodeClass laplace_scheduler();
NodeClass vp_scheduler();
NodeClass align_your_steps_scheduler();
NodeClass manual_sigmas();
NodeClass split_sigmas();
NodeClass split_sigmas_denoise();
NodeClass flip_sigmas();
NodeClass set_first_sigma();
NodeClass extend_intermediate_sigmas();

}  // namespace comfyd::engine::nodes
