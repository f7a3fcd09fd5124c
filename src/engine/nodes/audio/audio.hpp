// The classes that load, arrange and save sound.
#pragma once

#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

NodeClass audio_adjust_volume();
NodeClass audio_concat();
NodeClass audio_merge();
NodeClass empty_audio();
NodeClass join_audio_channels();
NodeClass load_audio();
NodeClass preview_audio();
NodeClass save_audio();
NodeClass save_audio_advanced();
NodeClass save_audio_mp3();
NodeClass save_audio_opus();
NodeClass split_audio_channels();
NodeClass trim_audio_duration();

}  // namespace comfyd::engine::nodes
