// Noise schedules typed in, split, turned round and refined.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/sampling/linspace.hpp"
#include "engine/nodes/sampling/sampling.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

using Values = std::vector<float>;

Values part(const Values& all, std::size_t first, std::size_t last) {
    first = std::min(first, all.size());
    last = std::clamp(last, first, all.size());
    return {
        all.begin() + static_cast<std::ptrdiff_t>(first),
        all.begin() + static_cast<std::ptrdiff_t>(last)
    };
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The numbers in a text, as ComfyUI finds them: a sign, digits, points, digits.
Result<NodeResult> execute_manual(Call& call) {
    const std::string& text = call.text("sigmas");
    Values sigmas;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + (text[at] == '-' || text[at] == '+' ? 1 : 0);
        const auto skip = [&](auto wanted) {
            const std::size_t from = end;
            while (end < text.size() && wanted(text[end])) {
                ++end;
            }
            return end - from;
        };
        const bool whole = skip(is_digit) > 0;
        const std::size_t before_points = end;
        const std::size_t points = skip([](char c) { return c == '.'; });
        const bool fraction = skip(is_digit) > 0;
        if (!whole && !fraction) {
            ++at;
            continue;
        }
        end = fraction ? end : before_points;
        const std::string number = text.substr(at, end - at);
        if (fraction && points > 1) {
            return node_error("ValueError", "could not convert string to float: '" + number + "'");
        }
        sigmas.push_back(static_cast<float>(std::strtod(number.c_str(), nullptr)));
        at = end;
    }
    return NodeResult{.outputs = {as_value(std::move(sigmas))}};
}

Result<NodeResult> execute_split(Call& call) {
    const Values& all = call.object<Sigmas>("sigmas").values;
    const std::size_t step = call.size("step");
    return NodeResult{
        .outputs = {as_value(part(all, 0, step + 1)), as_value(part(all, step, all.size()))}
    };
}

Result<NodeResult> execute_split_denoise(Call& call) {
    const Values& all = call.object<Sigmas>("sigmas").values;
    const std::size_t steps = all.empty() ? 0 : all.size() - 1;
    const auto kept = static_cast<std::size_t>(
        std::max<std::int64_t>(0, python_round(static_cast<double>(steps) * call.number("denoise")))
    );
    // In Python [:-0] is nothing.
    const std::size_t high = kept == 0 ? 0 : all.size() - std::min(kept, all.size());
    const std::size_t low = all.size() - std::min(kept + 1, all.size());
    return NodeResult{
        .outputs = {as_value(part(all, 0, high)), as_value(part(all, low, all.size()))}
    };
}

Result<NodeResult> execute_flip(Call& call) {
    Values sigmas = call.object<Sigmas>("sigmas").values;
    std::ranges::reverse(sigmas);
    if (!sigmas.empty() && sigmas[0] == 0.0F) {
        sigmas[0] = 0.0001F;
    }
    return NodeResult{.outputs = {as_value(std::move(sigmas))}};
}

Result<NodeResult> execute_set_first(Call& call) {
    Values sigmas = call.object<Sigmas>("sigmas").values;
    if (sigmas.empty()) {
        return node_error("IndexError", "index 0 is out of bounds for dimension 0 with size 0");
    }
    sigmas[0] = static_cast<float>(call.number("sigma"));
    return NodeResult{.outputs = {as_value(std::move(sigmas))}};
}

float spaced(float x, const std::string& spacing) {
    const float angle = x * static_cast<float>(std::numbers::pi) / 2.0F;
    return spacing == "cosine" ? std::sin(angle) : spacing == "sine" ? 1.0F - std::cos(angle) : x;
}

Result<NodeResult> execute_extend(Call& call) {
    const Values& all = call.object<Sigmas>("sigmas").values;
    const std::size_t steps = std::max<std::size_t>(1, call.size("steps"));
    if (steps > kSigmasMax || all.size() > kSigmasMax / steps) {
        return node_error("MemoryError", "The schedule would have too many steps.");
    }
    double start = call.number("start_at_sigma");
    start = start < 0 ? std::numeric_limits<double>::infinity() : start;
    const double end = call.number("end_at_sigma");
    const Values between = linspace(0.0F, 1.0F, steps + 1);
    Values sigmas;
    for (std::size_t i = 0; i < all.size(); ++i) {
        sigmas.push_back(all[i]);
        if (i + 1 == all.size() || static_cast<float>(end) > all[i] ||
            all[i] > static_cast<float>(start)) {
            continue;
        }
        for (std::size_t k = 1; k < steps; ++k) {
            const float along = spaced(between[k], call.text("spacing"));
            sigmas.push_back(along * (all[i + 1] - all[i]) + all[i]);
        }
    }
    return NodeResult{.outputs = {as_value(std::move(sigmas))}};
}

}  // namespace

NodeClass manual_sigmas() {
    return {
        .name = "ManualSigmas",
        .description = "A noise schedule from the numbers in a text.",
        .execute = &execute_manual
    };
}

NodeClass split_sigmas() {
    return {
        .name = "SplitSigmas",
        .description = "Splits a noise schedule at a step.",
        .execute = &execute_split
    };
}

NodeClass split_sigmas_denoise() {
    return {
        .name = "SplitSigmasDenoise",
        .description = "Splits a noise schedule so that a part of its steps is left.",
        .execute = &execute_split_denoise
    };
}

NodeClass flip_sigmas() {
    return {
        .name = "FlipSigmas",
        .description = "Turns a noise schedule round, from little noise to much.",
        .execute = &execute_flip
    };
}

NodeClass set_first_sigma() {
    return {
        .name = "SetFirstSigma",
        .description = "Replaces the first level of a noise schedule.",
        .execute = &execute_set_first
    };
}

NodeClass extend_intermediate_sigmas() {
    return {
        .name = "ExtendIntermediateSigmas",
        .description = "Adds levels between those of a noise schedule.",
        .execute = &execute_extend
    };
}

}  // namespace comfyd::engine::nodes
