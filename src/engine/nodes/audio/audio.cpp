#include "engine/nodes/audio/audio.hpp"

#include "engine/nodes/all.hpp"

namespace comfyd::engine::nodes {

void add_audio(Registry& registry) {
    registry.add(audio_adjust_volume());
    registry.add(audio_concat());
    registry.add(audio_merge());
    registry.add(empty_audio());
    registry.add(join_audio_channels());
    registry.add(load_audio());
    registry.add(preview_audio());
    registry.add(save_audio());
    registry.add(save_audio_advanced());
    registry.add(save_audio_mp3());
    registry.add(save_audio_opus());
    registry.add(split_audio_channels());
    registry.add(trim_audio_duration());
}

}  // namespace comfyd::engine::nodes
