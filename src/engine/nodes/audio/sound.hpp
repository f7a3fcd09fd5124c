// ComfyUI's AUDIO: float32 [batch, channels, samples] and how many samples make a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

class Call;

namespace nodes {

inline constexpr int kSampleRateMax = 384'000;
inline constexpr std::size_t kChannelsMax = 64;

// The samples lie in a mask's memory, a row for each channel.
class Sound : public Object {
public:
    Sound(Mask samples, int rate) : samples_(std::move(samples)), rate_(rate) {}
    std::string_view type() const override { return "AUDIO"; }

    std::size_t batch() const { return samples_.shape().batch; }
    std::size_t channels() const { return samples_.shape().height; }
    std::size_t length() const { return samples_.shape().width; }
    int rate() const { return rate_; }
    const float* channel(std::size_t item, std::size_t index) const {
        return samples_.row(item * channels() + index);
    }

private:
    Mask samples_;
    int rate_;
};

// A sound that is still being written: rows are channels, counted through the batch.
using NewSound = NewMask;
Result<NewSound> new_sound(
    const Call& call, std::size_t batch, std::size_t channels, std::size_t length
);
Value finish(NewSound sound, int rate);

// With windowed sinc functions, as torchaudio does it by default.
Result<std::shared_ptr<const Sound>> resampled(const Call& call, const Sound& sound, int rate);

}  // namespace nodes
}  // namespace comfyd::engine
