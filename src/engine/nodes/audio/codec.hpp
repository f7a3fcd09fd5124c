// Sound files to and from samples, with FFmpeg. Holds no state. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "engine/nodes/audio/sound.hpp"

namespace comfyd::engine::nodes {

struct DecodedSound {
    std::vector<std::vector<float>> channels;
    int rate = 0;
};
// The first stream with sound. The error says why there is none. Formats are told apart by their
// first bytes: WAV, FLAC, MP3, Ogg, AAC, AIFF, MP4 and Matroska. `go_on` is asked with the bytes of
// samples so far; when it says no, the answer does not matter.
tl::expected<DecodedSound, std::string> decode_sound(
    std::string_view file, const std::function<bool(std::uint64_t bytes)>& go_on
);

struct SoundFormat {
    std::string container;  // FFmpeg's name, also the extension
    std::string encoder;
    std::int64_t bit_rate = 0;  // 0: the encoder's own choice
    bool best_quality = false;  // as many bits as it takes
};
// One item of a batch as a file, with texts inside.
tl::expected<std::string, std::string> encode_sound(
    const Sound& sound,
    std::size_t item,
    const SoundFormat& format,
    const std::vector<std::pair<std::string, std::string>>& texts,
    const std::function<bool()>& stopped
);

}  // namespace comfyd::engine::nodes
