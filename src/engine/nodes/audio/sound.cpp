#include "engine/nodes/audio/sound.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "engine/nodes/call.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr double kRolloff = 0.99;
constexpr double kFilterWidth = 6.0;

// How much the input sample `distance` (in filter units) away counts.
double weight(double distance) {
    if (std::abs(distance) >= kFilterWidth) {
        return 0.0;
    }
    const double window = std::cos(distance * std::numbers::pi / kFilterWidth / 2);
    const double angle = distance * std::numbers::pi;
    return (angle == 0.0 ? 1.0 : std::sin(angle) / angle) * window * window;
}

// Leaves off when the run was stopped.
void resample_channel(
    const Call& call,
    const float* from,
    std::size_t length,
    double ratio,
    double base,
    float* into,
    std::size_t count
) {
    const double reach = kFilterWidth / base;
    for (std::size_t n = 0; n < count && !call.stopped(); ++n) {
        const double at = static_cast<double>(n) * ratio;
        const double first = std::max(0.0, std::ceil(at - reach));
        const double last = std::min(static_cast<double>(length) - 1, std::floor(at + reach));
        double sum = 0.0;
        for (double k = first; k <= last; ++k) {
            sum += static_cast<double>(from[static_cast<std::size_t>(k)]) * weight((k - at) * base);
        }
        into[n] = static_cast<float>(sum * base);
    }
}

}  // namespace

Result<NewSound> new_sound(
    const Call& call, std::size_t batch, std::size_t channels, std::size_t length
) {
    return call.new_mask(batch, channels, length);
}

Value finish(NewSound sound, int rate) {
    std::shared_ptr<const Object> object =
        std::make_shared<const Sound>(std::move(sound).finish(), rate);
    return object;
}

Result<std::shared_ptr<const Sound>> resampled(const Call& call, const Sound& sound, int rate) {
    const std::int64_t common = std::gcd(sound.rate(), rate);
    const std::uint64_t from = static_cast<std::uint64_t>(sound.rate() / common);
    const std::uint64_t to = static_cast<std::uint64_t>(rate / common);
    const std::size_t length = (sound.length() * to + from - 1) / from;
    auto samples = new_sound(call, sound.batch(), sound.channels(), length);
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double base = std::min(1.0, 1.0 / ratio) * kRolloff;
    auto done = call.for_each(sound.batch() * sound.channels(), [&](std::size_t row) -> Result<> {
        resample_channel(
            call,
            sound.channel(0, 0) + row * sound.length(),
            sound.length(),
            ratio,
            base,
            samples->row(row),
            length
        );
        return call.check_stopped();
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::make_shared<const Sound>(std::move(*samples).finish(), rate);
}

}  // namespace comfyd::engine::nodes
