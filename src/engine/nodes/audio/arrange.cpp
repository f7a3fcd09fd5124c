// Silence, cutting, channels, joining, mixing and volume.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/nodes/audio/audio.hpp"
#include "engine/nodes/audio/sound.hpp"
#include "engine/nodes/call.hpp"

namespace comfyd::engine::nodes {
namespace {

// More than a day at the highest rate; memory is limited besides.
constexpr double kSamplesMax = 4e10;

using Shared = std::shared_ptr<const Sound>;

// Python's int(round(seconds * rate)).
double samples_in(double seconds, int rate) {
    return std::clamp(
        std::nearbyint(seconds * static_cast<double>(rate)), -kSamplesMax, kSamplesMax
    );
}

Shared shared(const Sound& sound) {
    return {std::shared_ptr<const Sound>(), &sound};
}

struct Pair {
    Shared first;
    Shared second;
    int rate;
};

// Both at the higher of the two rates.
Result<Pair> matched(const Call& call, const Sound& first, const Sound& second) {
    Pair pair{shared(first), shared(second), std::max(first.rate(), second.rate())};
    for (Shared* sound : {&pair.first, &pair.second}) {
        if ((*sound)->rate() != pair.rate) {
            auto other = resampled(call, **sound, pair.rate);
            if (!other) {
                return fail(std::move(other.error()));
            }
            *sound = std::move(*other);
        }
    }
    return pair;
}

Result<NodeResult> execute_empty(Call& call) {
    const std::size_t given = call.size("sample_rate");
    const std::size_t channels = call.size("channels");
    if (given < 1 || given > std::size_t{kSampleRateMax} || channels < 1 ||
        channels > kChannelsMax) {
        return node_error(
            "ValueError",
            "A sound has 1 to " + std::to_string(kSampleRateMax) + " samples a second and 1 to " +
                std::to_string(kChannelsMax) + " channels"
        );
    }
    const auto rate = static_cast<int>(given);
    const double length = std::max(0.0, samples_in(call.number("duration"), rate));
    auto silence = new_sound(call, 1, channels, static_cast<std::size_t>(length));
    if (!silence) {
        return fail(std::move(silence.error()));
    }
    std::fill_n(silence->data(), channels * static_cast<std::size_t>(length), 0.0F);
    return NodeResult{.outputs = {finish(std::move(*silence), rate)}};
}

// Some channels and samples of a sound.
struct Cut {
    std::size_t channel = 0;
    std::size_t channels = 0;
    std::size_t first = 0;
    std::size_t length = 0;
};
Result<Value> cut_out(const Call& call, const Sound& sound, const Cut& cut) {
    auto part = new_sound(call, sound.batch(), cut.channels, cut.length);
    if (!part) {
        return fail(std::move(part.error()));
    }
    for (std::size_t item = 0; item < sound.batch(); ++item) {
        for (std::size_t c = 0; c < cut.channels; ++c) {
            std::copy_n(
                sound.channel(item, cut.channel + c) + cut.first,
                cut.length,
                part->row(item * cut.channels + c)
            );
        }
    }
    return finish(std::move(*part), sound.rate());
}

Result<NodeResult> execute_trim(Call& call) {
    const auto& sound = call.object<Sound>("audio");
    const auto length = static_cast<double>(sound.length());
    const double start_index = call.number("start_index");
    double first = samples_in(start_index, sound.rate()) + (start_index < 0 ? length : 0.0);
    first = std::max(0.0, std::min(first, length - 1));
    const double last =
        std::clamp(first + samples_in(call.number("duration"), sound.rate()), 0.0, length);
    if (!(first < last)) {
        return node_error("ValueError", "The part to keep is empty: it starts at or after its end");
    }
    auto part = cut_out(
        call,
        sound,
        {0,
         sound.channels(),
         static_cast<std::size_t>(first),
         static_cast<std::size_t>(last - first)}
    );
    if (!part) {
        return fail(std::move(part.error()));
    }
    return NodeResult{.outputs = {std::move(*part)}};
}

Result<NodeResult> execute_split(Call& call) {
    const auto& sound = call.object<Sound>("audio");
    if (sound.channels() != 2) {
        return node_error("ValueError", "Only sound with two channels can be split");
    }
    auto left = cut_out(call, sound, {0, 1, 0, sound.length()});
    auto right = cut_out(call, sound, {1, 1, 0, sound.length()});
    if (!left || !right) {
        return fail(left ? right.error() : left.error());
    }
    return NodeResult{.outputs = {std::move(*left), std::move(*right)}};
}

Result<NodeResult> execute_join(Call& call) {
    const auto& left = call.object<Sound>("audio_left");
    const auto& right = call.object<Sound>("audio_right");
    if (left.channels() != 1 || right.channels() != 1 || left.batch() != right.batch()) {
        return node_error("ValueError", "Two sounds with one channel each make one with two");
    }
    const auto pair = matched(call, left, right);
    if (!pair) {
        return fail(pair.error());
    }
    const std::size_t length = std::min(pair->first->length(), pair->second->length());
    auto joined = new_sound(call, left.batch(), 2, length);
    if (!joined) {
        return fail(std::move(joined.error()));
    }
    for (std::size_t item = 0; item < left.batch(); ++item) {
        std::copy_n(pair->first->channel(item, 0), length, joined->row(item * 2));
        std::copy_n(pair->second->channel(item, 0), length, joined->row(item * 2 + 1));
    }
    return NodeResult{.outputs = {finish(std::move(*joined), pair->rate)}};
}

Result<NodeResult> execute_concat(Call& call) {
    const auto& one = call.object<Sound>("audio1");
    const auto& two = call.object<Sound>("audio2");
    auto pair = matched(call, one, two);
    if (!pair) {
        return fail(std::move(pair.error()));
    }
    if (call.text("direction") == "before") {
        std::swap(pair->first, pair->second);
    }
    // One channel counts as two equal ones.
    const auto channels_of = [](const Sound& sound) {
        return std::max<std::size_t>(2, sound.channels());
    };
    const std::size_t channels = channels_of(*pair->first);
    if (channels != channels_of(*pair->second) || one.batch() != two.batch()) {
        return node_error(
            "RuntimeError", "Sounds can be put together when their batches and channels are alike"
        );
    }
    const std::size_t split = pair->first->length();
    auto whole = new_sound(call, one.batch(), channels, split + pair->second->length());
    if (!whole) {
        return fail(std::move(whole.error()));
    }
    const auto copy = [&](const Sound& from, std::size_t item, std::size_t c, std::size_t at) {
        const std::size_t source = from.channels() == 1 ? 0 : c;
        std::copy_n(
            from.channel(item, source), from.length(), whole->row(item * channels + c) + at
        );
    };
    for (std::size_t item = 0; item < one.batch(); ++item) {
        for (std::size_t c = 0; c < channels; ++c) {
            copy(*pair->first, item, c, 0);
            copy(*pair->second, item, c, split);
        }
    }
    return NodeResult{.outputs = {finish(std::move(*whole), pair->rate)}};
}

float mixed(const std::string& method, float a, float b) {
    if (method == "subtract") {
        return a - b;
    }
    if (method == "multiply") {
        return a * b;
    }
    return method == "mean" ? (a + b) / 2.0F : a + b;
}

Result<NodeResult> execute_merge(Call& call) {
    const auto pair = matched(call, call.object<Sound>("audio1"), call.object<Sound>("audio2"));
    if (!pair) {
        return fail(pair.error());
    }
    const Sound& one = *pair->first;
    const Sound& two = *pair->second;
    const std::size_t batch = std::max(one.batch(), two.batch());
    const std::size_t channels = std::max(one.channels(), two.channels());
    const auto fits = [](std::size_t size, std::size_t all) { return size == all || size == 1; };
    if (!fits(one.batch(), batch) || !fits(two.batch(), batch) || !fits(one.channels(), channels) ||
        !fits(two.channels(), channels)) {
        return node_error("RuntimeError", "The sounds have batches or channels that do not fit");
    }
    auto merged = new_sound(call, batch, channels, one.length());
    if (!merged) {
        return fail(std::move(merged.error()));
    }
    const std::string& method = call.text("merge_method");
    float peak = 0.0F;
    for (std::size_t row = 0; row < batch * channels; ++row) {
        const std::size_t item = row / channels;
        const std::size_t c = row % channels;
        const float* a =
            one.channel(std::min(item, one.batch() - 1), std::min(c, one.channels() - 1));
        const float* b =
            two.channel(std::min(item, two.batch() - 1), std::min(c, two.channels() - 1));
        float* into = merged->row(row);
        for (std::size_t i = 0; i < one.length(); ++i) {
            into[i] = mixed(method, a[i], i < two.length() ? b[i] : 0.0F);
            peak = std::max(peak, std::abs(into[i]));
        }
    }
    for (std::size_t i = 0; peak > 1.0F && i < batch * channels * one.length(); ++i) {
        merged->data()[i] /= peak;
    }
    return NodeResult{.outputs = {finish(std::move(*merged), pair->rate)}};
}

Result<NodeResult> execute_volume(Call& call) {
    const auto& sound = call.object<Sound>("audio");
    const std::int64_t volume = call.place("volume");
    if (volume == 0) {
        return NodeResult{.outputs = {call.value("audio")}};
    }
    const auto gain = static_cast<float>(std::pow(10.0, static_cast<double>(volume) / 20.0));
    auto louder = new_sound(call, sound.batch(), sound.channels(), sound.length());
    if (!louder) {
        return fail(std::move(louder.error()));
    }
    const std::size_t count = sound.batch() * sound.channels() * sound.length();
    std::transform(
        sound.channel(0, 0),
        sound.channel(0, 0) + count,
        louder->data(),
        [gain](float sample) { return sample * gain; }
    );
    return NodeResult{.outputs = {finish(std::move(*louder), sound.rate())}};
}

}  // namespace

NodeClass empty_audio() {
    return {
        .name = "EmptyAudio",
        .description = "Silence of a given length.",
        .execute = &execute_empty,
    };
}

NodeClass trim_audio_duration() {
    return {
        .name = "TrimAudioDuration",
        .description = "Keeps a part of a sound; a negative start counts from its end.",
        .execute = &execute_trim,
    };
}

NodeClass split_audio_channels() {
    return {
        .name = "SplitAudioChannels",
        .description = "Gives the left and the right channel as sounds of their own.",
        .execute = &execute_split,
    };
}

NodeClass join_audio_channels() {
    return {
        .name = "JoinAudioChannels",
        .description = "Makes one sound with two channels of two with one each.",
        .execute = &execute_join,
    };
}

NodeClass audio_concat() {
    return {
        .name = "AudioConcat",
        .description = "Puts one sound after or before another.",
        .execute = &execute_concat,
    };
}

NodeClass audio_merge() {
    return {
        .name = "AudioMerge",
        .description = "Mixes two sounds; the length is that of the first.",
        .execute = &execute_merge,
    };
}

NodeClass audio_adjust_volume() {
    return {
        .name = "AudioAdjustVolume",
        .description = "Makes a sound louder or quieter by decibels.",
        .execute = &execute_volume,
    };
}

}  // namespace comfyd::engine::nodes
