// Noise schedules that need no model. The formulas are PyTorch's in float32; its vectorised
// exponentials may differ from these in the last bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/sampling/linspace.hpp"
#include "engine/nodes/sampling/sampling.hpp"

namespace comfyd::engine::nodes {
namespace {

std::size_t steps_of(const Call& call) {
    const std::size_t steps = call.size("steps");
    if (steps > kSigmasMax) {
        throw NodeFailure("MemoryError", "The schedule would have too many steps.");
    }
    return steps;
}

NodeResult given(std::vector<float> sigmas) {
    return NodeResult{.outputs = {as_value(std::move(sigmas))}};
}

NodeResult ending_in_zero(std::vector<float> sigmas) {
    sigmas.push_back(0.0F);
    return given(std::move(sigmas));
}

tl::unexpected<Error> no_logarithm() {
    return node_error("ValueError", "expected a positive input, got 0.0");
}

Result<NodeResult> execute_karras(Call& call) {
    const double rho = call.number("rho");
    if (rho == 0.0) {
        return node_error("ZeroDivisionError", "division by zero");
    }
    const double low = std::pow(call.number("sigma_min"), 1.0 / rho);
    const double high = std::pow(call.number("sigma_max"), 1.0 / rho);
    std::vector<float> sigmas = linspace(0.0F, 1.0F, steps_of(call));
    for (float& x : sigmas) {
        const float base = static_cast<float>(high) + x * static_cast<float>(low - high);
        x = std::pow(base, static_cast<float>(rho));
    }
    return ending_in_zero(std::move(sigmas));
}

Result<NodeResult> execute_exponential(Call& call) {
    if (call.number("sigma_min") <= 0.0 || call.number("sigma_max") <= 0.0) {
        return no_logarithm();
    }
    std::vector<float> sigmas = linspace(
        static_cast<float>(std::log(call.number("sigma_max"))),
        static_cast<float>(std::log(call.number("sigma_min"))),
        steps_of(call)
    );
    for (float& x : sigmas) {
        x = std::exp(x);
    }
    return ending_in_zero(std::move(sigmas));
}

Result<NodeResult> execute_polyexponential(Call& call) {
    if (call.number("sigma_min") <= 0.0 || call.number("sigma_max") <= 0.0) {
        return no_logarithm();
    }
    const double low = std::log(call.number("sigma_min"));
    const double high = std::log(call.number("sigma_max"));
    const auto rho = static_cast<float>(call.number("rho"));
    std::vector<float> sigmas = linspace(1.0F, 0.0F, steps_of(call));
    for (float& x : sigmas) {
        x = std::exp(std::pow(x, rho) * static_cast<float>(high - low) + static_cast<float>(low));
    }
    return ending_in_zero(std::move(sigmas));
}

Result<NodeResult> execute_laplace(Call& call) {
    const auto mu = static_cast<float>(call.number("mu"));
    const auto beta = static_cast<float>(call.number("beta"));
    const auto low = static_cast<float>(call.number("sigma_min"));
    const auto high = static_cast<float>(call.number("sigma_max"));
    std::vector<float> sigmas = linspace(0.0F, 1.0F, steps_of(call));
    for (float& x : sigmas) {
        const float away = 0.5F - x;
        const float sign = away > 0.0F ? 1.0F : away < 0.0F ? -1.0F : 0.0F;
        const float log = std::log(1.0F - 2.0F * std::abs(away) + 1e-5F);
        // The upper limit wins where the two are the wrong way round.
        x = std::min(std::max(std::exp(mu - beta * sign * log), low), high);
    }
    return given(std::move(sigmas));
}

Result<NodeResult> execute_vp(Call& call) {
    const auto beta_d = static_cast<float>(call.number("beta_d"));
    const auto beta_min = static_cast<float>(call.number("beta_min"));
    std::vector<float> sigmas =
        linspace(1.0F, static_cast<float>(call.number("eps_s")), steps_of(call));
    for (float& t : sigmas) {
        t = std::sqrt(std::expm1(beta_d * (t * t) / 2.0F + beta_min * t));
    }
    return ending_in_zero(std::move(sigmas));
}

using Levels = std::array<double, 11>;
constexpr std::pair<std::string_view, Levels> kLevels[] = {
    {"SD1",
     {14.6146412293,
      6.4745760956,
      3.8636745985,
      2.6946151520,
      1.8841921177,
      1.3943805092,
      0.9642583904,
      0.6523686016,
      0.3977456272,
      0.1515232662,
      0.0291671582}},
    {"SDXL",
     {14.6146412293,
      6.3184485287,
      3.7681790315,
      2.1811480769,
      1.3405244945,
      0.8620721141,
      0.5550693289,
      0.3798540708,
      0.2332364134,
      0.1114188177,
      0.0291671582}},
    {"SVD", {700.00, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034, 0.002}},
};

// `count` levels, evenly spaced between the logarithms of the given ones.
std::vector<double> interpolated(const Levels& levels, std::size_t count) {
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double place =
            count > 1 ? static_cast<double>(count - 1 - i) / static_cast<double>(count - 1) : 0.0;
        const double at = place * static_cast<double>(levels.size() - 1);
        const auto left = std::min(static_cast<std::size_t>(at), levels.size() - 2);
        const auto level = [&](std::size_t k) { return std::log(levels[levels.size() - 1 - k]); };
        const double part = at - static_cast<double>(left);
        out[i] = std::exp(level(left) + (level(left + 1) - level(left)) * part);
    }
    return out;
}

Result<NodeResult> execute_align(Call& call) {
    const std::size_t steps = steps_of(call);
    const double denoise = call.number("denoise");
    if (denoise <= 0.0) {
        return given({});
    }
    std::size_t kept = steps;
    if (denoise < 1.0) {
        kept = static_cast<std::size_t>(std::nearbyint(static_cast<double>(steps) * denoise));
    }
    const Levels& levels = chosen(kLevels, call.text("model_type"));
    std::vector<double> sigmas = steps + 1 == levels.size()
                                     ? std::vector<double>(levels.begin(), levels.end())
                                     : interpolated(levels, steps + 1);
    sigmas.erase(sigmas.begin(), sigmas.end() - static_cast<std::ptrdiff_t>(kept + 1));
    sigmas.back() = 0.0;
    std::vector<float> out;
    for (const double sigma : sigmas) {
        out.push_back(static_cast<float>(sigma));
    }
    return given(std::move(out));
}

}  // namespace

NodeClass karras_scheduler() {
    return {
        .name = "KarrasScheduler",
        .description = "The noise schedule of Karras and others.",
        .execute = &execute_karras
    };
}

NodeClass exponential_scheduler() {
    return {
        .name = "ExponentialScheduler",
        .description = "A noise schedule with a constant ratio from step to step.",
        .execute = &execute_exponential
    };
}

NodeClass polyexponential_scheduler() {
    return {
        .name = "PolyexponentialScheduler",
        .description = "A noise schedule that is a power of the step in its logarithm.",
        .execute = &execute_polyexponential
    };
}

NodeClass laplace_scheduler() {
    return {
        .name = "LaplaceScheduler",
        .description = "A noise schedule after the Laplace distribution.",
        .execute = &execute_laplace
    };
}

NodeClass vp_scheduler() {
    return {
        .name = "VPScheduler",
        .description = "A noise schedule that preserves the variance.",
        .execute = &execute_vp
    };
}

NodeClass align_your_steps_scheduler() {
    return {
        .name = "AlignYourStepsScheduler",
        .description = "Noise levels tuned for few steps of a family of models.",
        .execute = &execute_align
    };
}

}  // namespace comfyd::engine::nodes
